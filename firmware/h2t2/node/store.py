# A store: two slots, written in turn, each with a serial number and a checksum. A power cut at any byte of a save leaves the
# other slot, the last complete save, readable.
import errno
import os
from binascii import crc32
from struct import pack

from ..modules import call_once

if 0:  # for type checkers
    from ..annotations import Any, Content, Iterable, Iterator, Sequence
    from .memory_slots import BufferSlot

SERIALS = 0x3FFFFFFF  # the largest serial number of a slot; 0 follows it
FRAME = 8  # bytes before the content: serial number, size. After it comes the CRC-32 of both
END = 4


class Store:
    """Keeps one content in two slots.

    >>> from h2t2.node.memory_slots import BufferSlot
    >>> memory = bytearray(64)
    >>> store = Store([BufferSlot(memory, 0, 32), BufferSlot(memory, 32, 32)])
    >>> store.save(b"learned")
    >>> store.load()
    b'learned'

    Args:
        slots: Two of FileSlot, memory_slots.BufferSlot or a class of your own with their members.

    Attributes:
        damaged: Number of slots that were unreadable at the last look; empty: of those without a byte, or of erased flash.
    """

    def __init__(self, slots: "Sequence[FileSlot | BufferSlot]"):
        self.slots = slots
        self.damaged = self.empty = 0
        self.newest = None  # type: tuple[int, int, int] | None  # serial number, slot, bytes of the last complete save

    def open(self) -> "Content | None":
        """Return the newest complete content, or None."""
        content: "Content | None" = call_once("node.stored.open_newest", self)
        return content

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
        for _ in self.writing(len(blob), (blob,)):
            pass

    def writing(self, size: int, chunks: "Iterable[bytes | bytearray | memoryview]") -> "Iterator[None]":
        """Write a content of `size` bytes, given in chunks, over the older slot; yield after each piece of work.

        If it is closed before its end, the newer slot stays in force.
        """
        if not self.newest:
            call_once("node.stored.look", self)
            yield
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
                yield
            stream.write(pack("<I", crc & 0xFFFFFFFF))
            slot.sync(stream)
        finally:
            stream.close()
        self.newest = serial, 1 - n, size


class FileSlot:
    """A slot in a file of its own. The caller handles OSError of the file system (full, read-only)."""

    def __init__(self, path: str):
        self.path = path

    def open(self) -> "Any":
        """Return a stream of its content, or None; OSError if it cannot be read."""
        return open(self.path, "rb") if exists(self.path) else None

    def begin(self, size: int) -> "Any":
        """Return a stream that replaces the content by `size` bytes."""
        try:
            return open(self.path, "wb")
        except OSError as error:
            if error.args[0] != errno.EISDIR:
                raise
            os.rename(self.path, self.path + ".folder")  # something else made it
            return open(self.path, "wb")

    def sync(self, stream: "Any") -> None:
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
