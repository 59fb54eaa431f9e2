# Fixed-point primitives of the policy core: a table of 2^-x, ratios, loss scaling.
# Integers only, every intermediate within [-2^30, 2^30 - 1]; no state of any learner lives here.
#
# A *loss* is two words, whole octaves (signed) and a fraction in Q28: hi + lo / 2^28, 0 <= lo < 2^28.
from array import array

ONE = 32768  # 1.0 in Q15, the format of costs, probabilities and draws
FRAC = 0xFFFFFFF  # mask of a loss's Q28 fraction

# 2^(-i/128) in Q15, i = 0..127, kept as its 127 differences
_STEPS = (
    b"\xb1\xb0\xaf\xae\xad\xad\xab\xaa\xaa\xa8\xa8\xa7\xa5\xa5\xa4\xa4\xa2\xa1\xa1\x9f\x9f\x9e\x9d\x9d"
    b"\x9b\x9b\x99\x99\x98\x97\x97\x96\x94\x94\x94\x92\x92\x90\x90\x90\x8e\x8e\x8d\x8c\x8c\x8a\x8a\x89"
    b"\x89\x88\x87\x86\x85\x85\x84\x84\x82\x82\x82\x80\x80\x7f\x7f\x7e\x7d\x7c\x7c\x7b\x7a\x7a\x79\x79"
    b"\x78\x77\x76\x76\x76\x74\x74\x74\x72\x72\x72\x71\x70\x70\x6f\x6e\x6e\x6e\x6c\x6c\x6c\x6b\x6a\x6a"
    b"\x69\x69\x68\x68\x67\x66\x66\x65\x65\x64\x64\x63\x62\x63\x61\x61\x61\x60\x5f\x5f\x5e\x5e\x5e\x5d"
    b"\x5c\x5c\x5b\x5b\x5b\x5a\x59"
)
EXP2 = array("H", _STEPS + _STEPS + b"\0\0")  # any 256 bytes
EXP2[0] = ONE
for _i in range(127):
    EXP2[_i + 1] = EXP2[_i] - _STEPS[_i]


def ratio(a, b):
    """a / b in Q15, to nearest, for 0 <= a <= b and 2^15 <= b < 2^30 (the low 8 bits of both are dropped)."""
    b >>= 8
    a >>= 8
    if a >= b:
        return ONE
    a <<= 8
    return ((a // b << 8 | (a % b << 8) // b) + 1) >> 1


loss = [0, 0]  # result of scale(): octaves, Q28 fraction


def scale(x, num, den, shift):
    """x * num / den * 2^shift octaves into `loss`, rounded down; |x| < 2^29 in Q26, num 0..2^15, den 1..2^15, shift 0..15."""
    negative = x < 0
    if negative:
        x = -x
    b = (x & 32767) * num
    a = (x >> 15) * num + (b >> 15)
    b = (a % den << 15) + (b & 32767)
    a //= den
    b = (a & 2047) << 17 | b // den << 2 | (b % den << 2) // den
    a = a >> 11 << shift | b >> 28 - shift
    b = (b & FRAC >> shift) << shift
    if negative:
        a = -a - (b > 0)
        b = -b & FRAC
    loss[0] = a
    loss[1] = b
