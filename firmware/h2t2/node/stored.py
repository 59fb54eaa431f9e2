# Reads a store: the newest complete content of its two slots. A board has this module in memory only while it reads.
from binascii import crc32
from struct import unpack_from

from .store import END, FRAME, SERIALS

if 0:  # for type checkers
    from ..annotations import Any, Callable
    from .store import Store

STRETCH = 128  # bytes to read at once


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


def look(store: "Store") -> None:
    """Set the `newest` complete slot of a store, and how many are `damaged` or `empty`. OSError if that leaves none."""
    store.newest = failure = None
    store.damaged = store.empty = 0
    buffer = bytearray(STRETCH)
    for n in (0, 1):
        stream, size = None, -1
        try:
            stream = store.slots[n].open()
            if stream:
                serial, size = _checked(store, stream, buffer)
        except OSError as error:  # a bad block, a folder in its place
            failure = error
            store.damaged += 1
        finally:
            if stream:
                stream.close()
        if size >= 0 and (not store.newest or 0 < (serial - store.newest[0]) & SERIALS <= SERIALS >> 1):
            store.newest = serial, n, size
    if failure and not store.newest:
        raise failure


def open_newest(store: "Store") -> Content | None:
    """Return the newest complete content of a store, or None. What cannot be read is tried twice."""
    try:
        return _open_newest(store)
    except OSError:
        return _open_newest(store)


def _open_newest(store: "Store") -> Content | None:
    look(store)
    if not store.newest:
        return None
    _, n, size = store.newest
    return Content(store.slots[n].open(), FRAME, size)


def _checked(store: "Store", stream: "Any", buffer: bytearray) -> "tuple[int, int]":
    """Return serial number and bytes of a slot's content; (0, -1) for none. Count a damaged one."""
    got = stream.readinto(memoryview(buffer)[:FRAME])
    if not got or buffer[:got] == b"\xff" * got:  # nothing, or erased flash
        store.empty += 1
        return 0, -1
    if got == FRAME:
        serial, size = unpack_from("<II", buffer, 0)
        if serial <= SERIALS and (_matches(stream, buffer, size, crc32, 0) or _matches_older(stream, buffer, size)):
            return serial, size
    store.damaged += 1
    return 0, -1


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
