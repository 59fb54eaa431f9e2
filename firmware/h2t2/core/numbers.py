# Fixed-point primitives of the policy core: powers of 2, scaling of losses, and pseudo-random draws.
# Integers only, every intermediate within [-2^30, 2^30 - 1]; no state of any learner lives here.
#
# A *logarithm* is one word, Q14 octaves. A *loss* is two: Q14 octaves (signed), then a fine word of 14 more bits, 0..2^14 - 1.
# scale() and divide() put a loss into an array of their caller, as a step must not allocate.
from .curves import CURVES

if 0:  # for type checkers
    from ..annotations import Int32s

ONE = 32768  # 1.0 in Q15, the format of costs, probabilities and draws
FINE = 16383  # mask of a loss's fine word
ONE_Q29 = 536870912  # 1.0 in Q29, the format of exp2's results and of a ticket's probability
NONE = -536870912  # the logarithm of an empty sum


def exp2(octaves: int, unit: int) -> int:
    """Return 2^-octaves in Q29, with a relative error of 1.4e-5.

    octaves: 0..2^30 - 1 times 2^unit of a logarithm's last place.
    """
    whole = octaves >> 14 - unit
    if whole > 29:
        return 0
    octaves <<= unit
    within = (octaves & 2047) << 1
    parabola = 120 + (octaves >> 10 & 14)
    slope = (CURVES[parabola + 1] >> 8) - (within * (CURVES[parabola + 1] & 255) >> 10)
    return CURVES[parabola] - within * slope >> whole


def times(x: int, q15: int) -> int:
    """Return x * q15 / 2^15, rounded down, for |x| <= 2^29 and |q15| <= 2^15."""
    return (x >> 15) * q15 + ((x & 32767) * q15 >> 15)


def ratio(part: int, whole: int) -> int:
    """Return part / whole in Q15, at most ONE; both: 0..2 ONE."""
    if whole > ONE:
        part >>= 1
        whole >>= 1
    return ONE if part >= whole else (part << 15) // whole


def log2e(x: int) -> int:
    """Return x * log2(e), natural units to octaves, for 0 <= x < 2^29 / log2(e); the error is below 2."""
    return x + ((x >> 15) * 14506 + ((x & 32767) * 14506 + (x >> 15) * 7573 >> 15))


def scale(x: int, q15: int, loss: "Int32s", at: int) -> None:
    """Put x * q15 / 2^15 octaves, rounded down, into loss[at] and loss[at + 1]; x: Q26, |x| < 2^29; q15: 0..2^15."""
    high = x if x > 0 else -x
    low = (high & 32767) * q15
    high = (high >> 15) * q15 + (low >> 15)
    _store(x, high >> 12, (high & 4095) << 2 | low >> 13 & 3, loss, at)


def divide(x: int, chance: int, loss: "Int32s", at: int) -> None:
    """Put x / chance octaves, with a relative error of 2^-18 and at most 2^12, into loss[at] and loss[at + 1].

    Args:
        x: Q26, |x| < 2^29.
        chance: A probability in Q29, 2^14..2^29.
    """
    octaves = x if x > 0 else -x
    shift = 0
    while chance < 268435456:
        chance <<= 1
        shift += 1
    chance >>= 9  # 20 bits: a long division yields ten bits of the quotient at a time
    remainder = octaves % chance << 10
    octaves //= chance
    ten_bits = remainder // chance
    remainder = remainder % chance << 10
    octaves = octaves << 8 | ten_bits >> 2
    fine = (ten_bits & 3) << 12 | remainder // chance << 2 | (remainder % chance << 2) // chance
    if octaves >> 26 - shift:
        octaves = 67108863
        fine = FINE
        shift = 0
    _store(x, octaves << shift | fine >> 14 - shift, fine << shift & FINE, loss, at)


def _store(sign: int, octaves: int, fine: int, loss: "Int32s", at: int) -> None:
    """Store a loss with its sign."""
    if sign < 0:
        octaves = -octaves - (fine > 0)
        fine = -fine & FINE
    loss[at] = octaves
    loss[at + 1] = fine


class Rng:
    """Wichmann and Hill's generator (Applied Statistics algorithm AS 183, 1982), period 6.95e12.

    Three multiplicative generators, (171, 30269), (172, 30307), (170, 30323), whose fractions are added modulo 1.
    Every product stays below 2^23, so a 31-bit small int holds it. State: `x`, `y`, `z`, each in 1..modulus-1.
    """

    def __init__(self, seed: int):
        """Mix the seed, 0..2^28 - 1, into three words, so that neighbouring seeds give unrelated streams."""
        if not 0 <= seed < 268435456:
            raise ValueError("seed %d is not in 0..268435455" % seed)
        self.x = 1 + seed % 30268
        self.y = 1 + seed // 30268 % 30306
        self.z = 1
        for _ in range(12):
            self.x = max(171 * (self.x + self.z) % 30269, 1)
            self.y = max(172 * (self.y + self.x) % 30307, 1)
            self.z = max(170 * (self.z + self.y) % 30323, 1)

    def draw(self) -> int:
        """Return the next 15-bit draw, uniform on 0..32767."""
        self.x = first = 171 * self.x % 30269
        self.y = second = 172 * self.y % 30307
        self.z = third = 170 * self.z % 30323
        return ((first << 15) // 30269 + (second << 15) // 30307 + (third << 15) // 30323) & 32767
