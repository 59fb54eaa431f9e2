# The convolutions.
#
# The emitter keeps the first three arguments of a function of three in registers. So the constants come by a global, and the
# inner loops use the arguments' names for what they need there: the sum, and two pointers; a constant index costs nothing.
# k[3][0] is room for numbers of 32 bits, which a load does not sign-extend where a native word has 64: a sum of their products
# is right in its low 32 bits.
import micropython

constants = ()


def conv_2d(arena, blob, p, k):
    global constants
    constants = k
    _conv_2d(arena, blob, p)


def depthwise_conv_2d(arena, blob, p, k):
    global constants
    constants = k
    _depthwise_conv_2d(arena, blob, p)


# The bytes under a window, less their zero point, become a column of numbers; its product with each filter is an output. As
# many columns of a line as there is room for are computed together, so that a filter's constants are read once for them.
# A sum of (x - zero) (w - w_zero), w being the weight's byte, is the sum of (x - zero) w less w_zero times that of x - zero,
# which is the number behind the column.
@micropython.viper
def _conv_2d(arena: ptr8, blob: ptr8, p: ptr32):
    k = constants
    read_window()
    base = offset - lowest
    span = highest - lowest
    numbers = int(ptr8(k[3][0]))
    top = 0 - int(p.pad_y)
    w_zero = int(p.w_zero)
    size = kernel_y * kernel_x * depth
    sixteens = size >> 4
    eight = size & 8
    ones = size & 7
    result = int(out)
    most = 0
    i = int(len(k[3][0]))
    while i > 4 * size:
        i -= 4 * size + 4
        most += 1
    while rows:
        rows -= 1
        west = 0 - pad_x
        left_over = columns
        while left_over:
            together = 0
            p = ptr32(numbers)
            while together < most:
                together += 1
                total = 0
                # without dilation all columns of a window inside lie together
                runs = kernel_x
                length = depth
                if step_x == 1:
                    if west >= 0:
                        if west + kernel_x <= width:
                            runs = 1
                            length = kernel_x * depth
                blob = ptr8(int(p))
                iy = top
                row = kernel_y
                while row:
                    row -= 1
                    wide = 0
                    if uint(iy) < uint(height):
                        wide = width
                    ix = west
                    run = runs
                    x = start + (iy * width + ix) * depth
                    while run:
                        run -= 1
                        i = length
                        if uint(ix) < uint(wide):
                            arena = ptr8(x)
                            while i > 3:
                                ptr32(blob)[0] = arena[0] - zero
                                ptr32(blob)[1] = arena[1] - zero
                                ptr32(blob)[2] = arena[2] - zero
                                ptr32(blob)[3] = arena[3] - zero
                                total += ptr32(blob)[0] + ptr32(blob)[1] + ptr32(blob)[2] + ptr32(blob)[3]
                                arena = ptr8(int(arena) + 4)
                                blob = ptr8(int(blob) + 16)
                                i -= 4
                            while i:
                                ptr32(blob)[0] = arena[0] - zero
                                total += ptr32(blob)[0]
                                arena = ptr8(int(arena) + 1)
                                blob = ptr8(int(blob) + 4)
                                i -= 1
                        else:
                            while i:
                                ptr32(blob)[0] = 0
                                blob = ptr8(int(blob) + 4)
                                i -= 1
                        ix += step_x
                        x += step_x * depth
                    iy += step_y
                p = ptr32(blob)
                p[0] = total * w_zero
                p = ptr32(int(p) + 4)
                west += stride_x
                left_over -= 1
                if left_over == 0:
                    break
            taps = weights
            o = 0
            while o < channels:
                first = read_bias(o)
                read_scale(o)
                out = ptr8(result + o)
                p = ptr32(numbers)
                turn = together
                while turn:
                    turn -= 1
                    arena = ptr8(first)
                    blob = ptr8(taps)
                    i = sixteens
                    while i:
                        add_products(0)
                        add_products(8)
                        p = ptr32(int(p) + 64)
                        blob = ptr8(int(blob) + 16)
                        i -= 1
                    if eight:
                        add_products(0)
                        p = ptr32(int(p) + 32)
                        blob = ptr8(int(blob) + 8)
                    i = ones
                    while i:
                        add_product()
                        i -= 1
                    arena = ptr8(int(arena) - p[0])
                    p = ptr32(int(p) + 4)
                    store_scaled()
                taps += size
                o += 1
            result += together * channels
        top += stride_y


# As many lines of windows as there is room for, and of these each channel by itself: the rows of its input under them are
# copied to lines, with the zero point around them. Where rows of a window lie apart, that is one line of windows. A filter of
# 3 x 3 stands in variables, which takes fewer cycles than an array; any other becomes an array of numbers before the lines.
@micropython.viper
def _depthwise_conv_2d(arena: ptr8, blob: ptr8, p: ptr32):
    k = constants
    read_window()
    base = offset - lowest
    span = highest - lowest
    numbers = int(ptr8(k[3][0]))
    top = 0 - int(p.pad_y)
    w_zero = int(p.w_zero)
    multiplier = int(p.depth_multiplier)
    result = int(out)
    taps = kernel_y * kernel_x
    lines = numbers + 4 * taps
    reach = (columns - 1) * stride_x + (kernel_x - 1) * step_x + 1
    inside = reach - pad_x
    if inside > width:
        inside = width
    fours = inside >> 2
    gap = (step_y * width - inside) * depth
    skip = reach - (inside >> 1 << 1)
    drop = stride_y * reach
    last = (columns - 1) * channels
    is_3x3 = 0
    if kernel_y == 3:
        if kernel_x == 3:
            if step_x == 1:
                is_3x3 = 1
    together = 1
    if step_y == 1:
        i = int(len(k[3][0])) - 4 * taps - kernel_y * reach - drop
        while i >= 0:
            together += 1
            i -= drop
    while rows > 0:
        if together > rows:
            together = rows
        rows -= together
        row = kernel_y + (together - 1) * stride_y
        blob = ptr8(lines)
        i = row * reach
        while i:
            blob[0] = zero
            blob = ptr8(int(blob) + 1)
            i -= 1
        # of these lines, `full` hold a row of the input, from `north` on
        north = lines + pad_x
        iy = top
        while iy < 0:
            iy += step_y
            north += reach
            row -= 1
        full = 0
        x = start + iy * width * depth
        while row > 0:
            row -= 1
            if iy < height:
                full += 1
            iy += step_y
        copies = multiplier
        o = 0
        while o < channels:
            blob = ptr8(north)
            arena = ptr8(x)
            row = full
            while row:
                row -= 1
                i = fours
                while i:
                    copy_byte(0)
                    copy_byte(1)
                    copy_byte(2)
                    copy_byte(3)
                    blob = ptr8(int(blob) + 4)
                    i -= 1
                if inside & 2:
                    copy_byte(0)
                    copy_byte(1)
                    blob = ptr8(int(blob) + 2)
                if inside & 1:
                    copy_byte(0)
                arena = ptr8(gap + int(arena))
                blob = ptr8(skip + int(blob))
            copies -= 1
            if copies == 0:
                copies = multiplier
                x += 1
            arena = ptr8(weights + o)
            if is_3x3:
                next_weight(w0)
                next_weight(w1)
                next_weight(w2)
                next_weight(w3)
                next_weight(w4)
                next_weight(w5)
                next_weight(w6)
                next_weight(w7)
                next_weight(w8)
                total = w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8
            else:
                p = ptr32(numbers)
                total = 0
                i = taps
                while i:
                    next_weight(s)
                    p[0] = s
                    total += s
                    p = ptr32(int(p) + 4)
                    i -= 1
            first = read_bias(o) - total * zero
            read_scale(o)
            out = ptr8(result + o)
            line = lines
            row = together
            while row:
                row -= 1
                at = line
                line += drop
                # blob ends as the place of the last output stored
                stop = int(out) + last
                blob = ptr8(at)
                while stop - int(blob):
                    blob = ptr8(at)
                    at = stride_x + int(blob)
                    arena = ptr8(first)
                    if is_3x3:
                        add_tap(w0, 0)
                        add_tap(w1, 1)
                        add_tap(w2, 2)
                        blob = ptr8(reach + int(blob))
                        add_tap(w3, 0)
                        add_tap(w4, 1)
                        add_tap(w5, 2)
                        blob = ptr8(reach + int(blob))
                        add_tap(w6, 0)
                        add_tap(w7, 1)
                        add_tap(w8, 2)
                    else:
                        p = ptr32(numbers)
                        window = int(blob)
                        turn = kernel_y
                        while turn:
                            turn -= 1
                            i = kernel_x
                            while i:
                                arena = ptr8((p[0] | 0) * blob[0] + int(arena))
                                p = ptr32(int(p) + 4)
                                blob = ptr8(step_x + int(blob))
                                i -= 1
                            window += reach
                            blob = ptr8(window)
                    store_scaled()
            o += 1
        result += together * columns * channels
        top += together * stride_y
