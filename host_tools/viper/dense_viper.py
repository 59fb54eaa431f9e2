# The dense layer.
#
# A sum of (x - zero) (w - w_zero), w being the weight's byte, is the sum of (x - zero) w less w_zero times that of x - zero,
# which all outputs share. The emitter keeps the first three arguments in registers, so the two pointers that the inner loop
# moves are arena and blob themselves; a constant index costs nothing, so one turn adds eight products.
import micropython


@micropython.viper
def fully_connected(arena: ptr8, blob: ptr8, p: ptr32, k):
    bias = ptr8(k[0])
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    start = int(arena) + p.x
    out = ptr8(int(arena) + p.y)
    zero = int(p.zero)
    offset = int(p.offset)
    lowest = int(p.low)
    highest = int(p.high)
    blob = ptr8(int(blob) + p.w)
    inputs = int(p.inputs)
    outputs = int(p.outputs)
    total = 0
    arena = ptr8(start)
    i = 0
    while i < inputs:
        total += arena[i] - zero
        i += 1
    total *= int(p.w_zero)
    o = 0
    while o < outputs:
        acc = read_bias(o) - total
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
        acc = requantise(acc, o)
        acc += offset
        acc = clamp(acc, lowest, highest)
        out[o] = acc
        o += 1
