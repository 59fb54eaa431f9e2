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
                    out = ptr8(int(out) + channels)
                taps += size
                o += 1
            result += together * channels
        top += stride_y


# Each channel of outputs by itself: its filter becomes `taps` numbers, and of its input the rows under a line of windows are
# copied to `kernel_y` lines, with the zero point around them. The next line of windows needs new rows only, which take the
# place of the oldest; so the filter stands there twice, and begins at the tap of the row that is in the first line.
@micropython.viper
def _depthwise_conv_2d(arena: ptr8, blob: ptr8, p: ptr32):
    k = constants
    read_window()
    base = offset - lowest
    span = highest - lowest
    room = int(ptr8(k[3][0]))
    pad_y = int(p.pad_y)
    w_zero = int(p.w_zero)
    multiplier = int(p.depth_multiplier)
    result = int(out)
    taps = kernel_y * kernel_x
    lines = room + 8 * taps
    reach = (columns - 1) * stride_x + (kernel_x - 1) * step_x + 1
    inside = reach - pad_x
    if inside > width:
        inside = width
    is_3x3 = 0
    if kernel_y == 3:
        if kernel_x == 3:
            if step_x == 1:
                is_3x3 = 1
    blob = ptr8(lines)
    i = kernel_y * reach
    while i:
        blob[0] = zero
        blob = ptr8(int(blob) + 1)
        i -= 1
    copies = 0
    o = 0
    while o < channels:
        p = ptr32(room)
        blob = ptr8(weights + o)
        total = 0
        i = taps
        while i:
            s = blob[0] - w_zero
            p[0] = s
            p[taps] = s
            total += s
            p = ptr32(int(p) + 4)
            blob = ptr8(int(blob) + channels)
            i -= 1
        first = read_bias(o) - total * zero
        read_scale(o)
        out = ptr8(result + o)
        top = 0 - pad_y
        fresh = top
        line = 0
        row = rows
        while row:
            row -= 1
            todo = top + kernel_y - fresh
            if step_y > 1:
                todo = kernel_y
                fresh = top
                line = 0
            while todo > 0:
                todo -= 1
                blob = ptr8(lines + line * reach + pad_x)
                i = inside
                if uint(fresh) < uint(height):
                    arena = ptr8(start + fresh * width * depth)
                    while i > 3:
                        blob[0] = arena[0]
                        arena = ptr8(int(arena) + depth)
                        blob[1] = arena[0]
                        arena = ptr8(int(arena) + depth)
                        blob[2] = arena[0]
                        arena = ptr8(int(arena) + depth)
                        blob[3] = arena[0]
                        arena = ptr8(int(arena) + depth)
                        blob = ptr8(int(blob) + 4)
                        i -= 4
                    while i:
                        blob[0] = arena[0]
                        arena = ptr8(int(arena) + depth)
                        blob = ptr8(int(blob) + 1)
                        i -= 1
                else:
                    while i:
                        blob[0] = zero
                        blob = ptr8(int(blob) + 1)
                        i -= 1
                fresh += step_y
                line += 1
                if line == kernel_y:
                    line = 0
            filter = room + 4 * kernel_x * (kernel_y - line)
            at = lines
            turn = columns
            while turn:
                turn -= 1
                arena = ptr8(first)
                blob = ptr8(at)
                p = ptr32(filter)
                if is_3x3:
                    arena = ptr8(int(arena) + p[0] * blob[0])
                    arena = ptr8(int(arena) + p[1] * blob[1])
                    arena = ptr8(int(arena) + p[2] * blob[2])
                    blob = ptr8(int(blob) + reach)
                    arena = ptr8(int(arena) + p[3] * blob[0])
                    arena = ptr8(int(arena) + p[4] * blob[1])
                    arena = ptr8(int(arena) + p[5] * blob[2])
                    blob = ptr8(int(blob) + reach)
                    arena = ptr8(int(arena) + p[6] * blob[0])
                    arena = ptr8(int(arena) + p[7] * blob[1])
                    arena = ptr8(int(arena) + p[8] * blob[2])
                else:
                    x = at
                    run = kernel_y
                    while run:
                        run -= 1
                        i = kernel_x
                        while i:
                            arena = ptr8(int(arena) + p[0] * blob[0])
                            p = ptr32(int(p) + 4)
                            blob = ptr8(int(blob) + step_x)
                            i -= 1
                        x += reach
                        blob = ptr8(x)
                store_scaled()
                out = ptr8(int(out) + channels)
                at += stride_x
            top += stride_y
        copies += 1
        if copies == multiplier:
            copies = 0
            start += 1
        o += 1
