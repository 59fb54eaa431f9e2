"""What h2t2.ldl.open.open_ldl allocates for a bundle on a board: MicroPython's blocks of 16 bytes, objects of 32 bits."""

from __future__ import annotations

from io import BytesIO

from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.steps import FAST
from h2t2.ldl.streamed import Streamed

BLOCK = 16
OBJECT = 32  # an instance, a tuple of three to seven
ARRAY = 16  # beside its numbers; a memoryview
MODEL = 240  # the Int8Model: itself, a table of its 14 attributes, its lists and views
FILE = 1168  # open on littlefs as the Pico formats it: a cache of 1,024 bytes and the object around it


def footprint(content: bytes, mapped: bool = False, streamed: bool = False) -> int:
    """Bytes of heap; mapped: the bundle stays in flash (frozen, or a file in ROMFS); streamed: so do its weights, read a layer
    at a time; else it is read into RAM."""
    model = Streamed(BytesIO(content)) if streamed else Int8Model(content)
    total = 0 if mapped or streamed else _blocks(len(content))
    if isinstance(model, Streamed):
        lists = 2 * (BLOCK + _blocks(4 * len(model.steps)))
        total += _blocks(len(model.weights)) + FILE + 3 * OBJECT + lists + 2 * BLOCK * len(model.steps)
    total += _blocks(len(model.arena)) + ARRAY + MODEL + _blocks(4 * max(4, len(model.steps)))
    for step, numbers, constants in model.steps:
        total += OBJECT + ARRAY + _blocks(4 * len(numbers))
        if constants:
            biases, limbs, _ = constants
            there = step.__name__ in FAST and not streamed  # machine code reads them where they are
            total += OBJECT + ARRAY + ARRAY + (0 if there else _blocks(2 * len(limbs)))
            total += ARRAY + (0 if there else _blocks(4 * len(biases))) if biases is not None else 0
    total += sum(OBJECT + ARRAY + _blocks(4 * len(numbers)) for numbers in model.states)
    return total


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
