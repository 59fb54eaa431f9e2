# The spectrum of integers within 16 bits, for window.py. For boards the compiler makes machine code of it.
from array import array

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Int32s

# a quarter of a sine, Q14: 0 to pi / 2 in 64 steps
SINE = array(
    "H",
    (
        0, 402, 804, 1205, 1606, 2006, 2404, 2801, 3196, 3590, 3981, 4370, 4756, 5139, 5520, 5897, 6270, 6639, 7005, 7366, 7723,
        8076, 8423, 8765, 9102, 9434, 9760, 10080, 10394, 10702, 11003, 11297, 11585, 11866, 12140, 12406, 12665, 12916, 13160,
        13395, 13623, 13842, 14053, 14256, 14449, 14635, 14811, 14978, 15137, 15286, 15426, 15557, 15679, 15791, 15893, 15986,
        16069, 16143, 16207, 16261, 16305, 16340, 16364, 16379, 16384,
    ),
)  # fmt: skip


def transform(real: "Int32s", imaginary: "Int32s", n: int) -> None:
    """Replace n = 2, 4 ... 256 numbers by their Fourier transform divided by n: radix 2, halved at every stage."""
    j = 0
    for i in range(1, n):  # put the numbers into bit-reversed order
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            x = real[i]
            real[i] = real[j]
            real[j] = x
    half = 1
    turn = 128  # of 256 steps, between two neighbours
    while half < n:
        step = 0
        for k in range(half):
            if step <= 64:
                c = SINE[64 - step]
                s = SINE[step]
            else:
                c = -SINE[step - 64]
                s = SINE[128 - step]
            a = k
            while a < n:
                b = a + half
                x = real[b]
                v = imaginary[b]
                y = v * c - x * s >> 14
                x = x * c + v * s >> 14
                u = real[a]
                v = imaginary[a]
                real[a] = u + x >> 1
                real[b] = u - x >> 1
                imaginary[a] = v + y >> 1
                imaginary[b] = v - y >> 1
                a = b + half
            step += turn
        half <<= 1
        turn >>= 1


def measure(real: "Int32s", imaginary: "Int32s", n: int) -> None:
    """Replace n real parts by magnitudes, rounded down."""
    for i in range(n):
        power = real[i] * real[i] + imaginary[i] * imaginary[i]
        root = 0
        bit = 1 << 28
        if power >> 30:
            bit <<= 2
        while bit:
            if power >= root + bit:
                power -= root + bit
                root = (root >> 1) + bit
            else:
                root >>= 1
            bit >>= 2
        real[i] = root
