# The names in annotations that a board has not. Type checkers and the compiler for boards read them; nothing runs this.
from array import array as array
from collections.abc import Awaitable as Awaitable
from collections.abc import Callable as Callable
from collections.abc import Iterable as Iterable
from collections.abc import Iterator as Iterator
from collections.abc import Sequence as Sequence
from io import BufferedIOBase
from typing import IO as IO
from typing import Any as Any
from typing import Protocol

# classes that others of the node name, which import them or are imported by them
from h2t2.node.app import App as App
from h2t2.node.restoring import Integers as Integers
from h2t2.node.service import Service as Service
from h2t2.node.stored import Content as Content

# arrays by what an item is
Int32s = array[int]  # array("i")
Int16s = array[int]  # array("h")
UInt16s = array[int]  # array("H")
UInt8s = array[int] | bytes | bytearray | memoryview  # array("B")
PackedInt32s = UInt8s  # numbers of a bundle: an array("i"), or for machine code their bytes, at any address
PackedUInt16s = UInt8s  # likewise array("H")
Constants = tuple[PackedInt32s, PackedUInt16s, UInt8s]  # k, see ldl/kernels.py

BinaryIO = BufferedIOBase  # of open(path, "rb"), or a BytesIO

Kernel = Callable[..., None]  # kernel(arena, blob, p, k), see ldl/kernels.py

Config = dict[str, Any]  # config.json
Act = Callable[[Any, int, int, int], object]  # tag, bin, decision, source
Log = Callable[[str], object]
Feed = Callable[[], object]  # of the watchdog
Opener = Callable[..., Any]

class Stream(Protocol):
    """A line of bytes, for link/serial.py."""

    def read(self) -> bytes | None:
        """The bytes that have come, without waiting."""

    def wait(self, ms: int) -> object:
        """Wait for more bytes, at most so long."""

    def write(self, data: bytes) -> object:
        """Send bytes."""

    def close(self) -> None:
        """End the use of the line."""
