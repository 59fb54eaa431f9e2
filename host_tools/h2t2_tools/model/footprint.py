"""What h2t2.ldl.open.open_ldl allocates for a bundle on a board: MicroPython's blocks of 16 bytes, objects of 32 bits."""

from __future__ import annotations

from h2t2.ldl.bundle import Int8Model

BLOCK = 16
OBJECT = 32  # an instance, a tuple of three to seven, a memoryview
ARRAY = 16  # beside its numbers


def footprint(content: bytes, mapped: bool = False) -> int:
    """Bytes of heap; mapped: the bundle stays in flash (frozen, or a file in ROMFS), else it is read into RAM."""
    model = Int8Model(content)
    total = 0 if mapped else _blocks(len(content))
    total += _blocks(len(model.arena)) + ARRAY + 3 * OBJECT + _blocks(4 * max(4, len(model.steps)))
    for _, numbers, constants in model.steps:
        total += OBJECT + ARRAY + _blocks(4 * len(numbers))
        if constants:
            biases, limbs, _ = constants
            total += 2 * OBJECT + ARRAY + _blocks(2 * len(limbs))
            total += ARRAY + _blocks(4 * len(biases)) if biases is not None else 0
    return total


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
