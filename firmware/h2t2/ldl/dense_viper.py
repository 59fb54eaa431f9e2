# The dense layer, as machine code by MicroPython's viper emitter: the same bytes as kernels.py.
#
# Native words have 32 or 64 bits, so every value here fits 31. Biases and multipliers are read byte by byte where the bundle
# is, which may be anywhere in flash. Requantising is written out in each operator: a call would cost more than it does.
# Parameters stand in the order in which kernels.py unpacks them.
#
# A sum of (x - zero) (w - w_zero), w being the weight's byte, is the sum of (x - zero) w less w_zero times that of x - zero,
# which all outputs of a place share. The emitter keeps the first three arguments in registers, so the two pointers that the
# inner loop moves are arena and blob themselves; a constant index costs nothing, so eight products make a turn.
import micropython


@micropython.viper
def fully_connected(arena: ptr8, blob: ptr8, p: ptr32, k):
    bias = ptr8(k[0])
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    start = int(arena) + p[0]
    out = ptr8(int(arena) + p[1])
    zero = int(p[2])
    offset = int(p[3])
    lowest = int(p[4])
    highest = int(p[5])
    blob = ptr8(int(blob) + p[6])
    inputs = int(p[7])
    outputs = int(p[8])
    total = 0
    arena = ptr8(start)
    i = 0
    while i < inputs:
        total += arena[i] - zero
        i += 1
    total *= int(p[9])
    o = 0
    while o < outputs:
        m = ptr8(int(bias) + 4 * o)
        acc = ((m[3] ^ 128) - 128 << 24 | m[2] << 16 | m[1] << 8 | m[0]) - total
        arena = ptr8(start)
        i = inputs
        while i > 7:
            acc += (arena[0] - zero) * blob[0] + (arena[1] - zero) * blob[1]
            acc += (arena[2] - zero) * blob[2] + (arena[3] - zero) * blob[3]
            acc += (arena[4] - zero) * blob[4] + (arena[5] - zero) * blob[5]
            acc += (arena[6] - zero) * blob[6] + (arena[7] - zero) * blob[7]
            arena = ptr8(int(arena) + 8)
            blob = ptr8(int(blob) + 8)
            i -= 8
        while i:
            acc += (arena[0] - zero) * blob[0]
            arena = ptr8(int(arena) + 1)
            blob = ptr8(int(blob) + 1)
            i -= 1
        # requantise, as kernels.requantise
        negative = acc < 0
        if negative:
            acc = 0 - acc
        acc <<= shifts[2 * o]
        h = acc >> 15
        acc &= 32767
        m = ptr8(int(limbs) + 6 * o)
        c = m[4] | m[5] << 8
        b = m[2] | m[3] << 8
        s = acc * c
        low = s & 1023
        s = acc * b + (s >> 10) + (h * c << 5)
        low |= s & 1023
        c = m[0] | m[1] << 8
        s = acc * c + (s >> 10) + (h * b << 5) + 1024
        if negative:
            if low == 0:
                s -= 1
        acc = (s >> 11) + (h * c << 4)
        s = shifts[2 * o + 1]
        if s:
            acc = acc + (1 << s - 1) >> s
        if negative:
            acc = 0 - acc
        acc += offset
        if acc < lowest:
            acc = lowest
        if acc > highest:
            acc = highest
        out[o] = acc
        o += 1
