# The spectrum of window.py as machine code by MicroPython's viper emitter: the same integers. A native word has 32 or 64 bits,
# and viper does not extend the sign of 32 bits that it loads; so the arrays hold each number plus BIAS, never negative.
from array import array

import micropython
from micropython import const

BIAS = const(131072)  # more than a real or imaginary part, which is at most 2^15 and some rounding
sine_table = array("H")


def spectrum(values, sines):
    """Return the magnitudes of n / 2 frequencies of n = 2, 4 ... 256 integers within 16 bits; sines: window._SINE."""
    global sine_table
    if not sine_table:
        sine_table = array("H", sines)
    n = len(values)
    real = array("i", values)
    imaginary = array("i", real)
    transform(real, imaginary, sine_table, n)
    magnitudes(real, imaginary, n)
    return list(real[1 : n // 2 + 1])


@micropython.viper
def transform(real, imaginary, sines, count: int):
    re = ptr32(real)
    im = ptr32(imaginary)
    sine = ptr16(sines)
    n = count
    i = 0
    while i < n:
        re[i] = int(re[i]) + BIAS
        im[i] = BIAS
        i += 1
    j = 0
    i = 1
    while i < n:  # put the numbers into bit-reversed order
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            x = int(re[i])
            re[i] = re[j]
            re[j] = x
        i += 1
    half = 1
    turn = 128  # of 256 steps, between two neighbours
    while half < n:
        k = 0
        step = 0
        while k < half:
            if step <= 64:  # cosine and negative sine of step / 256 of a turn
                c = int(sine[64 - step])
                s = 0 - int(sine[step])
            else:
                c = 0 - int(sine[step - 64])
                s = 0 - int(sine[128 - step])
            a = k
            while a < n:
                b = a + half
                u = int(re[b]) - BIAS
                v = int(im[b]) - BIAS
                x = u * c - v * s >> 14
                y = u * s + v * c >> 14
                u = int(re[a]) - BIAS
                v = int(im[a]) - BIAS
                re[a] = (u + x >> 1) + BIAS
                im[a] = (v + y >> 1) + BIAS
                re[b] = (u - x >> 1) + BIAS
                im[b] = (v - y >> 1) + BIAS
                a = b + half
            k += 1
            step += turn
        half <<= 1
        turn >>= 1


@micropython.viper
def magnitudes(real, imaginary, count: int):
    re = ptr32(real)
    im = ptr32(imaginary)
    half = count >> 1
    i = 1
    while i <= half:
        u = int(re[i]) - BIAS
        v = int(im[i]) - BIAS
        power = u * u + v * v
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
        re[i] = root
        i += 1
