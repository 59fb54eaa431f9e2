# Products of fixed-point numbers without wide integers, for softmax, log_softmax and lstm.


def product_high(x: int, y: int) -> int:
    """x y >> 30 for 0 <= x <= 2^30, 0 <= y < 2^30."""
    a = x >> 15
    x &= 32767
    b = y >> 15
    y &= 32767
    middle = a * y + (x * y >> 15)
    return a * b + (middle >> 15) + ((middle & 32767) + x * b >> 15)


def product_low(x: int, y: int) -> int:
    """x y & 2^30 - 1, likewise."""
    low = (x & 32767) * (y & 32767)
    middle = ((x >> 15) * (y & 32767) + (low >> 15) & 32767) + (x & 32767) * (y >> 15)
    return (middle & 32767) << 15 | low & 32767


def doubling_high(x: int, y: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul, floor((x y + 2^30) / 2^31), of |x| <= 2^30 and |y| < 2^30."""
    a = abs(x)
    b = abs(y)
    high = product_high(a, b)
    if (x ^ y) >= 0:
        return (high >> 1) + (high & 1)
    return -(high + (product_low(a, b) > 0) >> 1)


def reciprocal_of(fraction: int) -> int:
    """1 / (1 + f) for 0 <= f < 1, as Q2.29 in (2^29, 2^30): Newton, three steps, as gemmlowp. -1: 2^30, which is no small int.

    fraction: half of f, Q0.31.
    """
    if not fraction:
        return -1
    r = 1010580540
    error = -fraction  # of the line that the steps begin with, then of each step, 4 times less
    shift = 0
    for _ in range(4):
        r += doubling_high(r, error) << shift
        shift = 2
        high = product_high(r, fraction)
        error = 536870912 - (high >> 1) - (r >> 1) - ((high & 1) + (r & 1) + 1 >> 1)  # 2^29 less (2^30 + fraction) r
    return r
