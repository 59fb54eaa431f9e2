# Fixed-point primitives of the policy core: sums and powers in base-2 logarithms, scaling of losses.
# Integers only, every intermediate within [-2^30, 2^30 - 1]; no state of any learner lives here.
#
# A *logarithm* is one word, Q14 octaves. A *loss* is two: Q14 octaves (signed), then a fine word of 14 more bits, 0..2^14 - 1.
# scale() and divide() put a loss into an array of their caller, as a step must not allocate.
from array import array

ONE = 32768  # 1.0 in Q15, the format of costs, probabilities and draws
FINE = 16383  # mask of a loss's fine word
ONE_Q29 = 536870912  # 1.0 in Q29, the format of exp2's results and of a ticket's probability
NONE = -536870912  # the logarithm of an empty sum

# Two curves, cut into parabolas: CURVE[i] - r (SLOPE[i] - r BEND[i] / 1024) for r of 0..4095. They minimise the maximum error.
# 0..59: log2(1 + 2^-x), a quarter octave each; 60..67: 2^-x, an eighth each. Formats: Q29, Q17, Q15; the first 60 of CURVE
# include the half that rounds them to Q14.
CURVE = tuple(
    array(
        "i",
        b"\x00\x40\x00\x20\xa7\x86\x2c\x1c\x11\xcb\xb0\x18\x2c\x14\x8b\x15\x95\x42\xb8\x12\x5e\x42\x34\x10\x2e\x14\xfa\x0d"
        b"\x1f\x6a\x04\x0c\x7b\x7e\x4d\x0a\x55\x44\xcf\x08\x60\x0a\x84\x07\x36\x28\x66\x06\xb5\x4a\x70\x05\x29\x7a\x9d\x04"
        b"\xbe\x3c\xe9\x03\xeb\x86\x4f\x03\x15\xb7\xcc\x02\xa0\x9c\x5d\x02\xd0\x61\xff\x01\x54\x87\xaf\x01\x83\xeb\x6b\x01"
        b"\x03\xcb\x32\x01\xfe\x96\x02\x01\xf5\xde\xd9\x00\xf6\x82\xb7\x00\x59\x7e\x9a\x00\x34\x21\x82\x00\x2c\x92\x6d\x00"
        b"\xe4\x3e\x5c\x00\xcd\x9b\x4d\x00\xf5\x63\x41\x00\xe4\x05\x37\x00\x63\x5b\x2e\x00\xad\xfa\x26\x00\x5e\xe0\x20\x00"
        b"\xa3\xb2\x1b\x00\x04\x48\x17\x00\xb8\x9e\x13\x00\x2c\x8f\x10\x00\x9c\xfd\x0d\x00\x2f\xcf\x0b\x00\x87\xf9\x09\x00"
        b"\xe7\x64\x08\x00\x48\x19\x07\x00\x65\x02\x06\x00\xdd\x17\x05\x00\xa1\x52\x04\x00\xc4\xac\x03\x00\x64\x21\x03\x00"
        b"\x15\xac\x02\x00\x6f\x49\x02\x00\x7a\xf6\x01\x00\xb8\xb0\x01\x00\x0e\x76\x01\x00\xba\x44\x01\x00\x3f\x1b\x01\x00"
        b"\x5d\xf8\x00\x00\x08\xdb\x00\x00\x5a\xc2\x00\x00\x9d\xad\x00\x00\x09\x02\x00\x20\x30\x16\x58\x1d\x30\x9d\xe8\x1a"
        b"\x04\xe8\xac\x18\xb8\x98\xa0\x16\x2d\xd3\xbf\x14\x8c\xfd\x06\x13\x4e\xb2\x72\x11",
    )
)
SLOPE = tuple(
    array(
        "H",
        b"\xff\x3f\x73\x3a\xff\x34\xb4\x2f\xa3\x2a\xdd\x25\x65\x21\x4a\x1d\x92\x19\x32\x16\x31\x13\x89\x10\x34\x0e\x27\x0c"
        b"\x5e\x0a\xd4\x08\x81\x07\x60\x06\x69\x05\x95\x04\xdd\x03\x43\x03\xc3\x02\x56\x02\xf7\x01\xa6\x01\x65\x01\x2d\x01"
        b"\xfd\x00\xd3\x00\xb5\x00\x97\x00\x81\x00\x6a\x00\x5b\x00\x4d\x00\x3e\x00\x34\x00\x2d\x00\x27\x00\x21\x00\x1c\x00"
        b"\x15\x00\x11\x00\x0f\x00\x0c\x00\x0a\x00\x09\x00\x07\x00\x06\x00\x05\x00\x04\x00\x04\x00\x03\x00\x03\x00\x02\x00"
        b"\x02\x00\x02\x00\x01\x00\x01\x00\x56\x2c\xa7\x28\x47\x25\x30\x22\x57\x1f\xbd\x1c\x5c\x1a\x2b\x18",
    )
)
BEND = tuple(
    b"\xb1\xae\xa9\xa2\x99\x8f\x83\x77\x6c\x60\x55\x4b\x42\x39\x31\x2a\x24\x1f\x1b\x17\x13\x10\x0e\x0c\x0a\x08\x07\x06"
    b"\x05\x04\x04\x03\x03\x02\x02\x02\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    b"\x00\x00\x00\x00\x76\x6c\x63\x5b\x53\x4c\x46\x40"
)


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
