"""Detects a model that hangs: a worker notes its batch and a deadline; the parent kills it after the deadline.

The note is shared memory: a pipe would wake the parent twice a batch, which costs as much as the batch. It has no name, so
nothing stays behind, however the processes end.

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
MAX_SUSPECTS = 1024  # a further one takes the place of the oldest
SUSPECT, REFUSED = 1, 2  # what a request is; 0: neither
# a note consists of numbers of 8 bytes, each written at once: a reader sees the old or the new one
UNTIL, COUNT, DIGESTS = 0, 1, 2  # deadline in monotonic ns; number of digests of the batch; the digests
NOTE_SIZE = 8 * DIGESTS + MAX_DIGESTS * DIGEST  # behind it: the data of a suspect that the worker runs alone
SUSPECTS_SIZE = 2 * 8 * MAX_SUSPECTS  # a digest and what it is, each
NOTE_DESCRIPTOR, SUSPECTS_DESCRIPTOR = "H2T2_RDL_NOTE", "H2T2_RDL_SUSPECTS"  # the file descriptors, for a worker


def digest(data: bytes | memoryview) -> int:
    """A number for requests with the same data."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=DIGEST).digest(), "little", signed=True)


def unnamed() -> int:
    """The descriptor of a file without a name, which ends with the processes that have it."""
    if hasattr(os, "memfd_create"):  # not a file's pages: writing to them may wait for the disk
        return os.memfd_create("h2t2 rdl")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Shared:
    """Numbers of 8 bytes in memory that processes share.

    Attributes:
        descriptor: the file descriptor, which another process inherits.
        numbers: the numbers.
    """

    def __init__(self, size: int, descriptor: int = -1) -> None:
        """size: bytes. descriptor: the inherited one; -1: new memory."""
        if descriptor < 0:
            descriptor = unnamed()
            os.ftruncate(descriptor, size)
        self.descriptor = descriptor
        self.numbers = memoryview(mmap.mmap(descriptor, size)).cast("q")

    def close(self) -> None:
        """Close the descriptor. The numbers stay readable."""
        os.close(self.descriptor)


class Suspects(Shared):
    """What requests are that a worker hung on. The parent adds them, workers clear them."""

    def __init__(self, descriptor: int = -1) -> None:
        super().__init__(SUSPECTS_SIZE, descriptor)
        self._content = b""
        self._states: dict[int, int] = {}
        self._next = 0

    def read(self) -> dict[int, int]:
        """SUSPECT or REFUSED, by the digests of requests."""
        content = self.numbers.tobytes()
        if content != self._content:
            numbers = self.numbers.tolist()
            self._content = content
            self._states = {number: state for number, state in zip(numbers[::2], numbers[1::2]) if state}
        return self._states

    def mark(self, number: int, state: int) -> None:
        """Say what a request is."""
        place = self._place(number)
        if place < 0:
            place, self._next = self._next, (self._next + 2) % (2 * MAX_SUSPECTS)
        self.numbers[place], self.numbers[place + 1] = number, state

    def clear(self, number: int) -> None:
        """Say that a request is neither."""
        place = self._place(number)
        if place >= 0:
            self.numbers[place + 1] = 0

    def _place(self, number: int) -> int:
        numbers = self.numbers.tolist()
        return next((n for n in range(0, len(numbers), 2) if numbers[n] == number and numbers[n + 1]), -1)


class BatchNote:
    """The worker's side. Without a parent it notes nothing.

    Args:
        seconds: how long a batch may take beyond four times the expected time.

    Attributes:
        until: the deadline of the current batch, monotonic seconds; 0: no batch.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._note = self._suspects = None
        if NOTE_DESCRIPTOR in os.environ:
            self._note = Shared(NOTE_SIZE, int(os.environ[NOTE_DESCRIPTOR]))
            self._suspects = Suspects(int(os.environ[SUSPECTS_DESCRIPTOR]))
        self._states: dict[int, int] = {}
        self.until = 0.0

    def suspicion(self, data: bytes | memoryview) -> int:
        """SUSPECT or REFUSED for data that a worker hung on before, else 0."""
        return self._states.get(digest(data), 0) if self._states else 0

    def read_suspects(self) -> None:
        """Read the suspects."""
        if self._suspects:
            self._states = self._suspects.read()

    def begin_batch(self, payloads: list[bytes | memoryview], expected: float) -> None:
        """Note a batch that should take `expected` seconds."""
        seconds = self._seconds + 4 * expected
        self.until = time.monotonic() + seconds
        if self._note:
            if len(payloads) == 1 and self.suspicion(payloads[0]):  # for inspection, if it hangs again
                os.ftruncate(self._note.descriptor, NOTE_SIZE + len(payloads[0]))
                os.pwrite(self._note.descriptor, payloads[0], NOTE_SIZE)
            numbers = self._note.numbers
            for n, payload in enumerate(payloads[:MAX_DIGESTS]):
                numbers[DIGESTS + n] = digest(payload)
            numbers[COUNT] = min(len(payloads), MAX_DIGESTS)
            numbers[UNTIL] = round(self.until * 1e9)

    def end_batch(self) -> None:
        """Note the end of the batch."""
        self.until = 0.0
        self.report_alive()

    def clear_suspect(self, data: bytes | memoryview) -> None:
        """Clear a suspect that did not hang when run alone."""
        if self._suspects:
            self._suspects.clear(digest(data))

    def report_alive(self) -> None:
        """Report that the worker is ready for requests."""
        if self._note and not self.until:
            self._note.numbers[UNTIL] = time.monotonic_ns() + round(ALIVE_S * 1e9)
            self._note.numbers[COUNT] = 0


class HangWatch:
    """The parent's side, of one worker process.

    Args:
        suspects: shared by the workers.
        keep_folder: where the data of refused requests go.
        say: is called with a line of text about each refused request.

    Attributes:
        note: which the worker inherits.
    """

    def __init__(self, suspects: Suspects, keep_folder: Path, say: Callable[[str], None]) -> None:
        self._suspects, self._keep_folder, self._say = suspects, keep_folder, say
        self.note = Shared(NOTE_SIZE)
        self.note.numbers[UNTIL] = 2**63 - 1  # until the worker is up

    def is_hung(self) -> bool:
        """Whether the worker has missed its deadline. Its requests become suspects, or refused."""
        numbers = self.note.numbers
        if time.monotonic_ns() < numbers[UNTIL]:
            return False
        digests = numbers[DIGESTS : DIGESTS + numbers[COUNT]].tolist()
        if len(digests) == 1 and self._suspects.read().get(digests[0]):
            self._refuse(digests[0])
        else:
            for number in digests:
                self._suspects.mark(number, SUSPECT)
        return True

    def _refuse(self, number: int) -> None:
        self._suspects.mark(number, REFUSED)
        path = self._keep_folder / number.to_bytes(DIGEST, "little", signed=True).hex()
        try:
            self._keep_folder.mkdir(parents=True, exist_ok=True)
            size = os.fstat(self.note.descriptor).st_size - NOTE_SIZE
            path.write_bytes(os.pread(self.note.descriptor, size, NOTE_SIZE))
            where = f"its data are kept in {path}"
        except OSError as error:  # the disk is full, for example: the workers go on
            where = f"its data are not kept: {error}"
        self._say(f"a request hung the model twice; it is refused from now on, {where}")
