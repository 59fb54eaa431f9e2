# The dense layer. kernels.py explains p and k.
from .kernels import requantise, store_byte

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def fully_connected(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """FULLY_CONNECTED of one row."""
    x, y, zero, offset, low, high, w, inputs, outputs, w_zero = p
    bias, limbs, shifts = k
    total = 0  # times w_zero it is the same in every output
    for i in range(inputs):
        total += arena[x + i] - zero
    total *= w_zero
    for o in range(outputs):
        acc = bias[o] - total
        for i in range(inputs):
            acc += (arena[x + i] - zero) * blob[w + i]
        w += inputs
        store_byte(arena, y + o, requantise(acc, o, limbs, shifts) + offset, low, high)
