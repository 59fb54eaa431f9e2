# Slots of a store in raw memory instead of files, for programs that keep a snapshot in flash or FRAM.


class BufferSlot:
    """A slot in raw memory: `size` bytes of a writable buffer (flash, FRAM, a bytearray) from `start`."""

    def __init__(self, buffer: "bytearray | memoryview", start: int, size: int):
        self.view = memoryview(buffer)[start : start + size]

    def open(self) -> "Stream":
        """Return a stream of the slot's bytes, to read from its first byte."""
        return Stream(self.view)

    def begin(self, size: int) -> "Stream":
        """Return a stream to write `size` bytes. ValueError, and the slot unchanged, for more bytes than it has."""
        if size > len(self.view):
            raise ValueError("snapshot: %d bytes do not fit a slot of %d" % (size, len(self.view)))
        return Stream(self.view)

    def sync(self, stream: "Stream") -> None:
        """Do nothing: memory holds what was written."""


class Stream:
    """A buffer with the methods of a file, without a copy."""

    def __init__(self, view: memoryview):
        self.view = view
        self.at = 0

    def seek(self, at: int) -> None:
        """Move to a byte."""
        self.at = at

    def readinto(self, buffer: "bytearray | memoryview") -> int:
        """Fill a buffer as far as there are bytes; return their number."""
        buffer = memoryview(buffer)
        got = min(len(buffer), len(self.view) - self.at)
        buffer[:got] = self.view[self.at : self.at + got]
        self.at += got
        return got

    def write(self, data: "bytes | bytearray | memoryview") -> None:
        """Write bytes."""
        self.view[self.at : self.at + len(data)] = data
        self.at += len(data)

    def close(self) -> None:
        """Do nothing."""
