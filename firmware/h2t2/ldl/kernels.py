# The operators of the integer LDL: int8 in, int8 out, the bytes of TFLite's reference kernels. Integers only; no bundle here.
#
# Activations and weights are bytes u = q + 128, so that no sign has to be put back. p: a step's parameters (array "i"),
# No two values are assigned at once: small ports make a tuple of them.
# k: its constants (bias: array "i", multipliers: array "H" of three limbs a channel, shifts: bytes left, right a channel).
from array import array


def requantise(x, at, limbs, shifts):
    """x times channel `at`'s multiplier, rounded twice as gemmlowp does; |x| << left < 2^29, right <= 30: every intermediate
    is below 2^30.

    The multiplier (31 bits) is a 2^20 + b 2^10 + c. First rounding: (x m + nudge) / 2^31 toward zero, nudge 2^30 or, for
    x < 0, 1 - 2^30. Second: a right shift, half away from zero.
    """
    c = 3 * at
    a = limbs[c]
    b = limbs[c + 1]
    c = limbs[c + 2]
    negative = x < 0
    if negative:
        x = -x
    x <<= shifts[2 * at]
    h = x >> 15
    x &= 32767
    s = x * c
    low = s & 1023
    s = x * b + (s >> 10) + (h * c << 5)
    low |= s & 1023
    s = x * a + (s >> 10) + (h * b << 5) + 1024
    if negative and not low:
        s -= 1
    x = (s >> 11) + (h * a << 4)
    c = shifts[2 * at + 1]
    if c:
        x = x + (1 << c - 1) >> c
    return -x if negative else x


def _put(arena, to, y, p):
    """Clamp y + zero point (p[3], a byte) to p[4]..p[5] and store it."""
    y += p[3]
    arena[to] = p[4] if y < p[4] else p[5] if y > p[5] else y


# p: 0 input, 1 output, 2 input zero point, 3 output zero point, 4 low, 5 high, 6 weights, 7.. of its own (bytes, offsets)


def fully_connected(arena, blob, p, k):
    """7: inputs, 8: outputs."""
    bias, limbs, shifts = k
    x = p[0]
    y = p[1]
    zero = p[2]
    w = p[6]
    n = p[7]
    for o in range(p[8]):
        acc = bias[o]
        for i in range(n):
            acc += (arena[x + i] - zero) * (blob[w + i] - 128)
        w += n
        _put(arena, y + o, requantise(acc, o, limbs, shifts), p)


def conv_2d(arena, blob, p, k):
    """7, 8, 9: input height, width, channels; 10, 11, 12: output's; 13, 14: kernel; 15, 16: stride; 17, 18: padding before;
    19, 20: dilation."""
    bias, limbs, shifts = k
    height = p[7]
    width = p[8]
    depth = p[9]
    zero = p[2]
    to = p[1]
    for oy in range(p[10]):
        top = oy * p[15] - p[17]
        for ox in range(p[11]):
            left = ox * p[16] - p[18]
            w = p[6]
            for o in range(p[12]):
                acc = bias[o]
                for ky in range(p[13]):
                    iy = top + ky * p[19]
                    if 0 <= iy < height:
                        for kx in range(p[14]):
                            ix = left + kx * p[20]
                            if 0 <= ix < width:
                                x = p[0] + (iy * width + ix) * depth
                                at = w + (ky * p[14] + kx) * depth
                                for i in range(depth):
                                    acc += (arena[x + i] - zero) * (blob[at + i] - 128)
                w += p[13] * p[14] * depth
                _put(arena, to, requantise(acc, o, limbs, shifts), p)
                to += 1


def depthwise_conv_2d(arena, blob, p, k):
    """As conv_2d; 21: multiplier, output channels a channel of the input."""
    bias, limbs, shifts = k
    height = p[7]
    width = p[8]
    depth = p[9]
    zero = p[2]
    to = p[1]
    many = p[21]
    for oy in range(p[10]):
        top = oy * p[15] - p[17]
        for ox in range(p[11]):
            left = ox * p[16] - p[18]
            for o in range(p[12]):
                acc = bias[o]
                for ky in range(p[13]):
                    iy = top + ky * p[19]
                    if 0 <= iy < height:
                        for kx in range(p[14]):
                            ix = left + kx * p[20]
                            if 0 <= ix < width:
                                x = arena[p[0] + (iy * width + ix) * depth + o // many] - zero
                                acc += x * (blob[p[6] + (ky * p[14] + kx) * p[12] + o] - 128)
                _put(arena, to, requantise(acc, o, limbs, shifts), p)
                to += 1


def pool_2d(arena, blob, p, k):
    """As conv_2d up to 18; 19: 1 for the average, 0 for the greatest. Taps in the padding do not count."""
    height = p[7]
    width = p[8]
    depth = p[9]
    to = p[1]
    for oy in range(p[10]):
        top = oy * p[15] - p[17]
        for ox in range(p[11]):
            left = ox * p[16] - p[18]
            for o in range(depth):
                total = count = 0
                best = 0
                for ky in range(p[13]):
                    iy = top + ky
                    if 0 <= iy < height:
                        for kx in range(p[14]):
                            ix = left + kx
                            if 0 <= ix < width:
                                x = arena[p[0] + (iy * width + ix) * depth + o]
                                count += 1
                                total += x - 128
                                if x > best:
                                    best = x
                if p[19]:
                    best = (total + count // 2) // count if total > 0 else -((count // 2 - total) // count)
                    best += 128
                arena[to] = p[4] if best < p[4] else p[5] if best > p[5] else best
                to += 1


def mean(arena, blob, p, k):
    """Over height and width; 7: positions, 8: channels."""
    _, limbs, shifts = k
    n = p[7]
    depth = p[8]
    for o in range(depth):
        acc = -n * p[2]
        for i in range(n):
            acc += arena[p[0] + i * depth + o]
        _put(arena, p[1] + o, requantise(acc, 0, limbs, shifts), p)


def add(arena, blob, p, k):
    """Two inputs of one shape; 6: the other's place, 7: its zero point, 8: numbers. Multipliers: of each input, the sum."""
    _, limbs, shifts = k
    for i in range(p[8]):
        acc = requantise((arena[p[0] + i] - p[2]) << 20, 0, limbs, shifts)
        acc += requantise((arena[p[6] + i] - p[7]) << 20, 1, limbs, shifts)
        _put(arena, p[1] + i, requantise(acc, 2, limbs, shifts), p)


def multiply(arena, blob, p, k):
    """As add."""
    _, limbs, shifts = k
    for i in range(p[8]):
        acc = (arena[p[0] + i] - p[2]) * (arena[p[6] + i] - p[7])
        _put(arena, p[1] + i, requantise(acc, 0, limbs, shifts), p)


def rescale(arena, blob, p, k):
    """QUANTIZE from int8 to int8, RELU, RELU6; 7: numbers."""
    _, limbs, shifts = k
    for i in range(p[7]):
        _put(arena, p[1] + i, requantise(arena[p[0] + i] - p[2], 0, limbs, shifts), p)


def pad(arena, blob, p, k):
    """7, 8, 9: input height, width, channels; 10, 11: output's; 12, 13: rows and columns before. Fills with p[3]."""
    depth = p[9]
    to = p[1]
    for oy in range(p[10]):
        iy = oy - p[12]
        for ox in range(p[11]):
            ix = ox - p[13]
            inside = 0 <= iy < p[7] and 0 <= ix < p[8]
            x = p[0] + (iy * p[8] + ix) * depth
            for i in range(depth):
                arena[to] = arena[x + i] if inside else p[3]
                to += 1


def concatenate(arena, blob, p, k):
    """One input of a CONCATENATION, of the output's quantisation; 7: runs, 8: bytes of a run, 9: bytes of the output's run."""
    for i in range(p[7]):
        for j in range(p[8]):
            arena[p[1] + i * p[9] + j] = arena[p[0] + i * p[8] + j]


def look_up(arena, blob, p, k):
    """LOGISTIC and every other function of one number; 6: its table of 256 bytes, 7: numbers."""
    for i in range(p[7]):
        arena[p[1] + i] = blob[p[6] + arena[p[0] + i]]


_half = array("i", [0, 0])


def _product(x, y):
    """x y for 0 <= x <= 2^30, 0 <= y < 2^30, as _half: (x y >> 30, x y & 2^30 - 1)."""
    a = x >> 15
    x &= 32767
    b = y >> 15
    y &= 32767
    low = x * y
    middle = a * y + (low >> 15)
    high = a * b + (middle >> 15)
    middle = (middle & 32767) + x * b
    _half[0] = high + (middle >> 15)
    _half[1] = (middle & 32767) << 15 | low & 32767


def _high(x, y):
    """gemmlowp's SaturatingRoundingDoublingHighMul, floor((x y + 2^30) / 2^31), of 0 <= x <= 2^30 and |y| < 2^30."""
    if y >= 0:
        _product(x, y)
        return (_half[0] >> 1) + (_half[0] & 1)
    _product(x, -y)
    return -(_half[0] + (_half[1] > 0) >> 1)


def reciprocal(total, bits):
    """1 / (1 + f) for 1 + f = total 2^bits / 2^31 in [1, 2), as Q2.29 in (2^29, 2^30): Newton, three steps, as gemmlowp.

    -1 stands for 2^30, which is no small int.

    total: sum of exponentials, Q12.19; bits: its leading zeros, so that 2^31 <= total 2^bits < 2^32.
    """
    # half of 1 + f is 2^30 + rest, Q0.31: too wide for a small int, so its leading bit is put back by hand
    rest = (total - (1 << 31 - bits)) << bits - 1
    if not rest:
        return -1
    r = 1010580540 + _high(1010580540, -rest)
    for _ in range(3):
        _product(r, rest)
        whole = (_half[0] >> 1) + (r >> 1) + ((_half[0] & 1) + (r & 1) + 1 >> 1)  # of (2^30 + rest) r
        r += _high(r, 536870912 - whole) << 2
    return r


def share(r, e, odd, shift):
    """r times an exponential, Q0.8: gemmlowp's product of the doubled reciprocal with 2 e + odd (Q0.31), then a rounding shift.

    r: of reciprocal(); shift: 35 - bits, 23 at least.
    """
    if r < 0:  # 2^30: its double saturates at 2^31 - 1
        if e > 536870912 and not odd:
            e -= 1
        return (e >> shift - 2) + 1 >> 1
    _product(r, e)
    r = odd and r
    low = (_half[1] >> 1) + (r >> 2) + ((_half[1] & 1) + (r >> 1 & 1) >> 1) + 134217728
    return (_half[0] + (low >> 29) >> shift - 2) + 1 >> 1


def softmax(arena, blob, p, k):
    """p[8] rows of p[7] numbers, in gemmlowp's fixed point; 6: a table, exp of minus 0..255 steps, Q0.31 in 4 bytes each."""
    n = p[7]
    w = p[6]
    for row in range(p[8]):
        x = p[0] + row * n
        y = p[1] + row * n
        top = 0
        for i in range(n):
            if arena[x + i] > top:
                top = arena[x + i]
        total = 0
        for i in range(n):
            at = w + (top - arena[x + i] << 2)
            total += ((blob[at + 3] << 16 | blob[at + 2] << 8 | blob[at + 1]) >> 3) + 1 >> 1  # rounded to Q12.19
        bits = 31
        while total >> 32 - bits:
            bits -= 1
        r = reciprocal(total, bits)
        for i in range(n):
            at = w + (top - arena[x + i] << 2)
            e = blob[at + 3] << 23 | blob[at + 2] << 15 | blob[at + 1] << 7 | blob[at] >> 1
            e = share(r, e, blob[at] & 1, 35 - bits)
            arena[y + i] = 255 if e > 255 else e


# a step's code in a bundle is its place here; 0 does nothing
NAMES = (
    "", "fully_connected", "conv_2d", "depthwise_conv_2d", "pool_2d", "mean", "add", "multiply", "rescale", "pad",
    "concatenate", "look_up", "softmax",
)  # fmt: skip
STEPS = tuple([globals().get(name) for name in NAMES])
