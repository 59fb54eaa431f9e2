# A logarithm in integers.


def log2(x: int) -> int:
    """Return the logarithm of x, 1..2^15 - 1, to base 2, rounded down, in Q12."""
    y = 14
    while x < 16384:
        x <<= 1
        y -= 1
    for _ in range(12):
        x = x * x >> 14
        bit = x >> 15
        x >>= bit
        y = 2 * y + bit
    return y
