# The operators that change each number, or only move it. kernels.py explains p and k.
from .kernels import requantise, store_byte

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def arithmetic(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """ADD (operation 0), SUB (1; 2: second less first), MUL (3). Multipliers: of the result; of each input.

    The second may be smaller, and a constant in the bundle: each of its `outer` rows of `inner` bytes counts `repeat` times.
    """
    x, y, zero, offset, low, high, second, second_zero, constant, outer, repeat, inner, operation = p
    _, limbs, shifts = k
    memory = blob if constant else arena
    for row in range(outer * repeat):
        at = second + row // repeat * inner
        for i in range(inner):
            acc = arena[x] - zero
            operand = memory[at + i] - second_zero
            if operation == 3:
                acc *= operand
            else:
                acc = requantise(acc << 20, 1, limbs, shifts)
                operand = requantise(operand << 20, 2, limbs, shifts)
                if operation == 2:
                    acc = -acc
                acc += -operand if operation == 1 else operand
            store_byte(arena, y, requantise(acc, 0, limbs, shifts) + offset, low, high)
            x += 1
            y += 1


def rescale(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """QUANTIZE from int8 to int8, RELU and RELU6."""
    x, y, zero, offset, low, high, _, count = p
    _, limbs, shifts = k
    for i in range(count):
        store_byte(arena, y + i, requantise(arena[x + i] - zero, 0, limbs, shifts) + offset, low, high)


def concatenate(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """One input of a CONCATENATION whose inputs all have the output's quantisation: runs of `size` bytes, `step` apart."""
    x, y, _, _, _, _, _, runs, size, step = p
    for i in range(runs):
        for j in range(size):
            arena[y + i * step + j] = arena[x + i * size + j]
