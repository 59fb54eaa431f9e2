"""A model that hangs: a worker says over a pipe what it is about to do and until when; its parent ends it when that is past.

What a worker hung on is a suspect: a worker that gets it again runs it alone. What hangs a worker alone is refused from then on
and kept for a look.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

ALIVE_S = 10.0  # a worker that says nothing for so long hangs as well: stopped, or stuck outside its model
LISTED = 200  # requests of a batch that may become suspects: a line that a pipe takes whole
PIPE = "H2T2_RDL_PIPE"  # the worker's end, a file descriptor
FOLDER = "H2T2_RDL_SUSPECTS"
SUSPECT, REFUSED = ".suspect", ".refused"


def key(data: bytes | memoryview) -> str:
    """What two requests with the same data have in common."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class Told:
    """The worker's side. seconds: how long a batch may take beyond four times what is expected of it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pipe = int(os.environ.get(PIPE, "-1"))
        self._folder = Path(os.environ[FOLDER]) if FOLDER in os.environ else None
        self._said = 0.0
        self._looked = 0
        self._suspects: dict[str, str] = {}  # key -> SUSPECT or REFUSED
        self.until = 0.0  # when the batch at hand counts as hung, monotonic; 0: none
        if self._pipe >= 0:
            os.set_blocking(self._pipe, False)

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
        if self._pipe >= 0:
            if len(payloads) == 1 and self._folder and self.judge(payloads[0]):
                (self._folder / key(payloads[0])).write_bytes(payloads[0])  # for a look, should it hang again
            self._say(f"{seconds:.1f} {' '.join(map(key, payloads[:LISTED]))}")

    def end(self) -> None:
        """The batch is over."""
        self.until = 0.0
        self._say(f"{ALIVE_S}")

    def clear(self, data: bytes | memoryview) -> None:
        """A suspect has been run alone, and has not hung."""
        if self._folder and self._suspects.pop(key(data), ""):
            for name in (key(data), key(data) + SUSPECT):
                (self._folder / name).unlink(missing_ok=True)

    def alive(self) -> None:
        """Nothing to do, but it could."""
        if time.monotonic() - self._said > ALIVE_S / 10:
            self._say(f"{ALIVE_S}")

    def _say(self, line: str) -> None:
        self._said = time.monotonic()
        if self._pipe >= 0:
            with suppress(OSError):  # a parent that does not listen is stopped, or gone
                os.write(self._pipe, line.encode() + b"\n")


class Watch:
    """The parent's side, of one worker process. folder: of suspects, shared by the workers. kept: where refused ones go."""

    def __init__(self, folder: Path, kept: Path, say: Callable[[str], None]) -> None:
        self._folder, self._kept, self._say = folder, kept, say
        self._lock = threading.Lock()
        self._until = float("inf")
        self._keys: list[str] = []

    def listen(self, pipe: IO[bytes]) -> None:
        """Read what the worker says until its end, in a thread of the caller's."""
        with pipe:
            for line in pipe:
                seconds, *keys = line.decode().split()
                with self._lock:
                    self._until, self._keys = time.monotonic() + float(seconds), keys

    def hung(self) -> bool:
        """Whether it has not done in time what it said it would; what it was at is suspect from now on, or refused."""
        with self._lock:
            if time.monotonic() < self._until:
                return False
            keys, self._keys, self._until = self._keys, [], float("inf")
        alone = len(keys) == 1 and (self._folder / (keys[0] + SUSPECT)).exists()
        for one in keys:
            if alone:
                self._refuse(one)
            else:
                (self._folder / (one + SUSPECT)).touch()
        return True

    def _refuse(self, one: str) -> None:
        (self._folder / (one + REFUSED)).touch()
        (self._folder / (one + SUSPECT)).unlink()
        self._kept.mkdir(parents=True, exist_ok=True)
        kept = self._kept / one
        kept.write_bytes((self._folder / one).read_bytes())
        self._say(f"a request hung the model twice; it is refused from now on, its data are kept in {kept}")
