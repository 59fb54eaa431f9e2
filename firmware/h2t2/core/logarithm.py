# A logarithm in integers.


def log2(x: int) -> int:
    """Return the logarithm of x, 1..2^15 - 1, to base 2, rounded down, in Q12."""
    y = -1
    shift = x
    while shift:
        y += 1
        shift >>= 1
    x <<= 14 - y
    for _ in range(12):
        x = x * x >> 14
        y <<= 1
        if x >= 32768:
            x >>= 1
            y += 1
    return y
