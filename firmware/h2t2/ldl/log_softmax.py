# LOG_SOFTMAX of the integer LDL, loaded for a bundle that has one: gemmlowp's fixed point without wide integers. kernels.py
# explains p and k. Where a number of 31 bits is too wide for a small int, the code keeps it less 2^30.
from .fixed_point import doubling_high, product_high, product_low, reciprocal_of

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s

SQRT_HALF, FOURTH_ROOT, LN_2 = 444758426, 732069477, 414780412  # sqrt(1/2), its square root, ln 2: Q0.31, less 2^30
ALPHA_N, ALPHA_D, ALPHA_I, ALPHA_F = 117049297, 127690142, -15922055, 638450708  # likewise; ALPHA_I less 2^30


def _wide_high(x: int, y: int) -> int:
    """The same of 2^30 + x and y, for 0 <= x < 2^30 and |y| < 2^30."""
    a = abs(y)
    high = product_high(x, a)
    carry = y >= 0 or product_low(x, a) > 0
    high = (high >> 1) + (a >> 1) + ((high & 1) + (a & 1) + carry >> 1)
    return high if y >= 0 else -high


def _both_wide_high(x: int, y: int) -> int:
    """The same of 2^30 + x and 2^30 + y, for 0 <= x, y < 2^30; less 2^30."""
    high = product_high(x, y)
    return (x >> 1) - 536870912 + (y >> 1) + (high >> 1) + ((x & 1) + (y & 1) + (high & 1) + 1 >> 1)


def _sum(power: int, numerator: int, denominator: int) -> int:
    """power ln 2 + numerator / (1 + denominator), as Q5.26; power: Q6.25; the others: Q0.31, denominator less 2^30."""
    numerator = numerator + 32 >> 6 if numerator >= 0 else -(32 - numerator >> 6)
    high = abs(numerator)
    r = reciprocal_of((denominator >> 1) + 536870912)
    if r >= 0:  # else it is 2^30, whose double saturates at 1
        low = product_low(high, r)
        high = product_high(high, r) + (low > 536870912 or (low == 536870912 and numerator >= 0))
    return _wide_high(LN_2, power) + (high if numerator >= 0 else -high) << 1


def logarithm(total: int) -> int:
    """ln of a total of Q12.19, 2^19 <= total < 2^30, as Q5.26: TFLite's log_x_for_x_greater_than_or_equal_to_1."""
    zeros = 2  # in front of a word of 32 bits
    while not total >> 31 - zeros:
        zeros += 1
    spare = 1  # likewise of total sqrt(1/2), less 1
    scaled = _wide_high(SQRT_HALF, total)
    while not scaled >> 30 - spare:
        spare += 1
    power = max((12 - zeros << 25) + 8388608, (12 - spare << 25) - 8388608)
    # the fraction, 1/2 to 1: twice the total sqrt(1/2) without leading zeros, or the total itself; saturated
    a = _both_wide_high((total << zeros - 2) - 536870912 << 1, SQRT_HALF)
    a = 1073741823 if a >= 0 else a + 536870912 << 1
    r = 1073741823 if total >> 31 - spare else (total << spare - 1) - 536870912 << 1
    r = min(a, r)
    p = (r >> 1) + (FOURTH_ROOT >> 1) + ((r & 1) + (FOURTH_ROOT & 1) + 1 >> 1)
    q = r - FOURTH_ROOT << 1
    square = doubling_high(q, q)
    numerator = _wide_high(r, q) + doubling_high(doubling_high(q, square), ALPHA_N)
    factor = ALPHA_I + q + doubling_high(ALPHA_D, square)
    denominator = _both_wide_high(p, factor) if factor >= 0 else _wide_high(p, 1073741823 + factor + 1) - 1073741823 - 1
    return _sum(power, numerator, denominator + doubling_high(ALPHA_F, q))


def log_softmax(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """LOG_SOFTMAX row by row. Its table: of 0..255 steps below the greatest, exp in Q12.19 and minus their size in Q5.26."""
    x, y, _, _, _, _, table, classes, rows = p
    for _ in range(rows):
        top = total = 0
        for i in range(classes):
            if arena[x + i] > top:
                top = arena[x + i]
        for i in range(classes):
            at = table + (top - arena[x + i] << 3)
            total += blob[at + 2] << 16 | blob[at + 1] << 8 | blob[at]
        log = logarithm(total)
        for i in range(classes):
            at = table + (top - arena[x + i] << 3) + 4
            below = blob[at + 3] << 24 | blob[at + 2] << 16 | blob[at + 1] << 8 | blob[at]
            below = 1071644671 if below > 1071644671 - log else below + log
            arena[y + i] = 255 - (below + 2097152 >> 22)
        x += classes
        y += classes
