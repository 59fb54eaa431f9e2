# A logarithm in integers.


def log2(number: int) -> int:
    """Return the logarithm of a number, 1..2^15 - 1, to base 2, rounded down, in Q12."""
    octaves = 14
    while number < 16384:
        number <<= 1
        octaves -= 1
    for _ in range(12):
        number = number * number >> 14
        bit = number >> 15
        number >>= bit
        octaves = 2 * octaves + bit
    return octaves
