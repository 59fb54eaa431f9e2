# The buffers of a local model, reserved before anything else fragments the heap of a board. Each is the largest block that a
# node allocates; a heap with as many free bytes in many small blocks has no room for it. A board forgets this module once its
# node runs.
import gc
import json
from array import array
from struct import unpack_from

from ..modules import IS_BOARD, forget
from .steps import ARENA_MAX, HEADER_SIZE, STEP_SIZE, name_of

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any

OFTEN = 2048  # bytes allocated between two collections while a node starts
_reserved: "dict[int, bytearray]" = {}


def take(size: int) -> bytearray:
    """A buffer of zeros: a reserved one of that size, or a new one."""
    buffer = _reserved.pop(size, None)
    return bytearray(size) if buffer is None else buffer


def reserve(file: "Any", stream: bool) -> None:
    """Allocate what opening a bundle needs: its arena, and the bundle itself unless it lies in flash.

    Args:
        file: the bundle, open for reading in binary.
        stream: as open_ldl's: in place of the whole bundle, a buffer for the weights of its largest step.
    """
    head = file.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        return
    steps, arena = unpack_from("<6xH4x4xI", head, 0)
    sizes = [arena]
    if not in_flash(file):
        sizes.append(_largest_weights(file, steps) if stream else file.seek(0, 2))
    file.seek(0)
    for size in list(_reserved):
        if size not in sizes:  # of another model, which an update has replaced
            del _reserved[size]
    collect()
    for size in sorted(sizes, reverse=True):
        if size <= ARENA_MAX and size not in _reserved:
            _reserved[size] = bytearray(size)


def collect() -> None:
    """Collect garbage on a board, so that the next buffer finds an unbroken block. A host has enough memory."""
    if IS_BOARD:
        gc.collect()


def _largest_weights(file: "Any", steps: int) -> int:
    """Bytes of the largest weights among a bundle's steps, whose table the file is at; less where the table is damaged."""
    from .bounds import extents, weights_size

    largest = 0
    for _ in range(steps):
        head = file.read(STEP_SIZE)
        if len(head) < STEP_SIZE:
            break
        code, count = unpack_from("<HH", head, 0)
        p = array("i", file.read(4 * count))
        try:
            name = name_of(code)
            largest = max(largest, weights_size(name, p, extents(name, p)[2]))
        except (ValueError, IndexError, KeyError):
            break
    return largest


def release() -> None:
    """Free the reserved buffers that opening a model did not take, and, on a board, the code of its checks."""
    _reserved.clear()
    if IS_BOARD:
        forget("ldl.bounds")
        forget("ldl.trees_bounds")


def in_flash(file: "Any") -> bool:
    """Whether a file's bytes lie in flash, where they can stay (ROMFS)."""
    try:
        memoryview(file)
    except TypeError:
        return False
    return True


def reserve_for_node(path: str = "config.json") -> None:
    """Reserve the buffers of the model in a node's configuration, before the node's modules are imported.

    It ignores a configuration or a model that it cannot read; run.main() reports the reason later.
    """
    gc.threshold(OFTEN)  # type: ignore[attr-defined]  # garbage of the imports would lie between the modules
    try:
        with open(path) as file:
            config = json.load(file)
        with open(config["ldl"], "rb") as file:
            reserve(file, config.get("stream", False))
    except (OSError, ValueError, KeyError, MemoryError):
        pass
