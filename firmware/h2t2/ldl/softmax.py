# SOFTMAX in gemmlowp's fixed point, without wide integers. kernels.py explains p and k.
from .fixed_point import product_high, product_low, reciprocal_of

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def reciprocal(total: int, bits: int) -> int:
    """1 / (1 + f) for 1 + f = total 2^bits / 2^31 in [1, 2), as Q2.29 in (2^29, 2^30): Newton, three steps, as gemmlowp.

    -1 stands for 2^30, which is no small int.

    total: sum of exponentials, Q12.19; bits: its leading zeros, so that 2^31 <= total 2^bits < 2^32.
    """
    # half of 1 + f is 2^30 + fraction, Q0.31: too wide for a small int, so the code below adds its leading bit
    return reciprocal_of((total - (1 << 31 - bits)) << bits - 1)


def share(r: int, e: int, odd: int, shift: int) -> int:
    """r times an exponential, Q0.8: gemmlowp's product of the doubled reciprocal with 2 e + odd (Q0.31), then a rounding shift.

    r: of reciprocal(); shift: 35 - bits, 23 at least.
    """
    if r < 0:  # 2^30: its double saturates at 2^31 - 1
        if e > 536870912 and not odd:
            e -= 1
        return (e >> shift - 2) + 1 >> 1
    high = product_high(r, e)
    low = product_low(r, e)
    r = odd and r
    low = (low >> 1) + (r >> 2) + ((low & 1) + (r >> 1 & 1) >> 1) + 134217728
    return (high + (low >> 29) >> shift - 2) + 1 >> 1


def softmax(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """SOFTMAX row by row, in gemmlowp's fixed point. Its table: exp of minus 0..255 steps, Q0.31 in four bytes each."""
    x, y, _, _, _, _, table, classes, rows = p
    for _ in range(rows):
        top = total = 0
        for i in range(classes):
            if arena[x + i] > top:
                top = arena[x + i]
        for i in range(classes):
            at = table + (top - arena[x + i] << 2)
            total += ((blob[at + 3] << 16 | blob[at + 2] << 8 | blob[at + 1]) >> 3) + 1 >> 1  # rounded to Q12.19
        bits = 31
        while total >> 32 - bits:
            bits -= 1
        r = reciprocal(total, bits)
        for i in range(classes):
            at = table + (top - arena[x + i] << 2)
            e = blob[at + 3] << 23 | blob[at + 2] << 15 | blob[at + 1] << 7 | blob[at] >> 1
            e = share(r, e, blob[at] & 1, 35 - bits)
            arena[y + i] = 255 if e > 255 else e
        x += classes
        y += classes
