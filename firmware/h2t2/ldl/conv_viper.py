# The convolutions, as machine code by MicroPython's viper emitter: the same bytes as kernels.py.
#
# Native words have 32 or 64 bits, so every value here fits 31. Biases are read as two halves, since a 32-bit load is signed on
# one kind of board and not on the other. Requantising is written out in each operator: a call would cost more than it does.
# Parameters stand in the order in which kernels.py unpacks them.
import micropython


@micropython.viper
def conv_2d(arena, blob, p, k):
    a = ptr8(arena)
    w = ptr8(blob)
    q = ptr32(p)
    bias = ptr16(k[0])
    limbs = ptr16(k[1])
    shifts = ptr8(k[2])
    start = int(q[0])
    to = int(q[1])
    zero = int(q[2])
    offset = int(q[3])
    lowest = int(q[4])
    highest = int(q[5])
    weights = int(q[6])
    height = int(q[7])
    width = int(q[8])
    depth = int(q[9])
    rows = int(q[10])
    columns = int(q[11])
    channels = int(q[12])
    kernel_y = int(q[13])
    kernel_x = int(q[14])
    step_y = int(q[19])
    step_x = int(q[20])
    stride_y = int(q[15])
    stride_x = int(q[16])
    pad_x = int(q[18])
    top = 0 - int(q[17])
    while rows:
        rows -= 1
        left = 0 - pad_x
        ox = 0
        while ox < columns:
            f = weights
            o = 0
            while o < channels:
                acc = (int(bias[2 * o + 1]) ^ 32768) - 32768 << 16 | int(bias[2 * o])
                iy = top
                ky = 0
                while ky < kernel_y:
                    if iy >= 0 and iy < height:
                        ix = left
                        kx = 0
                        while kx < kernel_x:
                            if ix >= 0 and ix < width:
                                x = start + (iy * width + ix) * depth
                                end = x + depth
                                while x < end:
                                    acc += (a[x] - zero) * (w[f] - 128)
                                    x += 1
                                    f += 1
                            else:
                                f += depth
                            ix += step_x
                            kx += 1
                    else:
                        f += kernel_x * depth
                    iy += step_y
                    ky += 1
                negative = acc < 0
                if negative:
                    acc = 0 - acc
                acc <<= shifts[2 * o]
                h = acc >> 15
                acc &= 32767
                c = limbs[3 * o + 2]
                b = limbs[3 * o + 1]
                s = acc * c
                low = s & 1023
                s = acc * b + (s >> 10) + (h * c << 5)
                low |= s & 1023
                c = limbs[3 * o]
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
                a[to] = acc
                to += 1
                o += 1
            left += stride_x
            ox += 1
        top += stride_y


@micropython.viper
def depthwise_conv_2d(arena, blob, p, k):
    a = ptr8(arena)
    w = ptr8(blob)
    q = ptr32(p)
    bias = ptr16(k[0])
    limbs = ptr16(k[1])
    shifts = ptr8(k[2])
    start = int(q[0])
    to = int(q[1])
    zero = int(q[2])
    offset = int(q[3])
    lowest = int(q[4])
    highest = int(q[5])
    weights = int(q[6])
    height = int(q[7])
    width = int(q[8])
    depth = int(q[9])
    rows = int(q[10])
    columns = int(q[11])
    channels = int(q[12])
    kernel_y = int(q[13])
    kernel_x = int(q[14])
    step_y = int(q[19])
    step_x = int(q[20])
    many = int(q[21])
    stride_y = int(q[15])
    stride_x = int(q[16])
    pad_x = int(q[18])
    top = 0 - int(q[17])
    while rows:
        rows -= 1
        left = 0 - pad_x
        ox = 0
        while ox < columns:
            o = 0
            source = start
            part = 0
            while o < channels:
                acc = (int(bias[2 * o + 1]) ^ 32768) - 32768 << 16 | int(bias[2 * o])
                f = weights + o
                iy = top
                ky = 0
                while ky < kernel_y:
                    if iy >= 0 and iy < height:
                        x = source + (iy * width + left) * depth
                        ix = left
                        kx = 0
                        while kx < kernel_x:
                            if ix >= 0 and ix < width:
                                acc += (a[x] - zero) * (w[f] - 128)
                            x += step_x * depth
                            ix += step_x
                            f += channels
                            kx += 1
                    else:
                        f += kernel_x * channels
                    iy += step_y
                    ky += 1
                negative = acc < 0
                if negative:
                    acc = 0 - acc
                acc <<= shifts[2 * o]
                h = acc >> 15
                acc &= 32767
                c = limbs[3 * o + 2]
                b = limbs[3 * o + 1]
                s = acc * c
                low = s & 1023
                s = acc * b + (s >> 10) + (h * c << 5)
                low |= s & 1023
                c = limbs[3 * o]
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
                a[to] = acc
                to += 1
                o += 1
                part += 1
                if part == many:
                    part = 0
                    source += 1
            left += stride_x
            ox += 1
        top += stride_y
