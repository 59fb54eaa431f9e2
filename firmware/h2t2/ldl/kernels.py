# The operators of the integer LDL: int8 in, int8 out, the bytes of TFLite's reference kernels. Integers only.
#
# Activations and weights are bytes u = q + 128, which need no sign extension. Every kernel takes the arena, the bundle, its
# step's parameters p (array "i") and its constants k: the bias (array "i"), multipliers (array "H", three limbs per channel)
# and shifts (bytes: left and right per channel). A kernel's first line names its parameters in their order; it is their only
# description, which host_tools read (model/operators/step.py, viper/generate.py). The first six are always the places of input
# and output in the arena, their zero points, and the least and greatest byte of the output (its fused activation). The
# seventh, if any, is the place of weights or of a table in the bundle, or of another input in the arena.
#
# A step allocates nothing: more than three values are assigned at once from p and k alone, since MicroPython makes a tuple.
if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import PackedUInt16s, UInt8s


def requantise(x: int, channel: int, limbs: "PackedUInt16s", shifts: "UInt8s") -> int:
    """x times a channel's multiplier, rounded twice as gemmlowp does; |x| << left < 2^29, right <= 30: every intermediate is
    below 2^30.

    The multiplier (31 bits) is a 2^20 + b 2^10 + c. First rounding: (x m + nudge) / 2^31 toward zero, nudge 2^30 or, for
    x < 0, 1 - 2^30: of |x| the nudge is less by 1, which is taken from the product with c, as each shift rounds down. Second:
    a right shift, half away from zero.
    """
    sign = x >> 30
    x = (x ^ sign) - sign << shifts[2 * channel]
    h = x >> 15
    x &= 32767
    a = limbs[3 * channel]
    b = limbs[3 * channel + 1]
    c = limbs[3 * channel + 2]
    s = x * c + sign
    s = x * b + (s >> 10) + (h * c << 5)
    s = x * a + (s >> 10) + (h * b << 5) + 1024
    x = (s >> 11) + (h * a << 4)
    s = shifts[2 * channel + 1]
    if s:
        x = x + (1 << s - 1) >> s
    return (x ^ sign) - sign


def store_byte(arena: bytearray, at: int, y: int, low: int, high: int) -> None:
    """Clamp y to the bounds of the fused activation, and store it."""
    arena[at] = low if y < low else high if y > high else y
