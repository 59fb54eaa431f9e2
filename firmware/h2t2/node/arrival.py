# A package on its way to this node: chunks become a verified package in a file, or are refused with a reason. A stranger who
# sends chunks can make the node keep two of them in RAM and verify a signature, four times at once and then every 15 s.
import os
from binascii import crc32, unhexlify

from ..clock import Stopwatch
from . import package
from .limit import Limit

if 0:  # for type checkers
    from ..annotations import BinaryIO, Callable
    from .package import Head

FORGOTTEN_S = 60  # after which another package may replace one that no longer arrives
SYNCED = 4096  # bytes after which the node writes the file to the disk


class Arrival:
    """Receives one package at a time.

    Args:
        path: File for the package.
        key: Modulus of the key that signs packages, hexadecimal.
        limit: Largest number of bytes of a package's body.
        admit: Called with the Head of a genuine package; it raises ValueError for one that is not for this node.

    Attributes:
        id, size: Of the package that arrives; received: how many of its bytes are here.
        head: Its Head once it is verified; then `file` is open.
        first: Beginning (head and signature) of a package that is not verified yet.
        announced: (id, size) of that package.
        next: Offset at which the sender of the last chunk is to continue.
    """

    def __init__(self, path: str, *, key: str, limit: int, admit: "Callable[[Head], object]"):
        self.path = path
        self.key = key
        self.limit = limit
        self.admit = admit
        self.attempts = Limit()
        self.watch = Stopwatch()
        self.id = -1
        self.size = self.received = self.next = 0
        self.head: "Head | None" = None
        self.file: "BinaryIO | None" = None
        self.first = b""
        self.announced = None  # type: tuple[int, int] | None

    def take(self, payload: bytes) -> bool:
        """Take a chunk; return whether the package is complete and verified. ValueError with the reason of a refusal."""
        self.next = 0
        number, size, offset, crc, data = package.chunk_of(payload)
        if crc32(bytes(data)) & 0xFFFFFFFF != crc:
            data = data[:0]  # the sender will repeat it
        if self.head and (number, size) == (self.id, self.size):
            self._take_more(offset, data)
        elif self.head and 0 <= self.watch.seconds() < FORGOTTEN_S:
            raise ValueError("another update is under way")
        else:
            self._take_first(number, size, offset, data)
        if not self.head or (number, size) != (self.id, self.size):
            return False
        self.next = self.received
        if self.received < self.size:
            return False
        self._verify_body()
        return True

    def drop(self) -> None:
        """Forget the verified package and its file."""
        self._close()
        if self.head:
            remove(self.path)
        self.id = -1
        self.size = self.received = 0
        self.head = None

    def _close(self) -> None:
        file, self.file = self.file, None
        try:
            if file:
                file.close()
        except OSError:
            pass  # a full disk: what it lacks is noticed, or needed no more

    def _take_first(self, number: int, size: int, offset: int, data: memoryview) -> None:
        """Take a chunk of a package that is not verified yet; a package that has arrived in part remains until it is."""
        if (number, size) != self.announced:
            self.first = b""
            self.announced = None
            if not package.SIGNED < size <= package.SIGNED + self.limit:
                raise ValueError("a package of %d bytes; this node takes %d" % (size - package.SIGNED, self.limit))
            self.announced = number, size
            if self._continue_file(number, size):
                return
        if not len(data) or offset != len(self.first):
            self.next = len(self.first)
            return
        missing = package.SIGNED - len(self.first)
        self.first += bytes(data[:missing])
        self.next = len(self.first)
        if len(self.first) < package.SIGNED:
            return
        head = self._verify_head(number, size)
        self._close()  # the previous package no longer arrives
        try:
            self.file = open(self.path, "wb")
            self.file.write(self.first)
            self._begin(head, number, size, package.SIGNED)
            self._write(data[missing:])
        except (OSError, MemoryError):
            self._fail()
            raise

    def _continue_file(self, number: int, size: int) -> bool:
        """Continue the package whose beginning is in the file since before this start; return whether it is this one."""
        try:
            with open(self.path, "rb") as file:
                first = file.read(package.SIGNED)
                received = file.seek(0, 2)
        except OSError:
            return False
        if len(first) < package.SIGNED or package.id_of(first) != number or received > size:
            return False
        self.first = first
        head = self._verify_head(number, size)
        self._close()
        self._begin(head, number, size, received)
        self.file = open(self.path, "ab")
        return True

    def _begin(self, head: "Head", number: int, size: int, received: int) -> None:
        """Let this package be the one that arrives."""
        self.head = head
        self.id = number
        self.size = size
        self.received = received
        self.first = b""
        self.announced = None
        self.watch = Stopwatch()

    def _take_more(self, offset: int, data: memoryview) -> None:
        """Take a chunk of the verified package."""
        self.next = self.received
        if not len(data) or offset != self.received:
            return
        if len(data) > self.size - self.received:
            raise ValueError("the chunk at %d goes beyond the package's end" % offset)
        try:
            self._write(data)
        except (OSError, MemoryError):
            self._fail()
            raise

    def _fail(self) -> None:
        """Remove a file that cannot be written."""
        self._close()
        remove(self.path)
        self.head = None
        self.drop()

    def _write(self, data: memoryview) -> None:
        if not len(data):
            return
        self.file.write(data)
        if self.received // SYNCED != (self.received + len(data)) // SYNCED:
            package.sync(self.file)
        self.received += len(data)
        self.watch = Stopwatch()

    def _verify_head(self, number: int, size: int) -> "Head":
        """Return the Head of the package that begins with `first`. ValueError unless it is genuine and for this node."""
        first = self.first
        self.first = b""
        self.announced = None
        self.next = 0
        if package.id_of(first) != number:
            raise ValueError("the package's head is not the one that was announced")
        head = package.Head(first)
        if not self.attempts.passes():
            raise ValueError("more packages than one each 15 s")
        if not package.genuine(first, unhexlify(self.key)):
            raise ValueError("the package is not signed with the key that this node trusts")
        if head.size != size - package.SIGNED:
            raise ValueError("a package of %d bytes, its head says %d" % (size - package.SIGNED, head.size))
        self.admit(head)
        free = package.room(folder(self.path))
        parts = 0 if head.firmware else 3 if head.runtime else 1  # in files, of which each takes whole blocks
        needed = head.size * (1 + parts)
        if 0 <= free < needed:
            raise ValueError("no room: %d bytes free, want %d" % (free, needed))
        self.first = first
        return head

    def _verify_body(self) -> None:
        """Raise ValueError unless the complete file is what was signed."""
        try:
            package.sync(self.file)
        except OSError:
            self._fail()
            raise
        self._close()
        with open(self.path, "rb") as file:
            if package.body_digest(file) == self.head.digest:
                return
        self.drop()
        raise ValueError("the package's bytes are not those that were signed")


def folder(path: str) -> str:
    """Return the folder of a file, with a slash at its end; "" for the current one."""
    return path[: path.rfind("/") + 1]


def remove(path: str) -> None:
    """Delete a file that may not be there."""
    try:
        os.remove(path)
    except OSError:
        pass
