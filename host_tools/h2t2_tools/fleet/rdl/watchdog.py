"""Detects a model that hangs: a worker notes its batch and a deadline; the parent kills it after the deadline.

The note is shared memory: a pipe would wake the parent twice a batch, which costs as much as the batch.

The requests that a worker hung on are suspects: a worker that gets one again runs it alone. A request that hangs a worker alone
is refused from then on, and its data are kept for inspection.
"""

import hashlib
import mmap
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ALIVE_S = 10.0  # a worker that does not report for so long hangs as well: stopped, or stuck outside its model
MAX_DIGESTS = 200  # requests of a batch that may become suspects
DIGEST = 8  # bytes
# a note consists of numbers of 8 bytes, each written at once: a reader sees the old or the new one
UNTIL, COUNT, DIGESTS = 0, 1, 2  # deadline in monotonic ns; number of digests of the batch; the digests
SIZE = 8 * DIGESTS + MAX_DIGESTS * DIGEST
NOTE_DESCRIPTOR = "H2T2_RDL_NOTE"  # the file descriptor of the note
SUSPECTS_FOLDER = "H2T2_RDL_SUSPECTS"
SUSPECT, REFUSED = ".suspect", ".refused"


def key(data: bytes | memoryview) -> str:
    """A name for requests with the same data."""
    return _digest_bytes(data).hex()


def _note(shared: int) -> memoryview:
    return memoryview(mmap.mmap(shared, SIZE)).cast("q")


def _digest_bytes(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


class BatchNote:
    """The worker's side.

    Args:
        seconds: how long a batch may take beyond four times the expected time.

    Attributes:
        until: the deadline of the current batch, monotonic seconds; 0: no batch.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        shared = int(os.environ.get(NOTE_DESCRIPTOR, "-1"))
        self._note = _note(shared) if shared >= 0 else None
        self._folder = Path(os.environ[SUSPECTS_FOLDER]) if SUSPECTS_FOLDER in os.environ else None
        self._folder_time = 0
        self._suspects: dict[str, str] = {}  # key -> SUSPECT or REFUSED
        self.until = 0.0

    def suspicion(self, data: bytes | memoryview) -> str:
        """SUSPECT or REFUSED for data that a worker hung on before, else ""."""
        return self._suspects.get(key(data), "") if self._suspects else ""

    def read_suspects(self) -> None:
        """Read the folder of suspects, if it has changed."""
        if self._folder is None:
            return
        changed = self._folder.stat().st_mtime_ns
        if changed != self._folder_time:
            self._folder_time = changed
            self._suspects = {path.stem: path.suffix for path in self._folder.iterdir() if path.suffix in (SUSPECT, REFUSED)}

    def begin_batch(self, payloads: list[bytes | memoryview], expected: float) -> None:
        """Note a batch that should take `expected` seconds."""
        seconds = self._seconds + 4 * expected
        self.until = time.monotonic() + seconds
        if self._note is not None:
            if len(payloads) == 1 and self._folder and self.suspicion(payloads[0]):
                (self._folder / key(payloads[0])).write_bytes(payloads[0])  # for inspection, if it hangs again
            listed = memoryview(b"".join(map(_digest_bytes, payloads[:MAX_DIGESTS]))).cast("q")
            self._note[DIGESTS : DIGESTS + len(listed)] = listed
            self._note[COUNT] = len(listed)
            self._note[UNTIL] = round(self.until * 1e9)

    def end_batch(self) -> None:
        """Note the end of the batch."""
        self.until = 0.0
        self.report_alive()

    def clear_suspect(self, data: bytes | memoryview) -> None:
        """Clear a suspect that did not hang when run alone."""
        if self._folder and self._suspects.pop(key(data), ""):
            for name in (key(data), key(data) + SUSPECT):
                (self._folder / name).unlink(missing_ok=True)

    def report_alive(self) -> None:
        """Report that the worker is ready for requests."""
        if self._note is not None and not self.until:
            self._note[UNTIL] = time.monotonic_ns() + round(ALIVE_S * 1e9)
            self._note[COUNT] = 0


class HangWatch:
    """The parent's side, of one worker process.

    Args:
        folder: of suspects, shared by the workers.
        keep_folder: where the data of refused requests go.
        say: is called with a line of text about each refused request.

    Attributes:
        shared: the file descriptor of the note, which the worker inherits.
    """

    def __init__(self, folder: Path, keep_folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._keep_folder, self._say = folder, keep_folder, say
        # not a file's pages: writing to them may wait for the disk
        self.shared = os.memfd_create("h2t2 rdl") if hasattr(os, "memfd_create") else _unnamed_file()
        os.ftruncate(self.shared, SIZE)
        self._note = _note(self.shared)
        self._note[UNTIL] = 2**63 - 1  # until the worker is up

    def close_descriptor(self) -> None:
        """Close our copy of the descriptor, once the worker has inherited it."""
        os.close(self.shared)

    def is_hung(self) -> bool:
        """Whether the worker has missed its deadline. Its requests become suspects, or refused."""
        if time.monotonic_ns() < self._note[UNTIL]:
            return False
        listed = self._note[DIGESTS : DIGESTS + self._note[COUNT]].tobytes()
        keys = [listed[at : at + DIGEST].hex() for at in range(0, len(listed), DIGEST)]
        alone = len(keys) == 1 and (self._folder / (keys[0] + SUSPECT)).exists()
        for digest in keys:
            if alone:
                self._refuse(digest)
            else:
                (self._folder / (digest + SUSPECT)).touch()
        return True

    def _refuse(self, digest: str) -> None:
        (self._folder / (digest + REFUSED)).touch()
        (self._folder / (digest + SUSPECT)).unlink(missing_ok=True)
        path = self._keep_folder / digest
        try:
            self._keep_folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes((self._folder / digest).read_bytes())
            where = f"its data are kept in {path}"
        except OSError as error:  # the disk is full, for example: the workers go on
            where = f"its data are not kept: {error}"
        self._say(f"a request hung the model twice; it is refused from now on, {where}")


def _unnamed_file() -> int:
    """A file without a name, for systems without memfd_create."""
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
