# Fixed-point primitives of the policy core: sums and powers in base-2 logarithms, scaling of losses.
# Integers only, every intermediate within [-2^30, 2^30 - 1]; no state of any learner lives here.
#
# A *logarithm* is one word, Q14 octaves. A *loss* is two: Q14 octaves (signed), then a fine word of 14 more bits, 0..2^14 - 1.
# scale() and divide() put a loss into an array of their caller, as a step must not allocate.
if 0:  # for type checkers
    from array import array

ONE = 32768  # 1.0 in Q15, the format of costs, probabilities and draws
FINE = 16383  # mask of a loss's fine word
ONE_Q29 = 536870912  # 1.0 in Q29, the format of exp2's results and of a ticket's probability
NONE = -536870912  # the logarithm of an empty sum

# Two curves, cut into parabolas: CURVE[i] - r (SLOPE[i] - r BEND[i] / 1024) for r of 0..4095. They minimise the maximum error.
# 0..59: log2(1 + 2^-x), a quarter octave each; 60..67: 2^-x, an eighth each. Formats: Q29, Q17, Q15; the first 60 of CURVE
# include the half that rounds them to Q14.
CURVE = (
    536887296, 472680103, 414239505, 361436204, 314065557, 271860318, 234492974, 201615903, 172850811, 147801173, 126093920,
    107358262, 91245237, 77429289, 65617086, 55543531, 46970645, 39689376, 33513936, 28280660, 23849859, 20105987, 16946942,
    14278389, 12026614, 10124889, 8528180, 7180844, 6045412, 5086157, 4285429, 3605988, 3038051, 2554541, 2154590, 1815203,
    1525764, 1285816, 1085228, 916892, 773935, 653703, 550119, 465224, 393829, 333789, 283297, 240836, 205156, 175125,
    149871, 128634, 110776, 95758, 83130, 72511, 63581, 56072, 49754, 44445, 536871433, 492312112, 451452208, 413984772,
    379623608, 348115757, 319225228, 292729422,
)  # fmt: skip
SLOPE = (
    16383, 14963, 13567, 12212, 10915, 9693, 8549, 7498, 6546, 5682, 4913, 4233, 3636, 3111, 2654, 2260, 1921, 1632, 1385,
    1173, 989, 835, 707, 598, 503, 422, 357, 301, 253, 211, 181, 151, 129, 106, 91, 77, 62, 52, 45, 39, 33, 28, 21, 17, 15,
    12, 10, 9, 7, 6, 5, 4, 4, 3, 3, 2, 2, 2, 1, 1, 11350, 10407, 9543, 8752, 8023, 7357, 6748, 6187,
)  # fmt: skip
BEND = (
    177, 174, 169, 162, 153, 143, 131, 119, 108, 96, 85, 75, 66, 57, 49, 42, 36, 31, 27, 23, 19, 16, 14, 12, 10, 8, 7, 6, 5,
    4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 118, 108, 99, 91, 83, 76,
    70, 64,
)  # fmt: skip


def log_add(x: int, y: int, unit: int) -> int:
    """Return log2(2^x + 2^y), within .8 units of the last place.

    Args:
        x, y: Logarithms, |x|, |y| <= 2^28; one of them may be NONE (+- 2^28).
        unit: x and y count 2^unit of the last place of a logarithm, 0..9.
    """
    d = x - y
    if d < 0:
        d = -d
        x = y
    if unit:
        if d >> 18 - unit:
            return x
        d <<= unit
    y = d >> 12  # the parabola; a further local would move the frame to the heap of MicroPython
    if y < 60:
        d &= 4095
        d = CURVE[y] - d * (SLOPE[y] - (d * BEND[y] >> 10)) >> 15
        if unit:
            d = d + (1 << unit - 1) >> unit
        x += d
    return x


def exp2(x: int, unit: int) -> int:
    """Return 2^-x in Q29, with a relative error of 1.4e-5; x: 0..2^30 - 1 times 2^unit of a logarithm's last place."""
    i = x >> 14 - unit
    if i > 29:
        return 0
    x <<= unit
    d = (x & 2047) << 1
    x = 60 + (x >> 11 & 7)
    return CURVE[x] - d * (SLOPE[x] - (d * BEND[x] >> 10)) >> i


def times(x: int, q15: int) -> int:
    """Return x * q15 / 2^15, rounded down, for 0 <= x <= 2^29 and 0 <= q15 <= 2^15."""
    return (x >> 15) * q15 + ((x & 32767) * q15 >> 15)


def scale(x: int, q15: int, loss: "array[int]", at: int) -> None:
    """Put x * q15 / 2^15 octaves, rounded down, into loss[at] and loss[at + 1]; x: Q26, |x| < 2^29; q15: 0..2^15."""
    a = x if x > 0 else -x
    b = (a & 32767) * q15
    a = (a >> 15) * q15 + (b >> 15)
    _store(x, a >> 12, (a & 4095) << 2 | b >> 13 & 3, loss, at)


def divide(x: int, p: int, loss: "array[int]", at: int) -> None:
    """Put x / p octaves, with a relative error of 2^-18 and at most 2^12, into loss[at] and loss[at + 1].

    Args:
        x: Q26, |x| < 2^29.
        p: A probability in Q29, 2^14..2^29.
    """
    a = x if x > 0 else -x
    shift = 0
    while p < 268435456:
        p <<= 1
        shift += 1
    p >>= 9  # 20 bits: a long division yields ten bits of the quotient at a time
    b = a % p << 10
    a //= p
    c = b // p
    b = b % p << 10
    a = a << 8 | c >> 2
    b = (c & 3) << 12 | b // p << 2 | (b % p << 2) // p
    if a >> 26 - shift:
        a = 67108863
        b = FINE
        shift = 0
    _store(x, a << shift | b >> 14 - shift, b << shift & FINE, loss, at)


def _store(sign: int, octaves: int, fine: int, loss: "array[int]", at: int) -> None:
    """Store a loss with its sign."""
    if sign < 0:
        octaves = -octaves - (fine > 0)
        fine = -fine & FINE
    loss[at] = octaves
    loss[at + 1] = fine


try:
    from .numbers_viper import divide, exp2, log_add, times  # noqa: F401

    MACHINE_CODE = True  # this interpreter can run *_viper.py, and has them
    CURVE = SLOPE = BEND = ()  # type: ignore[assignment]
except (ImportError, SyntaxError, NotImplementedError, ValueError):
    MACHINE_CODE = False
