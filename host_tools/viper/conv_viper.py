# The convolutions.
#
# A sum of (x - zero) (w - w_zero), w being the weight's byte, is the sum of (x - zero) w less w_zero times that of x - zero,
# which all outputs of a place share. The emitter keeps the first three arguments in registers, so the two pointers that the
# inner loop moves are arena and blob themselves; a constant index costs nothing, so one turn adds eight products.
import micropython


@micropython.viper
def conv_2d(arena: ptr8, blob: ptr8, p: ptr32, k):
    read_window()
    line = step_y * width * depth
    filter_line = kernel_x * depth
    to = 0
    top = 0 - int(p.pad_y)
    while rows:
        rows -= 1
        taps_inside(first_y, deep, iy, top, step_y, kernel_y, height)
        west = 0 - pad_x
        ox = 0
        while ox < columns:
            taps_inside(first_x, wide, ix, west, step_x, kernel_x, width)
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
            total *= int(p.w_zero)
            taps = weights + first_y * filter_line + first_x * depth
            o = 0
            while o < channels:
                acc = read_bias(o) - total
                at = corner
                f = taps
                row = deep
                while row:
                    row -= 1
                    x = at
                    run = wide
                    w = f
                    while run:
                        run -= 1
                        i = size
                        arena = ptr8(x)
                        blob = ptr8(w)
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
                        w += depth
                    at += line
                    f += filter_line
                acc = requantise(acc, o)
                acc += offset
                acc = clamp(acc, lowest, highest)
                out[to] = acc
                to += 1
                o += 1
                taps += kernel_y * filter_line
            west += stride_x
            ox += 1
        top += stride_y


@micropython.viper
def depthwise_conv_2d(arena: ptr8, blob: ptr8, p: ptr32, k):
    read_window()
    w_zero = int(p.w_zero)
    multiplier = int(p.depth_multiplier)
    line = step_y * width * depth
    jump = step_x * depth
    filter_line = kernel_x * channels
    to = 0
    top = 0 - int(p.pad_y)
    while rows:
        rows -= 1
        taps_inside(first_y, deep, iy, top, step_y, kernel_y, height)
        west = 0 - pad_x
        ox = 0
        while ox < columns:
            taps_inside(first_x, wide, ix, west, step_x, kernel_x, width)
            corner = start + (iy * width + ix) * depth
            taps = weights + first_y * filter_line + first_x * channels
            copies = 0
            o = 0
            while o < channels:
                acc = read_bias(o)
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
                acc = requantise(acc, o)
                acc += offset
                acc = clamp(acc, lowest, highest)
                out[to] = acc
                to += 1
                o += 1
                taps += 1
                copies += 1
                if copies == multiplier:
                    copies = 0
                    corner += 1
            west += stride_x
            ox += 1
        top += stride_y
