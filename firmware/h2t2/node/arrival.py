# A package on its way to this node: chunks in, a verified package in a file, or a reason why not. What a stranger can have
# done by sending chunks: two of them are kept in RAM, and a signature is looked at, four times at once and then each 15 s.
import os
from binascii import crc32, unhexlify

from ..clock import Stopwatch
from . import package
from .commands import Limit

FORGOTTEN_S = 60  # after which a package that has stopped coming makes way for another
SYNCED = 4096  # bytes after which what came is on the disk for certain


class Arrival:
    """One package at a time, in the file `path`. key: the modulus, hexadecimal. limit: bytes of a package's body.

    admit(head): raises ValueError for a genuine package that is not for this node.
    """

    def __init__(self, path, *, key, limit, admit):
        self.path = path
        self.key = key
        self.limit = limit
        self.admit = admit
        self.attempts = Limit()
        self.watch = Stopwatch()
        self.id = -1
        self.size = self.have = 0  # bytes of the package, and how many of them came
        self.head = None  # its Head once it is verified; then `file` is where it goes
        self.file = None
        self.first = b""  # what came of the head and signature of a package that is not verified yet
        self.announced = None  # (id, size) of that package
        self.next = 0  # the offset that the sender of the last chunk is to go on at

    def take(self, payload) -> bool:
        """Take a chunk: True when the package is whole and verified. ValueError, saying why, for what is refused."""
        self.next = 0
        number, size, offset, crc, data = package.chunk_of(payload)
        if crc32(bytes(data)) & 0xFFFFFFFF != crc:
            data = data[:0]  # it will be sent again
        if self.head and (number, size) == (self.id, self.size):
            self._take_more(offset, data)
        elif self.head and 0 <= self.watch.seconds() < FORGOTTEN_S:
            raise ValueError("another update is under way")
        else:
            self._take_first(number, size, offset, data)
        if not self.head or (number, size) != (self.id, self.size):
            return False
        self.next = self.have
        if self.have < self.size:
            return False
        self._whole()
        return True

    def drop(self) -> None:
        """Forget the package that is verified, and its file."""
        self._close()
        if self.head:
            remove(self.path)
        self.id = -1
        self.size = self.have = 0
        self.head = None

    def _close(self):
        if self.file:
            self.file.close()
            self.file = None

    def _take_first(self, number, size, offset, data):
        """A chunk of a package that is not verified yet. The package that has arrived in part stays as it is until this is."""
        if (number, size) != self.announced:
            self.first = b""
            self.announced = None
            if not package.SIGNED < size <= package.SIGNED + self.limit:
                raise ValueError("a package of %d bytes; this node takes %d" % (size - package.SIGNED, self.limit))
            self.announced = number, size
            if self._goes_on(number, size):
                return
        if not len(data) or offset != len(self.first):
            self.next = len(self.first)
            return
        missing = package.SIGNED - len(self.first)
        self.first += bytes(data[:missing])
        self.next = len(self.first)
        if len(self.first) < package.SIGNED:
            return
        head = self._verified(number, size)
        self._close()  # the package before it has stopped coming, and makes way
        try:
            self.file = open(self.path, "wb")
            self.file.write(self.first)
            self._begin(head, number, size, package.SIGNED)
            self._write(data[missing:])
        except (OSError, MemoryError):
            self._fail()
            raise

    def _goes_on(self, number, size) -> bool:
        """Whether that is the package whose beginning is in the file, since a start or another one that came to nothing."""
        try:
            with open(self.path, "rb") as file:
                first = file.read(package.SIGNED)
                have = file.seek(0, 2)
        except OSError:
            return False
        if len(first) < package.SIGNED or package.id_of(first) != number or have > size:
            return False
        self.first = first
        head = self._verified(number, size)
        self._close()
        self._begin(head, number, size, have)
        self.file = open(self.path, "ab")
        return True

    def _begin(self, head, number, size, have):
        """From now on this package is the one that arrives."""
        self.head = head
        self.id = number
        self.size = size
        self.have = have
        self.first = b""
        self.announced = None
        self.watch = Stopwatch()

    def _take_more(self, offset, data):
        """A chunk of the package that is verified."""
        self.next = self.have
        if not len(data) or offset != self.have:
            return
        if len(data) > self.size - self.have:
            raise ValueError("the chunk at %d goes beyond the package's end" % offset)
        try:
            self._write(data)
        except (OSError, MemoryError):
            self._fail()
            raise

    def _fail(self):
        """The file cannot be written: nothing is left of it."""
        self._close()
        remove(self.path)
        self.head = None
        self.drop()

    def _write(self, data):
        if not len(data):
            return
        self.file.write(data)
        if self.have // SYNCED != (self.have + len(data)) // SYNCED:
            package.sync(self.file)
        self.have += len(data)
        self.watch = Stopwatch()

    def _verified(self, number, size):
        """The Head of the package whose head and signature are in `first`: ValueError unless they are genuine, and of a package
        for this node."""
        first = self.first
        self.first = b""
        self.announced = None
        self.next = 0
        if package.id_of(first) != number:
            raise ValueError("the package's head is not the one that was announced")
        head = package.head_of(first)
        if not self.attempts.passes():
            raise ValueError("more packages than one each 15 s")
        if not package.genuine(first, unhexlify(self.key)):
            raise ValueError("the package is not signed with the key that this node trusts")
        if head.size != size - package.SIGNED:
            raise ValueError("a package of %d bytes, its head says %d" % (size - package.SIGNED, head.size))
        self.admit(head)
        free = package.room(folder(self.path))
        if 0 <= free < 2 * head.size:
            raise ValueError("no room: %d bytes free, want %d" % (free, 2 * head.size))
        self.first = first
        return head

    def _whole(self):
        """All of it is here: ValueError unless it is what was signed."""
        package.sync(self.file)
        self._close()
        with open(self.path, "rb") as file:
            if package.body_digest(file) == self.head.digest:
                return
        self.drop()
        raise ValueError("the package's bytes are not those that were signed")


def folder(path: str) -> str:
    """The folder a file is in, with a slash at its end; "" for the current one."""
    return path[: path.rfind("/") + 1]


def remove(path: str) -> None:
    """Delete a file that may not be there."""
    try:
        os.remove(path)
    except OSError:
        pass
