# The convolutions, as machine code by MicroPython's viper emitter: the same bytes as kernels.py.
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
def conv_2d(arena: ptr8, blob: ptr8, p: ptr32, k):
    bias = ptr8(k[0])
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    start = int(arena) + p[0]
    out = ptr8(int(arena) + p[1])
    zero = int(p[2])
    offset = int(p[3])
    lowest = int(p[4])
    highest = int(p[5])
    weights = int(blob) + p[6]
    height = int(p[7])
    width = int(p[8])
    depth = int(p[9])
    rows = int(p[10])
    columns = int(p[11])
    channels = int(p[12])
    kernel_y = int(p[13])
    kernel_x = int(p[14])
    stride_y = int(p[15])
    stride_x = int(p[16])
    pad_x = int(p[18])
    step_y = int(p[19])
    step_x = int(p[20])
    line = step_y * width * depth
    filter_line = kernel_x * depth
    to = 0
    top = 0 - int(p[17])
    while rows:
        rows -= 1
        # the rows of the kernel that lie inside: `deep` of them, from `first_y` on
        first_y = 0
        iy = top
        while iy < 0:
            iy += step_y
            first_y += 1
        deep = 0
        i = iy
        while first_y + deep < kernel_y and i < height:
            i += step_y
            deep += 1
        left = 0 - pad_x
        ox = 0
        while ox < columns:
            first_x = 0
            ix = left
            while ix < 0:
                ix += step_x
                first_x += 1
            wide = 0
            i = ix
            while first_x + wide < kernel_x and i < width:
                i += step_x
                wide += 1
            # runs of bytes that lie together: without dilation all columns of a row are one
            size = depth
            if step_x == 1:
                size = wide * depth
                wide = 1
            corner = start + (iy * width + ix) * depth
            total = 0
            at = corner
            row = deep
            while row:
                row -= 1
                x = at
                run = wide
                while run:
                    run -= 1
                    arena = ptr8(x)
                    i = 0
                    while i < size:
                        total += arena[i] - zero
                        i += 1
                    x += step_x * depth
                at += line
            total *= int(p[21])
            taps = weights + first_y * filter_line + first_x * depth
            o = 0
            while o < channels:
                m = ptr8(int(bias) + 4 * o)
                acc = ((m[3] ^ 128) - 128 << 24 | m[2] << 16 | m[1] << 8 | m[0]) - total
                at = corner
                f = taps
                row = deep
                while row:
                    row -= 1
                    x = at
                    run = wide
                    part = f
                    while run:
                        run -= 1
                        i = size
                        arena = ptr8(x)
                        blob = ptr8(part)
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
                        x += step_x * depth
                        part += depth
                    at += line
                    f += filter_line
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
                out[to] = acc
                to += 1
                o += 1
                taps += kernel_y * filter_line
            left += stride_x
            ox += 1
        top += stride_y


@micropython.viper
def depthwise_conv_2d(arena: ptr8, blob: ptr8, p: ptr32, k):
    bias = ptr8(k[0])
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    start = int(arena) + p[0]
    out = ptr8(int(arena) + p[1])
    zero = int(p[2])
    offset = int(p[3])
    lowest = int(p[4])
    highest = int(p[5])
    weights = int(blob) + p[6]
    height = int(p[7])
    width = int(p[8])
    depth = int(p[9])
    rows = int(p[10])
    columns = int(p[11])
    channels = int(p[12])
    kernel_y = int(p[13])
    kernel_x = int(p[14])
    stride_y = int(p[15])
    stride_x = int(p[16])
    pad_x = int(p[18])
    step_y = int(p[19])
    step_x = int(p[20])
    w_zero = int(p[21])
    many = int(p[22])
    line = step_y * width * depth
    jump = step_x * depth
    filter_line = kernel_x * channels
    to = 0
    top = 0 - int(p[17])
    while rows:
        rows -= 1
        # the rows of the kernel that lie inside: `deep` of them, from `first_y` on
        first_y = 0
        iy = top
        while iy < 0:
            iy += step_y
            first_y += 1
        deep = 0
        i = iy
        while first_y + deep < kernel_y and i < height:
            i += step_y
            deep += 1
        left = 0 - pad_x
        ox = 0
        while ox < columns:
            first_x = 0
            ix = left
            while ix < 0:
                ix += step_x
                first_x += 1
            wide = 0
            i = ix
            while first_x + wide < kernel_x and i < width:
                i += step_x
                wide += 1
            corner = start + (iy * width + ix) * depth
            taps = weights + first_y * filter_line + first_x * channels
            part = 0
            o = 0
            while o < channels:
                m = ptr8(int(bias) + 4 * o)
                acc = (m[3] ^ 128) - 128 << 24 | m[2] << 16 | m[1] << 8 | m[0]
                at = corner
                f = taps
                row = deep
                while row:
                    row -= 1
                    arena = ptr8(at)
                    blob = ptr8(f)
                    i = wide
                    while i:
                        acc += (arena[0] - zero) * (blob[0] - w_zero)
                        arena = ptr8(int(arena) + jump)
                        blob = ptr8(int(blob) + channels)
                        i -= 1
                    at += line
                    f += filter_line
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
                out[to] = acc
                to += 1
                o += 1
                taps += 1
                part += 1
                if part == many:
                    part = 0
                    corner += 1
            left += stride_x
            ox += 1
        top += stride_y
