"""A model that hangs: a worker notes what it is about to do and until when; its parent ends it when that is past.

The note is memory that both share: a pipe would wake the parent twice a batch, which costs as much as the batch.

What a worker hung on is a suspect: a worker that gets it again runs it alone. What hangs a worker alone is refused from then on
and kept for a look.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ALIVE_S = 10.0  # a worker that says nothing for so long hangs as well: stopped, or stuck outside its model
LISTED = 200  # requests of a batch that may become suspects
DIGEST = 8  # bytes
# a note is of numbers of 8 bytes, each written at once: what is read meanwhile is the old one or the new one
UNTIL, MANY, LIST = 0, 1, 2  # when the worker counts as hung, monotonic ns; how many digests follow, of what it is at; those
SIZE = 8 * LIST + LISTED * DIGEST
SHARED = "H2T2_RDL_NOTE"  # the file descriptor of the note
FOLDER = "H2T2_RDL_SUSPECTS"
SUSPECT, REFUSED = ".suspect", ".refused"


def key(data: bytes | memoryview) -> str:
    """What two requests with the same data have in common."""
    return _digest(data).hex()


def _note(shared: int) -> memoryview:
    return memoryview(mmap.mmap(shared, SIZE)).cast("q")


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


class Told:
    """The worker's side. seconds: how long a batch may take beyond four times what is expected of it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        shared = int(os.environ.get(SHARED, "-1"))
        self._note = _note(shared) if shared >= 0 else None
        self._folder = Path(os.environ[FOLDER]) if FOLDER in os.environ else None
        self._looked = 0
        self._suspects: dict[str, str] = {}  # key -> SUSPECT or REFUSED
        self.until = 0.0  # when the batch at hand counts as hung, monotonic; 0: none

    def judge(self, data: bytes | memoryview) -> str:
        """SUSPECT or REFUSED for what a worker hung on before, else ""."""
        return self._suspects.get(key(data), "") if self._suspects else ""

    def look(self) -> None:
        """Read anew what others have hung on, where that has changed."""
        if self._folder is None:
            return
        changed = self._folder.stat().st_mtime_ns
        if changed != self._looked:
            self._looked = changed
            self._suspects = {path.stem: path.suffix for path in self._folder.iterdir() if path.suffix in (SUSPECT, REFUSED)}

    def begin(self, payloads: list[bytes | memoryview], expected: float) -> None:
        """A batch begins, which should take `expected` seconds."""
        seconds = self._seconds + 4 * expected
        self.until = time.monotonic() + seconds
        if self._note is not None:
            if len(payloads) == 1 and self._folder and self.judge(payloads[0]):
                (self._folder / key(payloads[0])).write_bytes(payloads[0])  # for a look, should it hang again
            listed = memoryview(b"".join(map(_digest, payloads[:LISTED]))).cast("q")
            self._note[LIST : LIST + len(listed)] = listed
            self._note[MANY] = len(listed)
            self._note[UNTIL] = round(self.until * 1e9)

    def end(self) -> None:
        """The batch is over."""
        self.until = 0.0
        self.alive()

    def clear(self, data: bytes | memoryview) -> None:
        """A suspect has been run alone, and has not hung."""
        if self._folder and self._suspects.pop(key(data), ""):
            for name in (key(data), key(data) + SUSPECT):
                (self._folder / name).unlink(missing_ok=True)

    def alive(self) -> None:
        """It could do something, were there anything to do."""
        if self._note is not None and not self.until:
            self._note[UNTIL] = time.monotonic_ns() + round(ALIVE_S * 1e9)
            self._note[MANY] = 0


class Watch:
    """The parent's side, of one worker process. folder: of suspects, shared by the workers. kept: where refused ones go.

    shared: the file descriptor the worker inherits, under its number in its environment as SHARED.
    """

    def __init__(self, folder: Path, kept: Path, say: Callable[[str], None]) -> None:
        self._folder, self._kept, self._say = folder, kept, say
        # not a file's pages: writing to them may wait for the disk
        self.shared = os.memfd_create("h2t2 rdl") if hasattr(os, "memfd_create") else _unnamed()
        os.ftruncate(self.shared, SIZE)
        self._note = _note(self.shared)
        self._note[UNTIL] = 2**63 - 1  # until it is up

    def started(self) -> None:
        """The worker has inherited what it needs."""
        os.close(self.shared)

    def hung(self) -> bool:
        """Whether it has not done in time what it said it would; what it was at is suspect from now on, or refused."""
        if time.monotonic_ns() < self._note[UNTIL]:
            return False
        listed = self._note[LIST : LIST + self._note[MANY]].tobytes()
        keys = [listed[at : at + DIGEST].hex() for at in range(0, len(listed), DIGEST)]
        alone = len(keys) == 1 and (self._folder / (keys[0] + SUSPECT)).exists()
        for one in keys:
            if alone:
                self._refuse(one)
            else:
                (self._folder / (one + SUSPECT)).touch()
        return True

    def _refuse(self, one: str) -> None:
        (self._folder / (one + REFUSED)).touch()
        (self._folder / (one + SUSPECT)).unlink(missing_ok=True)
        kept = self._kept / one
        try:
            self._kept.mkdir(parents=True, exist_ok=True)
            kept.write_bytes((self._folder / one).read_bytes())
            where = f"its data are kept in {kept}"
        except OSError as error:  # the disk is full, say: the workers are more than that
            where = f"its data are not kept: {error}"
        self._say(f"a request hung the model twice; it is refused from now on, {where}")


def _unnamed() -> int:
    """A file that nobody else can open, where the system has no memory to share without one."""
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
