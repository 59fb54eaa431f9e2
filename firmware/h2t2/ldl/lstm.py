# UNIDIRECTIONAL_SEQUENCE_LSTM of the integer LDL, loaded for a bundle that has one: gates and cell in 16 bits, by gemmlowp's
# fixed point. kernels.py explains p and k.
from .fixed_point import product_high, product_low
from .kernels import requantise

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, PackedUInt16s, UInt8s


def _dot(arena: bytearray, x: int, zero: int, blob: "UInt8s", w: int, n: int) -> int:
    """The sum of n products of numbers in the arena with weights."""
    acc = 0
    for i in range(n):
        acc += (arena[x + i] - zero) * (blob[w + i] - 128)
    return acc


def _saturate(x: int) -> int:
    """x clamped to 16 bits."""
    return -32768 if x < -32768 else 32767 if x > 32767 else x


def _mul(x: int, y: int) -> int:
    """gemmlowp's product of two numbers of 16 bits, as fractions of 2^15, rounded."""
    return _saturate(x * y + 16384 >> 15)


def _exp(a: int, bits: int) -> int:
    """e^a of a <= 0 with 1 to 5 integer bits, Q0.15: a Taylor series around -1/8, times a constant for each further bit."""
    if not a:
        return 32767
    quarter = 1 << 13 - bits
    fraction = (a & quarter - 1) - quarter
    quarters = fraction - a
    x = (fraction << bits) + 4096
    x2 = _mul(x, x)
    acc = _mul((_mul(x2, x2) + 2 >> 2) + _mul(x2, x), 10923) + x2
    acc = acc + (acc >= 0) >> 1
    acc = _saturate(28918 + _mul(28918, x + acc))
    for n in range(bits + 2):
        if quarters & 1 << 13 - bits + n:
            acc = _mul(acc, _STEPS[n])
    return acc


_STEPS = (25520, 19875, 12055, 4435, 600, 11, 0)  # e^-(1/4), e^-(1/2), ... e^-16 as Q0.15


def _reciprocal(a: int) -> int:
    """1 / (1 + a) of 0 <= a < 1, Q0.15, doubled as Q2.13: Newton's division, three steps."""
    half = a + 32768 >> 1
    x = 23130 + _mul(half, -15420)
    for _ in range(3):
        x += _saturate(_mul(x, 8192 - _mul(half, x)) << 2)
    return x


def sigmoid(x: int) -> int:
    """Of Q3.12, as Q0.15."""
    if not x:
        return 16384
    y = _saturate(_reciprocal(_exp(-x if x > 0 else x, 3)) << 1)
    return y if x > 0 else 32767 - y


def tanh(x: int, bits: int) -> int:
    """Of a number with so many integer bits, as Q0.15."""
    if not x:
        return 0
    y = _saturate(_reciprocal(_exp(-x if x > 0 else x, bits + 1)) - 8192 << 2)
    return y if x > 0 else -y


def _rounding_shift(x: int, n: int) -> int:
    """x / 2^n, halves away from zero."""
    return x + (1 << n >> 1) >> n if x >= 0 else -((1 << n >> 1) - x >> n)


def _gate(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants", n: int, row: int) -> int:
    """The input of gate n / cells of cell n % cells at a step (Q3.12), from the row and from the output of the row before."""
    x, y, zero, offset, _, _, w, _, inputs, cells, _, _, _ = p
    bias, limbs, shifts = k
    acc = bias[n] + _dot(arena, x + row * inputs, zero, blob, w + n * inputs, inputs)
    gate = n // cells
    total = _saturate(requantise(acc, gate, limbs, shifts))
    if row:
        acc = _dot(arena, y + (row - 1) * cells, offset, blob, w + 4 * cells * inputs + n * cells, cells)
        total = _saturate(total + requantise(acc, 4 + gate, limbs, shifts))
    return total


def lstm(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM of one sequence of `times` rows, each sequence by itself: its state begins at 0.

    Weights: of the input for the gates input, forget, cell, output, then those of the row before. Multipliers: of both for each
    gate; of what comes out. cell: where in the arena its cells are (16 bits each), with `bits` integer bits; clip: their limit.
    """
    x, y, zero, offset, low, high, w, times, inputs, cells, cell, bits, clip = p
    _, limbs, shifts = k
    for o in range(2 * cells):
        arena[cell + o] = 0
    for row in range(times):
        for o in range(cells):
            at = cell + 2 * o
            state = ((arena[at] | arena[at + 1] << 8) ^ 32768) - 32768
            state = _rounding_shift(sigmoid(_gate(arena, blob, p, k, cells + o, row)) * state, 15)
            new = tanh(_gate(arena, blob, p, k, 2 * cells + o, row), 3)
            new = _rounding_shift(sigmoid(_gate(arena, blob, p, k, o, row)) * new, 15 + bits)
            state = _saturate(state + _saturate(new))
            if clip:
                state = -clip if state < -clip else clip if state > clip else state
            arena[at] = state & 255
            arena[at + 1] = state >> 8 & 255
            new = sigmoid(_gate(arena, blob, p, k, 3 * cells + o, row)) * tanh(state, bits)
            new = _requantise_product(new, limbs, shifts) + offset
            arena[y + row * cells + o] = low if new < low else high if new > high else new


def _requantise_product(x: int, limbs: "PackedUInt16s", shifts: "UInt8s") -> int:
    """requantise() by the ninth multiplier, without a left shift, of a product of two 16-bit numbers, |x| < 2^30."""
    m = (limbs[24] & 1023) << 20 | limbs[25] << 10 | limbs[26]  # less 2^30, which the sum below adds
    a = -x if x < 0 else x
    high = product_high(a, m)
    carry = x >= 0 or product_low(a, m) > 0
    a = (a >> 1) + (high >> 1) + ((a & 1) + (high & 1) + carry >> 1)
    a = _rounding_shift(a, shifts[17])
    return -a if x < 0 else a
