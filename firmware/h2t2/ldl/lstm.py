# UNIDIRECTIONAL_SEQUENCE_LSTM of the integer LDL, loaded for a bundle that has one: gates and cell in 16 bits, by gemmlowp's
# fixed point. As kernels.py, which says what p and k are.
from . import steps
from .kernels import _half, _product, requantise


def _dot(arena, x, zero, blob, w, n):
    """The sum of n products of numbers in the arena with weights."""
    acc = 0
    for i in range(n):
        acc += (arena[x + i] - zero) * (blob[w + i] - 128)
    return acc


if steps.machine_code:
    try:
        from .lstm_viper import dot as _dot  # noqa: F811
    except (ImportError, SyntaxError, ValueError):  # no MicroPython, no viper emitter, or a file for another processor
        pass


def _fits(x):
    """x as 16 bits hold it."""
    return -32768 if x < -32768 else 32767 if x > 32767 else x


def _mul(x, y):
    """gemmlowp's product of two numbers of 16 bits, as fractions of 2^15, rounded."""
    return _fits(x * y + 16384 >> 15)


def _exp(a, bits):
    """e^a of a <= 0 with 1 to 5 integer bits, Q0.15: a Taylor series around -1/8, times a constant for each further bit."""
    if not a:
        return 32767
    quarter = 1 << 13 - bits
    part = (a & quarter - 1) - quarter
    rest = part - a
    x = (part << bits) + 4096
    x2 = _mul(x, x)
    acc = _mul((_mul(x2, x2) + 2 >> 2) + _mul(x2, x), 10923) + x2
    acc = acc + (acc >= 0) >> 1
    acc = _fits(28918 + _mul(28918, x + acc))
    for n in range(bits + 2):
        if rest & 1 << 13 - bits + n:
            acc = _mul(acc, _STEPS[n])
    return acc


_STEPS = (25520, 19875, 12055, 4435, 600, 11, 0)  # e^-(1/4), e^-(1/2), ... e^-16 as Q0.15


def _newton(a):
    """1 / (1 + a) of 0 <= a < 1, Q0.15, doubled as Q2.13: Newton's division, three steps."""
    half = a + 32768 >> 1
    x = 23130 + _mul(half, -15420)
    for _ in range(3):
        x += _fits(_mul(x, 8192 - _mul(half, x)) << 2)
    return x


def sigmoid(x):
    """Of Q3.12, as Q0.15."""
    if not x:
        return 16384
    y = _fits(_newton(_exp(-x if x > 0 else x, 3)) << 1)
    return y if x > 0 else 32767 - y


def tanh(x, bits):
    """Of a number with so many integer bits, as Q0.15."""
    if not x:
        return 0
    y = _fits(_newton(_exp(-x if x > 0 else x, bits + 1)) - 8192 << 2)
    return y if x > 0 else -y


def _rounded(x, n):
    """x / 2^n, halves away from zero."""
    return x + (1 << n >> 1) >> n if x >= 0 else -((1 << n >> 1) - x >> n)


def _gate(arena, blob, p, k, n, row):
    """What goes into gate n / cells of cell n % cells at a step (Q3.12): of its input, and of what came out a step before."""
    x, y, zero, offset, _, _, w, _, inputs, cells, _, _, _ = p
    bias, limbs, shifts = k
    acc = bias[n] + _dot(arena, x + row * inputs, zero, blob, w + n * inputs, inputs)
    gate = n // cells
    made = _fits(requantise(acc, gate, limbs, shifts))
    if row:
        acc = _dot(arena, y + (row - 1) * cells, offset, blob, w + 4 * cells * inputs + n * cells, cells)
        made = _fits(made + requantise(acc, 4 + gate, limbs, shifts))
    return made


def lstm(arena, blob, p, k):
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
            kept = ((arena[at] | arena[at + 1] << 8) ^ 32768) - 32768
            kept = _rounded(sigmoid(_gate(arena, blob, p, k, cells + o, row)) * kept, 15)
            new = tanh(_gate(arena, blob, p, k, 2 * cells + o, row), 3)
            new = _rounded(sigmoid(_gate(arena, blob, p, k, o, row)) * new, 15 + bits)
            kept = _fits(kept + _fits(new))
            if clip:
                kept = -clip if kept < -clip else clip if kept > clip else kept
            arena[at] = kept & 255
            arena[at + 1] = kept >> 8 & 255
            new = sigmoid(_gate(arena, blob, p, k, 3 * cells + o, row)) * tanh(kept, bits)
            new = _scaled(new, limbs, shifts) + offset
            arena[y + row * cells + o] = low if new < low else high if new > high else new


def _scaled(x, limbs, shifts):
    """As requantise() by the ninth multiplier, of |x| < 2^30, a product of two numbers of 16 bits; nothing is shifted left."""
    m = (limbs[24] & 1023) << 20 | limbs[25] << 10 | limbs[26]  # less 2^30, which is added by hand
    a = -x if x < 0 else x
    _product(a, m)
    carry = x >= 0 or _half[1] > 0
    a = (a >> 1) + (_half[0] >> 1) + ((a & 1) + (_half[0] & 1) + carry >> 1)
    a = _rounded(a, shifts[17])
    return -a if x < 0 else a
