# A store: two slots, written in turn, each with a serial number and a checksum. A power cut at any byte of a save leaves the
# other slot, the last complete save, readable.
import errno
import os
from binascii import crc32
from struct import pack, unpack_from

if 0:  # for type checkers
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, BinaryIO

    from .memory_slots import BufferSlot

SERIALS = 0x3FFFFFFF  # the largest serial number of a slot; 0 follows it
STRETCH = 128  # bytes to read at once
FRAME = 8  # bytes before the content: serial number, size. After it comes the CRC-32 of both
END = 4


class Content:
    """`size` bytes of a stream from `start` on. close() it at the end."""

    def __init__(self, stream: "Any", start: int, size: int):
        self.stream = stream
        self.start = start
        self.size = size

    def readinto(self, at: int, buffer: "bytearray | memoryview") -> None:
        """Fill a buffer from byte `at` on, as far as there are bytes."""
        self.stream.seek(self.start + at)
        self.stream.readinto(buffer)

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()


class Store:
    """Keeps one content in two slots.

    Args:
        slots: Two of FileSlot, memory_slots.BufferSlot or a class of your own with their members.

    Attributes:
        damaged: Number of slots that were unreadable at the last look.
    """

    def __init__(self, slots: "Sequence[FileSlot | BufferSlot]"):
        self.slots = slots
        self.damaged = 0
        self.newest = None  # type: tuple[int, int, int] | None  # serial number, slot, bytes of the last complete save

    def _look(self) -> None:
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

    def _checked(self, stream: "Any", buffer: bytearray) -> "tuple[int, int]":
        """Return serial number and bytes of a slot's content; (0, -1) for none. Count a damaged one."""
        got = stream.readinto(memoryview(buffer)[:FRAME])
        if not got or buffer[:got] == b"\xff" * got:  # nothing, or erased flash
            return 0, -1
        if got == FRAME:
            serial, size = unpack_from("<II", buffer, 0)
            if serial <= SERIALS and (_matches(stream, buffer, size, crc32, 0) or _matches_older(stream, buffer, size)):
                return serial, size
        self.damaged += 1
        return 0, -1

    def open(self) -> Content | None:
        """Return the newest complete content, or None."""
        self._look()
        if not self.newest:
            return None
        _, n, size = self.newest
        return Content(self.slots[n].open(), FRAME, size)

    def load(self) -> bytes | None:
        """Return the newest complete content as bytes, or None."""
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

    def write(self, size: int, chunks: "Iterable[bytes | bytearray | memoryview]") -> None:
        """Write a content of `size` bytes, given in chunks, over the older slot."""
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


def _matches(stream: "Any", buffer: bytearray, size: int, checksum: "Callable[[Any, int], int]", start: int) -> bool:
    """Return whether a frame of so many bytes is intact by a checksum that begins at `start`."""
    view = memoryview(buffer)
    stream.seek(0)
    remaining = FRAME + size
    while remaining:
        got = stream.readinto(view[: min(remaining, STRETCH)])
        if not got:
            return False
        start = checksum(view[:got], start)
        remaining -= got
    return bool(stream.readinto(view[:END]) == END and unpack_from("<I", buffer, 0)[0] == start & 0xFFFFFFFF)


def _matches_older(stream: "Any", buffer: bytearray, size: int) -> bool:
    """Return the same for frames of runtimes before snapshot version 5, which had another checksum."""
    from .crc24 import START, crc24

    return _matches(stream, buffer, size, crc24, START)


class FileSlot:
    """A slot in a file of its own. The caller handles OSError of the file system (full, read-only)."""

    def __init__(self, path: str):
        self.path = path

    def open(self) -> "Any":
        """Return a stream of its content, or None; OSError if it cannot be read."""
        return open(self.path, "rb") if exists(self.path) else None

    def begin(self, size: int) -> "Any":
        """Return a stream that replaces the content by `size` bytes."""
        return open(self.path, "wb")

    def sync(self, stream: "BinaryIO") -> None:
        """Write to the disk what was written to the stream."""
        stream.flush()
        if hasattr(os, "fsync"):  # CPython has it; a board's file system writes at close
            os.fsync(stream.fileno())


def exists(path: str) -> bool:
    """Return whether there is a file; OSError if the file system does not say."""
    try:
        os.stat(path)
    except OSError as error:
        if error.args[0] == errno.ENOENT:
            return False
        raise
    return True


def file_store(path: str) -> Store:
    """Return a Store in the files <path>.0 and <path>.1."""
    return Store([FileSlot(path + ".0"), FileSlot(path + ".1")])
