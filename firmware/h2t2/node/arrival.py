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
    """One package at a time, in the file `path`. key: the modulus, hexadecimal; most: bytes of a package's body.

    admit(head): raises ValueError for a genuine package that is not for this node.
    """

    def __init__(self, path, key, most, admit):
        self.path = path
        self.key = key
        self.most = most
        self.admit = admit
        self.limit = Limit()
        self.watch = Stopwatch()
        self.id = -1
        self.size = self.have = 0  # bytes of the package, and how many of them came
        self.head = None  # its Head once it is verified
        self.first = b""  # what came of head and signature
        self.file = None

    def take(self, payload) -> bool:
        """Take a chunk: True when the package is whole and verified. ValueError, saying why, for what is refused."""
        number, size, offset, crc, data = package.chunk_of(payload)
        other = number != self.id or size != self.size
        if other and self.head and 0 <= self.watch.seconds() < FORGOTTEN_S:
            raise ValueError("another update is under way")
        whole = crc32(bytes(data)) & 0xFFFFFFFF == crc  # else it will be sent again
        try:
            if other:
                self._begin(number, size)
            if len(data) and offset == self.have and whole:
                if len(data) > self.size - self.have:
                    raise ValueError("the chunk at %d goes beyond the package's end" % offset)
                self._keep(data)
        except (ValueError, OSError, MemoryError):
            self.drop()
            raise
        if self.have < self.size:
            return False
        self._whole()
        return True

    def drop(self) -> None:
        """Forget the package, and its file where it was a genuine one's: a stranger's does not cost another its file."""
        self._close()
        if self.head:
            remove(self.path)
        self.id = -1
        self.size = self.have = 0
        self.head = None
        self.first = b""

    def _close(self):
        if self.file:
            self.file.close()
            self.file = None

    def _begin(self, number, size):
        """Another package, or one that was cut off and comes again."""
        self._close()
        self.id = -1
        if not package.SIGNED < size <= package.SIGNED + self.most:
            raise ValueError("a package of %d bytes; this node takes %d" % (size - package.SIGNED, self.most))
        self.head = None
        self.first = b""
        self.have = 0
        self.size = size
        self.id = number
        try:
            with open(self.path, "rb") as file:
                first = file.read(package.SIGNED)
                have = file.seek(0, 2)
        except OSError:
            return
        if len(first) == package.SIGNED and package.id_of(first) == number and have <= size:
            self.first = first
            self._verify()
            self.have = have
            self.file = open(self.path, "ab")

    def _keep(self, data):
        """The next bytes of the package."""
        if not self.head:
            missing = package.SIGNED - len(self.first)
            self.first += bytes(data[:missing])
            self.have += min(len(data), missing)
            data = data[missing:]
            if len(self.first) < package.SIGNED:
                return
            self._verify()
            self.file = open(self.path, "wb")
            self.file.write(self.first)
        if not len(data):
            return
        self.file.write(data)
        if self.have // SYNCED != (self.have + len(data)) // SYNCED:
            package.settle(self.file)
        self.have += len(data)
        self.watch = Stopwatch()

    def _verify(self):
        """Head and signature are here: ValueError unless they are genuine, and of a package for this node."""
        if package.id_of(self.first) != self.id:
            raise ValueError("the package's head is not the one that was announced")
        head = package.head_of(self.first)
        if not self.limit.passes():
            raise ValueError("more packages than one each 15 s")
        if not package.genuine(self.first, unhexlify(self.key)):
            raise ValueError("the package is not signed with the key that this node trusts")
        if head.size != self.size - package.SIGNED:
            raise ValueError("a package of %d bytes, its head says %d" % (self.size - package.SIGNED, head.size))
        self.admit(head)
        free = package.room(folder(self.path))
        if 0 <= free < 2 * head.size:
            raise ValueError("no room: %d bytes free, want %d" % (free, 2 * head.size))
        self.head = head
        self.watch = Stopwatch()

    def _whole(self):
        """All of it is here: ValueError unless it is what was signed."""
        package.settle(self.file)
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
