# Room for the buffers of a local model, taken before anything else cuts the heap of a board into pieces. Each is the
# largest block that a node allocates, and a heap that has as many bytes free in many pieces has no room for it.
import gc
import json
from array import array
from struct import unpack_from

from ..modules import IS_BOARD, forget

HEADER_SIZE = 48
# constants of a step: after its code and counts come bias, limbs, shifts (offset each, 0: none) and how many channels
STEP = "<HHIIII"
STEP_SIZE = 20
ARENA_MAX = 67108864  # bytes; no board has as much, and a stranger's bundle may not ask for more
OFTEN = 2048  # bytes that are allocated between two collections, while a node is put together
_reserved = {}  # type: dict[int, bytearray]


def take(size: int) -> bytearray:
    """So many bytes, all 0: those that were reserved, or new ones."""
    buffer = _reserved.pop(size, None)
    return bytearray(size) if buffer is None else buffer


def reserve(file, stream: bool) -> None:
    """Take room for what opening a bundle allocates: its arena, and, unless it lies in flash, its content, or of a streamed
    one the weights of its largest step.

    file: open for reading in binary. stream: as open_ldl's.
    """
    head = file.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        return
    steps, arena = unpack_from("<6xH4x4xI", head, 0)
    sizes = [arena]
    if not in_flash(file):
        sizes.append(_largest(file, steps) if stream else file.seek(0, 2))
    file.seek(0)
    for size in list(_reserved):
        if size not in sizes:  # of another model, which an update has replaced
            del _reserved[size]
    collect()
    for size in sorted(sizes, reverse=True):
        if size <= ARENA_MAX and size not in _reserved:
            _reserved[size] = bytearray(size)


def collect() -> None:
    """Collect garbage on a board, so that the next buffer finds room in one piece. A host has room, and would take long."""
    if IS_BOARD:
        gc.collect()


def _largest(file, steps):
    """Bytes of the largest weights of a bundle's steps, whose table the file is at; less where the table is damaged."""
    from .bounds import streamed
    from .steps import name_of

    most = 0
    for _ in range(steps):
        head = file.read(STEP_SIZE)
        if len(head) < STEP_SIZE:
            break
        code, count = unpack_from("<HH", head, 0)
        p = array("i", file.read(4 * count))
        try:
            most = max(most, streamed(name_of(code), p))
        except (ValueError, IndexError, KeyError):
            break
    return most


def release() -> None:
    """A model is open, or cannot be opened: give back what was reserved and not taken, and, on a board, the checks' code."""
    _reserved.clear()
    if IS_BOARD:
        forget("ldl.bounds")


def in_flash(file) -> bool:
    """Whether a file's bytes lie in flash, where they can stay (ROMFS)."""
    try:
        memoryview(file)
    except TypeError:
        return False
    return True


def reserve_for_node(path: str = "config.json") -> None:
    """The same, for the local model of a node's configuration, before its modules are imported: board.settled() is called after
    that. What cannot be read is left to start.main(), which says why."""
    gc.threshold(OFTEN)  # type: ignore[attr-defined]  # what importing leaves behind would lie between the modules
    try:
        with open(path) as file:
            config = json.load(file)
        with open(config["ldl"], "rb") as file:
            reserve(file, config.get("stream", False))
    except (OSError, ValueError, KeyError, MemoryError):
        pass
