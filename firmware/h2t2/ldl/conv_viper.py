# The convolutions as machine code by MicroPython's viper emitter, with the same bytes as the plain kernels (convolutions.py).
# A native word has 32 or 64 bits, so every value fits 31. What stands in the bundle is read byte by byte, since it may lie
# anywhere in flash. The parameters p[0], p[1], ... have the order in which the plain kernels unpack them.
#
# The emitter keeps the first three arguments of a function of three in registers. So the constants come by a global, and the
# inner loops use the arguments' names for what they need there: the sum, and two pointers; a constant index costs nothing.
# k[3][0] is room for numbers of 32 bits, which a load does not sign-extend where a native word has 64: a sum of their products
# is right in its low 32 bits.
#
# A call costs more cycles than its code, so some pieces of code stand here more than once:
# - "Products": the emitter computes a left operand into a register, where a number as it was read would go to the stack and
#   back: so `| 0`.
# - "Scale": a channel's multiplier as its limbs a, b, c and its shifts. Where sums within 2^19 of 0 may take the short way,
#   `quick` is 2^19; else adding it to a sum never gives less than 2^20.
# - "Store": scales the sum that `arena` holds, and stores it within its bounds at `out`, which moves on. Only the low 32 bits
#   of the sum are right; it is below 2^29. Within 2^19 of 0 it is one limb, and one shift rounds as two do: the second rounds
#   a half away from 0, so a negative sum has a nudge that is less by the last bit of the first. `base` is the output's zero
#   point less `lowest`, `span` is `highest` less `lowest`.
import micropython

constants = ()


@micropython.viper
def conv_2d(arena, blob, p, k):
    global constants
    constants = k
    _conv_2d(arena, blob, p)


@micropython.viper
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
    base = offset - lowest
    span = highest - lowest
    numbers = int(ptr8(k[3][0]))
    top = 0 - int(p[17])
    w_zero = int(p[21])
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
                m = ptr8(int(bias) + 4 * o)
                first = (m[3] ^ 128) - 128 << 24 | m[2] << 16 | m[1] << 8 | m[0]
                # Scale
                blob = ptr8(int(limbs) + 6 * o)
                a = (blob[1] << 8) + blob[0]
                b = (blob[3] << 8) + blob[2]
                c = (blob[5] << 8) + blob[4]
                blob = ptr8(int(shifts) + 2 * o)
                left = blob[0]
                right = blob[1]
                shift = right + 11
                nudge = (1 << right + 10) + 1024
                quick = 805306368
                if not left | right - 1 >> 4:
                    quick = 524288
                out = ptr8(result + o)
                p = ptr32(numbers)
                turn = together
                while turn:
                    turn -= 1
                    arena = ptr8(first)
                    blob = ptr8(taps)
                    i = sixteens
                    while i:
                        # Products
                        arena = ptr8((p[0] | 0) * blob[0] + int(arena))
                        arena = ptr8((p[1] | 0) * blob[1] + int(arena))
                        arena = ptr8((p[2] | 0) * blob[2] + int(arena))
                        arena = ptr8((p[3] | 0) * blob[3] + int(arena))
                        arena = ptr8((p[4] | 0) * blob[4] + int(arena))
                        arena = ptr8((p[5] | 0) * blob[5] + int(arena))
                        arena = ptr8((p[6] | 0) * blob[6] + int(arena))
                        arena = ptr8((p[7] | 0) * blob[7] + int(arena))
                        arena = ptr8((p[8] | 0) * blob[8] + int(arena))
                        arena = ptr8((p[9] | 0) * blob[9] + int(arena))
                        arena = ptr8((p[10] | 0) * blob[10] + int(arena))
                        arena = ptr8((p[11] | 0) * blob[11] + int(arena))
                        arena = ptr8((p[12] | 0) * blob[12] + int(arena))
                        arena = ptr8((p[13] | 0) * blob[13] + int(arena))
                        arena = ptr8((p[14] | 0) * blob[14] + int(arena))
                        arena = ptr8((p[15] | 0) * blob[15] + int(arena))
                        p = ptr32(int(p) + 64)
                        blob = ptr8(int(blob) + 16)
                        i -= 1
                    if eight:
                        arena = ptr8((p[0] | 0) * blob[0] + int(arena))
                        arena = ptr8((p[1] | 0) * blob[1] + int(arena))
                        arena = ptr8((p[2] | 0) * blob[2] + int(arena))
                        arena = ptr8((p[3] | 0) * blob[3] + int(arena))
                        arena = ptr8((p[4] | 0) * blob[4] + int(arena))
                        arena = ptr8((p[5] | 0) * blob[5] + int(arena))
                        arena = ptr8((p[6] | 0) * blob[6] + int(arena))
                        arena = ptr8((p[7] | 0) * blob[7] + int(arena))
                        p = ptr32(int(p) + 32)
                        blob = ptr8(int(blob) + 8)
                    i = ones
                    while i:
                        arena = ptr8((p[0] | 0) * blob[0] + int(arena))
                        p = ptr32(int(p) + 4)
                        blob = ptr8(int(blob) + 1)
                        i -= 1
                    arena = ptr8(int(arena) - p[0])
                    p = ptr32(int(p) + 4)
                    # Store
                    if quick + int(arena) >> 20:
                        arena = ptr8((int(arena) & 1073741823 ^ 536870912) - 536870912)
                        blob = ptr8(int(arena) >> 30)
                        arena = ptr8((int(arena) ^ int(blob)) - int(blob) << left)
                        h = int(arena) >> 15
                        arena = ptr8(int(arena) & 32767)
                        s = int(arena) * c + int(blob)
                        s = int(arena) * b + (s >> 10) + (h * c << 5)
                        s = int(arena) * a + (s >> 10) + (h * b << 5) + 1024
                        arena = ptr8((s >> 11) + (h * a << 4))
                        if right:
                            arena = ptr8(int(arena) + (1 << right - 1) >> right)
                        arena = ptr8((int(arena) ^ int(blob)) - int(blob))
                    else:
                        blob = ptr8(c * int(arena) >> 10)
                        blob = ptr8(b * int(arena) + int(blob) >> 10)
                        blob = ptr8((int(arena) >> 30 << 11) + int(blob))
                        arena = ptr8(a * int(arena) + int(blob) + nudge >> shift)
                    arena = ptr8(base + int(arena))
                    if (span - int(arena) | int(arena)) >> 30:
                        if int(arena) < 0:
                            arena = ptr8(0)
                        else:
                            arena = ptr8(span)
                    blob = out
                    blob[0] = lowest + int(arena)
                    out = ptr8(channels + int(blob))
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
    base = offset - lowest
    span = highest - lowest
    numbers = int(ptr8(k[3][0]))
    top = 0 - int(p[17])
    w_zero = int(p[21])
    multiplier = int(p[22])
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
                    blob[0] = arena[0]
                    arena = ptr8(depth + int(arena))
                    blob[1] = arena[0]
                    arena = ptr8(depth + int(arena))
                    blob[2] = arena[0]
                    arena = ptr8(depth + int(arena))
                    blob[3] = arena[0]
                    arena = ptr8(depth + int(arena))
                    blob = ptr8(int(blob) + 4)
                    i -= 1
                if inside & 2:
                    blob[0] = arena[0]
                    arena = ptr8(depth + int(arena))
                    blob[1] = arena[0]
                    arena = ptr8(depth + int(arena))
                    blob = ptr8(int(blob) + 2)
                if inside & 1:
                    blob[0] = arena[0]
                    arena = ptr8(depth + int(arena))
                arena = ptr8(gap + int(arena))
                blob = ptr8(skip + int(blob))
            copies -= 1
            if copies == 0:
                copies = multiplier
                x += 1
            arena = ptr8(weights + o)
            if is_3x3:
                w0 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w1 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w2 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w3 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w4 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w5 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w6 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w7 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                w8 = (arena[0] | 0) - w_zero
                arena = ptr8(channels + int(arena))
                total = w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8
            else:
                p = ptr32(numbers)
                total = 0
                i = taps
                while i:
                    s = (arena[0] | 0) - w_zero
                    arena = ptr8(channels + int(arena))
                    p[0] = s
                    total += s
                    p = ptr32(int(p) + 4)
                    i -= 1
            m = ptr8(int(bias) + 4 * o)
            first = ((m[3] ^ 128) - 128 << 24 | m[2] << 16 | m[1] << 8 | m[0]) - total * zero
            # Scale
            blob = ptr8(int(limbs) + 6 * o)
            a = (blob[1] << 8) + blob[0]
            b = (blob[3] << 8) + blob[2]
            c = (blob[5] << 8) + blob[4]
            blob = ptr8(int(shifts) + 2 * o)
            left = blob[0]
            right = blob[1]
            shift = right + 11
            nudge = (1 << right + 10) + 1024
            quick = 805306368
            if not left | right - 1 >> 4:
                quick = 524288
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
                        arena = ptr8((w0 | 0) * blob[0] + int(arena))
                        arena = ptr8((w1 | 0) * blob[1] + int(arena))
                        arena = ptr8((w2 | 0) * blob[2] + int(arena))
                        blob = ptr8(reach + int(blob))
                        arena = ptr8((w3 | 0) * blob[0] + int(arena))
                        arena = ptr8((w4 | 0) * blob[1] + int(arena))
                        arena = ptr8((w5 | 0) * blob[2] + int(arena))
                        blob = ptr8(reach + int(blob))
                        arena = ptr8((w6 | 0) * blob[0] + int(arena))
                        arena = ptr8((w7 | 0) * blob[1] + int(arena))
                        arena = ptr8((w8 | 0) * blob[2] + int(arena))
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
                    # Store
                    if quick + int(arena) >> 20:
                        arena = ptr8((int(arena) & 1073741823 ^ 536870912) - 536870912)
                        blob = ptr8(int(arena) >> 30)
                        arena = ptr8((int(arena) ^ int(blob)) - int(blob) << left)
                        h = int(arena) >> 15
                        arena = ptr8(int(arena) & 32767)
                        s = int(arena) * c + int(blob)
                        s = int(arena) * b + (s >> 10) + (h * c << 5)
                        s = int(arena) * a + (s >> 10) + (h * b << 5) + 1024
                        arena = ptr8((s >> 11) + (h * a << 4))
                        if right:
                            arena = ptr8(int(arena) + (1 << right - 1) >> right)
                        arena = ptr8((int(arena) ^ int(blob)) - int(blob))
                    else:
                        blob = ptr8(c * int(arena) >> 10)
                        blob = ptr8(b * int(arena) + int(blob) >> 10)
                        blob = ptr8((int(arena) >> 30 << 11) + int(blob))
                        arena = ptr8(a * int(arena) + int(blob) + nudge >> shift)
                    arena = ptr8(base + int(arena))
                    if (span - int(arena) | int(arena)) >> 30:
                        if int(arena) < 0:
                            arena = ptr8(0)
                        else:
                            arena = ptr8(span)
                    blob = out
                    blob[0] = lowest + int(arena)
                    out = ptr8(channels + int(blob))
            o += 1
        result += together * columns * channels
        top += together * stride_y
