# A store: two slots that are written in turn, each with a serial number and a checksum. A power cut at any byte of a save
# leaves the other slot, the last complete save, readable.
import errno
import os
from binascii import crc32
from struct import pack, unpack_from

KEPT = 10  # files set aside by one name
SERIALS = 0x3FFFFFFF  # the largest serial number of a slot; then 0 again
STRETCH = 128  # bytes that are read at once
FRAME = 8  # bytes before the content: serial number, size. After it: its CRC-32, over both
END = 4


class Content:
    """Bytes that a stream holds from `start` on: `size` of them, read a stretch at a time. close() it at the end."""

    def __init__(self, stream, start, size):
        self.stream = stream
        self.start = start
        self.size = size

    def readinto(self, at, buffer) -> None:
        """Fill a buffer from byte `at` on, as far as there is something."""
        self.stream.seek(self.start + at)
        self.stream.readinto(buffer)

    def close(self) -> None:
        self.stream.close()


class Store:
    """slots: two of FileSlot, BufferSlot or a class of your own with their members.

    damaged: slots that held something unreadable when they were last looked at.
    """

    def __init__(self, slots):
        self.slots = slots
        self.damaged = 0
        self.newest = None  # (serial number, slot's number, bytes) of the last complete save, once that is known

    def _look(self):
        """Find the newest complete slot."""
        self.newest = None
        self.damaged = 0
        buffer = bytearray(STRETCH)
        for n in (0, 1):
            stream = self.slots[n].open()
            if not stream:
                continue
            try:
                serial, size = self._checked(stream, buffer)
            finally:
                stream.close()
            if size < 0:
                continue
            if not self.newest or 0 < (serial - self.newest[0]) & SERIALS <= SERIALS >> 1:
                self.newest = serial, n, size

    def _checked(self, stream, buffer):
        """(serial number, bytes) of a slot's content; (0, -1) where there is none, which is counted where it is damage."""
        got = stream.readinto(memoryview(buffer)[:FRAME])
        if not got or buffer[:got] == b"\xff" * got:  # nothing, or erased flash
            return 0, -1
        if got == FRAME:
            serial, size = unpack_from("<II", buffer, 0)
            if serial <= SERIALS and (_matches(stream, buffer, size, crc32, 0) or _matches_older(stream, buffer, size)):
                return serial, size
        self.damaged += 1
        return 0, -1

    def set_aside(self) -> str:
        """Keep what is in the slots under other names, which it returns; OSError where that cannot be."""
        names = ", ".join([name for name in [slot.set_aside() for slot in self.slots] if name])
        self.newest = None
        return names

    def open(self) -> Content | None:
        """The newest complete content, or None where there is none."""
        self._look()
        if not self.newest:
            return None
        _, n, size = self.newest
        return Content(self.slots[n].open(), FRAME, size)

    def load(self) -> bytes | None:
        """The newest complete content as bytes, or None where there is none."""
        content = self.open()
        if not content:
            return None
        blob = bytearray(content.size)
        content.readinto(0, blob)
        content.close()
        return bytes(blob)

    def save(self, blob: bytes) -> None:
        """Write a content over the older slot."""
        self.write(len(blob), (blob,))

    def write(self, size: int, chunks) -> None:
        """Write a content of `size` bytes, which comes in chunks, over the older slot."""
        if not self.newest:
            self._look()
        serial, n, _ = self.newest or (0, 1, 0)
        serial = (serial + 1) & SERIALS
        slot = self.slots[1 - n]
        stream = slot.begin(FRAME + size + END)
        try:
            head = pack("<II", serial, size)
            stream.write(head)
            crc = crc32(head)
            for chunk in chunks:
                stream.write(chunk)
                crc = crc32(chunk, crc)
            stream.write(pack("<I", crc & 0xFFFFFFFF))
            slot.sync(stream)
        finally:
            stream.close()
        self.newest = serial, 1 - n, size


def _matches(stream, buffer, size, checksum, start):
    """Whether a frame of so many bytes is there whole, by a checksum that begins at `start`."""
    view = memoryview(buffer)
    stream.seek(0)
    left = FRAME + size
    while left:
        got = stream.readinto(view[: min(left, STRETCH)])
        if not got:
            return False
        start = checksum(view[:got], start)
        left -= got
    return stream.readinto(view[:END]) == END and unpack_from("<I", buffer, 0)[0] == start & 0xFFFFFFFF


def _matches_older(stream, buffer, size):
    """The same for what runtimes before snapshot version 5 wrote, which had a checksum of their own."""
    from .crc24 import START, crc24

    return _matches(stream, buffer, size, crc24, START)


class FileSlot:
    """A slot in a file of its own. OSError of the file system (full, read-only) is the caller's."""

    def __init__(self, path):
        self.path = path

    def open(self):
        """What it holds, to readinto(), seek() and close(), or None where there is nothing; OSError where it cannot be read."""
        return open(self.path, "rb") if _exists(self.path) else None

    def begin(self, size: int):
        """A stream, to write() and close(), that replaces what the slot holds by `size` bytes."""
        return open(self.path, "wb")

    def sync(self, stream) -> None:
        """Have what was written on the disk before the stream is closed."""
        stream.flush()
        if hasattr(os, "fsync"):  # CPython's; a board's file system writes at close
            os.fsync(stream.fileno())

    def set_aside(self) -> str:
        """Keep the file under another name, which it returns; OSError where there are KEPT of them already."""
        if not _exists(self.path):
            return ""
        for n in range(1, KEPT + 1):
            name = "%s.kept%d" % (self.path, n)
            if not _exists(name):
                os.rename(self.path, name)
                return name
        raise OSError("%s: %d kept files are there already: remove some" % (self.path, KEPT))


def _exists(path):
    try:
        os.stat(path)
    except OSError as error:
        if error.args[0] == errno.ENOENT:
            return False
        raise
    return True


class BufferSlot:
    """A slot in raw memory: `size` bytes of a writable buffer (flash, FRAM, a bytearray) from `start`."""

    def __init__(self, buffer, start, size):
        self.view = memoryview(buffer)[start : start + size]

    def open(self):
        """As FileSlot.open."""
        return Stream(self.view)

    def begin(self, size: int):
        """As FileSlot.begin. ValueError for more than the slot has room for, before anything is touched."""
        if size > len(self.view):
            raise ValueError("snapshot: %d bytes do not fit a slot of %d" % (size, len(self.view)))
        return Stream(self.view)

    def sync(self, stream) -> None:
        """As FileSlot.sync: it is there."""

    def set_aside(self) -> str:
        """A memory of two slots has no room for that: OSError."""
        raise OSError("there is no room to keep it")


class Stream:
    """A buffer that is read and written as a file is, without a copy."""

    def __init__(self, view):
        self.view = view
        self.at = 0

    def seek(self, at) -> None:
        self.at = at

    def readinto(self, buffer) -> int:
        """Fill a buffer as far as there is something; how many bytes that were."""
        buffer = memoryview(buffer)
        got = min(len(buffer), len(self.view) - self.at)
        buffer[:got] = self.view[self.at : self.at + got]
        self.at += got
        return got

    def write(self, data) -> None:
        self.view[self.at : self.at + len(data)] = data
        self.at += len(data)

    def close(self) -> None:
        pass


def file_store(path: str) -> Store:
    """A Store in the files <path>.0 and <path>.1."""
    return Store([FileSlot(path + ".0"), FileSlot(path + ".1")])
