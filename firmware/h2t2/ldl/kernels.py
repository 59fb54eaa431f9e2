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
    from array import array

    Bytes = bytes | bytearray | memoryview
    Constants = tuple["array[int]", "array[int]", bytes]


def requantise(x: int, channel: int, limbs: "array[int]", shifts: bytes) -> int:
    """x times a channel's multiplier, rounded twice as gemmlowp does; |x| << left < 2^29, right <= 30: every intermediate is
    below 2^30.

    The multiplier (31 bits) is a 2^20 + b 2^10 + c. First rounding: (x m + nudge) / 2^31 toward zero, nudge 2^30 or, for
    x < 0, 1 - 2^30. Second: a right shift, half away from zero.
    """
    c = 3 * channel
    a = limbs[c]
    b = limbs[c + 1]
    c = limbs[c + 2]
    negative = x < 0
    if negative:
        x = -x
    x <<= shifts[2 * channel]
    h = x >> 15
    x &= 32767
    s = x * c
    low = s & 1023
    s = x * b + (s >> 10) + (h * c << 5)
    low |= s & 1023
    s = x * a + (s >> 10) + (h * b << 5) + 1024
    if negative and not low:
        s -= 1
    x = (s >> 11) + (h * a << 4)
    c = shifts[2 * channel + 1]
    if c:
        x = x + (1 << c - 1) >> c
    return -x if negative else x


def _store(arena: bytearray, at: int, y: int, low: int, high: int) -> None:
    """Clamp y to the bounds of the fused activation, and store it."""
    arena[at] = low if y < low else high if y > high else y


def fully_connected(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """FULLY_CONNECTED of one row."""
    x, y, zero, offset, low, high, w, inputs, outputs, w_zero = p
    bias, limbs, shifts = k
    for o in range(outputs):
        acc = bias[o]
        for i in range(inputs):
            acc += (arena[x + i] - zero) * (blob[w + i] - w_zero)
        w += inputs
        _store(arena, y + o, requantise(acc, o, limbs, shifts) + offset, low, high)


def conv_2d(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """CONV_2D; filters lie as output channel, row, column, input channel. Padding is what stands before the input."""
    (
        x, y, zero, offset, low, high, weights, height, width, depth, out_height, out_width, channels, kernel_height,
        kernel_width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, w_zero,
    ) = p  # fmt: skip
    bias, limbs, shifts = k
    for oy in range(out_height):
        for ox in range(out_width):
            w = weights
            for o in range(channels):
                acc = bias[o]
                iy = oy * stride_y - pad_y
                for _ in range(kernel_height):
                    ix = ox * stride_x - pad_x
                    for _ in range(kernel_width):
                        if 0 <= iy < height and 0 <= ix < width:
                            at = x + (iy * width + ix) * depth
                            for i in range(depth):
                                acc += (arena[at + i] - zero) * (blob[w + i] - w_zero)
                        w += depth
                        ix += dilation_x
                    iy += dilation_y
                _store(arena, y, requantise(acc, o, limbs, shifts) + offset, low, high)
                y += 1


def depthwise_conv_2d(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """DEPTHWISE_CONV_2D; filters lie as row, column, output channel; depth_multiplier outputs per input channel."""
    (
        x, y, zero, offset, low, high, weights, height, width, depth, out_height, out_width, channels, kernel_height,
        kernel_width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, w_zero, depth_multiplier,
    ) = p  # fmt: skip
    bias, limbs, shifts = k
    for oy in range(out_height):
        for ox in range(out_width):
            for o in range(channels):
                acc = bias[o]
                w = weights + o
                iy = oy * stride_y - pad_y
                for _ in range(kernel_height):
                    ix = ox * stride_x - pad_x
                    for _ in range(kernel_width):
                        if 0 <= iy < height and 0 <= ix < width:
                            acc += (arena[x + (iy * width + ix) * depth + o // depth_multiplier] - zero) * (blob[w] - w_zero)
                        w += channels
                        ix += dilation_x
                    iy += dilation_y
                _store(arena, y, requantise(acc, o, limbs, shifts) + offset, low, high)
                y += 1


def pool_2d(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """AVERAGE_POOL_2D (average is 1; of uint8 2, halves rounded up) and MAX_POOL_2D (0). Taps in the padding do not count."""
    (
        x, y, _, _, low, high, _, height, width, depth, out_height, out_width, channels, kernel_height, kernel_width, stride_y,
        stride_x, pad_y, pad_x, average,
    ) = p  # fmt: skip
    for oy in range(out_height):
        for ox in range(out_width):
            for o in range(channels):
                total = count = best = 0
                iy = oy * stride_y - pad_y
                for _ in range(kernel_height):
                    ix = ox * stride_x - pad_x
                    for _ in range(kernel_width):
                        if 0 <= iy < height and 0 <= ix < width:
                            u = arena[x + (iy * width + ix) * depth + o]
                            count += 1
                            total += u - 128
                            if u > best:
                                best = u
                        ix += 1
                    iy += 1
                if average:
                    best = (total + count // 2) // count if total > 0 or average > 1 else -((count // 2 - total) // count)
                    best += 128
                _store(arena, y, best, low, high)
                y += 1


def mean(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """MEAN and SUM over `positions` that lie together (height and width, or time), in each of `rows`."""
    x, y, zero, offset, low, high, _, positions, channels, rows = p
    _, limbs, shifts = k
    for _ in range(rows):
        for o in range(channels):
            acc = -positions * zero
            for i in range(positions):
                acc += arena[x + i * channels + o]
            _store(arena, y + o, requantise(acc, 0, limbs, shifts) + offset, low, high)
        x += positions * channels
        y += channels


def arithmetic(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """ADD (operation 0), SUB (1; 2: second less first), MUL (3). Multipliers: of the result; of each input.

    The second may be smaller, and a constant in the bundle: each of its `outer` rows of `inner` bytes counts `repeat` times.
    """
    x, y, zero, offset, low, high, second, second_zero, constant, outer, repeat, inner, operation = p
    _, limbs, shifts = k
    memory = blob if constant else arena
    for row in range(outer * repeat):
        at = second + row // repeat * inner
        for i in range(inner):
            acc = arena[x] - zero
            operand = memory[at + i] - second_zero
            if operation == 3:
                acc *= operand
            else:
                acc = requantise(acc << 20, 1, limbs, shifts)
                operand = requantise(operand << 20, 2, limbs, shifts)
                if operation == 2:
                    acc = -acc
                acc += -operand if operation == 1 else operand
            _store(arena, y, requantise(acc, 0, limbs, shifts) + offset, low, high)
            x += 1
            y += 1


def rescale(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """QUANTIZE from int8 to int8, RELU and RELU6."""
    x, y, zero, offset, low, high, _, count = p
    _, limbs, shifts = k
    for i in range(count):
        _store(arena, y + i, requantise(arena[x + i] - zero, 0, limbs, shifts) + offset, low, high)


def pad(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """PAD of height and width with the output's zero point."""
    x, y, _, offset, _, _, _, height, width, depth, out_height, out_width, rows_before, columns_before = p
    for oy in range(out_height):
        iy = oy - rows_before
        for ox in range(out_width):
            ix = ox - columns_before
            inside = 0 <= iy < height and 0 <= ix < width
            at = x + (iy * width + ix) * depth
            for i in range(depth):
                arena[y] = arena[at + i] if inside else offset
                y += 1


def concatenate(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """One input of a CONCATENATION whose inputs all have the output's quantisation: runs of `size` bytes, `step` apart."""
    x, y, _, _, _, _, _, runs, size, step = p
    for i in range(runs):
        for j in range(size):
            arena[y + i * step + j] = arena[x + i * size + j]


def look_up(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """Every function of one number (LOGISTIC, TANH, LEAKY_RELU, HARD_SWISH, ...): a table of 256 bytes."""
    x, y, _, _, _, _, table, count = p
    for i in range(count):
        arena[y + i] = blob[table + arena[x + i]]


def product_high(x: int, y: int) -> int:
    """x y >> 30 for 0 <= x <= 2^30, 0 <= y < 2^30."""
    a = x >> 15
    x &= 32767
    b = y >> 15
    y &= 32767
    middle = a * y + (x * y >> 15)
    return a * b + (middle >> 15) + ((middle & 32767) + x * b >> 15)


def product_low(x: int, y: int) -> int:
    """x y & 2^30 - 1, likewise."""
    low = (x & 32767) * (y & 32767)
    middle = ((x >> 15) * (y & 32767) + (low >> 15) & 32767) + (x & 32767) * (y >> 15)
    return (middle & 32767) << 15 | low & 32767


def _doubling_high(x: int, y: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul, floor((x y + 2^30) / 2^31), of 0 <= x <= 2^30 and |y| < 2^30."""
    if y >= 0:
        high = product_high(x, y)
        return (high >> 1) + (high & 1)
    return -(product_high(x, -y) + (product_low(x, -y) > 0) >> 1)


def reciprocal(total: int, bits: int) -> int:
    """1 / (1 + f) for 1 + f = total 2^bits / 2^31 in [1, 2), as Q2.29 in (2^29, 2^30): Newton, three steps, as gemmlowp.

    -1 stands for 2^30, which is no small int.

    total: sum of exponentials, Q12.19; bits: its leading zeros, so that 2^31 <= total 2^bits < 2^32.
    """
    # half of 1 + f is 2^30 + fraction, Q0.31: too wide for a small int, so the code below adds its leading bit
    return reciprocal_of((total - (1 << 31 - bits)) << bits - 1)


def reciprocal_of(fraction: int) -> int:
    """The same of half of f, Q0.31."""
    if not fraction:
        return -1
    r = 1010580540 + _doubling_high(1010580540, -fraction)
    for _ in range(3):
        high = product_high(r, fraction)
        product = (high >> 1) + (r >> 1) + ((high & 1) + (r & 1) + 1 >> 1)  # of 2^30 + fraction and r
        r += _doubling_high(r, 536870912 - product) << 2
    return r


def share(r: int, e: int, odd: int, shift: int) -> int:
    """r times an exponential, Q0.8: gemmlowp's product of the doubled reciprocal with 2 e + odd (Q0.31), then a rounding shift.

    r: of reciprocal(); shift: 35 - bits, 23 at least.
    """
    if r < 0:  # 2^30: its double saturates at 2^31 - 1
        if e > 536870912 and not odd:
            e -= 1
        return (e >> shift - 2) + 1 >> 1
    high = product_high(r, e)
    low = product_low(r, e)
    r = odd and r
    low = (low >> 1) + (r >> 2) + ((low & 1) + (r >> 1 & 1) >> 1) + 134217728
    return (high + (low >> 29) >> shift - 2) + 1 >> 1


def softmax(arena: bytearray, blob: "Bytes", p: "array[int]", k: "Constants") -> None:
    """SOFTMAX row by row, in gemmlowp's fixed point. Its table: exp of minus 0..255 steps, Q0.31 in four bytes each."""
    x, y, _, _, _, _, table, classes, rows = p
    for _ in range(rows):
        top = total = 0
        for i in range(classes):
            if arena[x + i] > top:
                top = arena[x + i]
        for i in range(classes):
            at = table + (top - arena[x + i] << 2)
            total += ((blob[at + 3] << 16 | blob[at + 2] << 8 | blob[at + 1]) >> 3) + 1 >> 1  # rounded to Q12.19
        bits = 31
        while total >> 32 - bits:
            bits -= 1
        r = reciprocal(total, bits)
        for i in range(classes):
            at = table + (top - arena[x + i] << 2)
            e = blob[at + 3] << 23 | blob[at + 2] << 15 | blob[at + 1] << 7 | blob[at] >> 1
            e = share(r, e, blob[at] & 1, 35 - bits)
            arena[y + i] = 255 if e > 255 else e
        x += classes
        y += classes
