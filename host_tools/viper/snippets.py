# Code that generate.py writes into the kernels of this folder in place of each call, since a call would cost more cycles than
# the code. An argument replaces the parameter of its place; every other name is the kernel's own variable.


def requantise(acc, n):
    """acc times multiplier n, as kernels.requantise(); limbs and shifts are read byte by byte, for they may lie anywhere.

    A sum below 0 has its nudge less by 1 in 2^31: that 1 is taken from the lowest limb, and each shift rounds down.
    """
    sign = acc >> 30
    acc = (acc ^ sign) - sign << shifts[2 * n]
    h = acc >> 15
    acc &= 32767
    m = ptr8(int(limbs) + 6 * n)
    c = m[4] | m[5] << 8
    b = m[2] | m[3] << 8
    s = acc * c + sign
    s = acc * b + (s >> 10) + (h * c << 5)
    c = m[0] | m[1] << 8
    s = acc * c + (s >> 10) + (h * b << 5) + 1024
    acc = (s >> 11) + (h * c << 4)
    s = shifts[2 * n + 1]
    if s:
        acc = acc + (1 << s - 1) >> s
    acc = (acc ^ sign) - sign
    return acc


def read_scale(n):
    """Multiplier n as its limbs a, b, c and its shifts, and what store_scaled() needs of it; `blob` becomes something else.

    Where sums within 2^19 of 0 may take the short way, `quick` is 2^19; else adding it to a sum never gives less than 2^20.
    """
    blob = ptr8(int(limbs) + 6 * n)
    a = (blob[1] << 8) + blob[0]
    b = (blob[3] << 8) + blob[2]
    c = (blob[5] << 8) + blob[4]
    blob = ptr8(int(shifts) + 2 * n)
    left = blob[0]
    right = blob[1]
    shift = right + 11
    nudge = (1 << right + 10) + 1024
    quick = 805306368
    if not left | right - 1 >> 4:
        quick = 524288


def store_scaled():
    """Store the scaled sum that `arena` holds, within its bounds, at `out`, which moves on; `blob` becomes something else.

    Only the low 32 bits of the sum are right; it is below 2^29. Within 2^19 of 0 it is one limb, and one shift rounds as two
    do: the second rounds a half away from 0, so a negative sum has a nudge that is less by the last bit of the first.
    `base` is the output's zero point less `lowest`, `span` is `highest` less `lowest`.
    """
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


def clamp(value, low, high):
    """value within the bounds of the fused activation."""
    if value < low:
        value = low
    if value > high:
        value = high
    return value


def add_products(first):
    """Eight products more in the sum that `arena` holds, of the numbers at p with the bytes at blob.

    The emitter computes a left operand into a register, where a number as it was read would go to the stack and back: so `| 0`.
    """
    arena = ptr8((p[first] | 0) * blob[first] + int(arena))
    arena = ptr8((p[first + 1] | 0) * blob[first + 1] + int(arena))
    arena = ptr8((p[first + 2] | 0) * blob[first + 2] + int(arena))
    arena = ptr8((p[first + 3] | 0) * blob[first + 3] + int(arena))
    arena = ptr8((p[first + 4] | 0) * blob[first + 4] + int(arena))
    arena = ptr8((p[first + 5] | 0) * blob[first + 5] + int(arena))
    arena = ptr8((p[first + 6] | 0) * blob[first + 6] + int(arena))
    arena = ptr8((p[first + 7] | 0) * blob[first + 7] + int(arena))


def add_product():
    """The next product in the sum that `arena` holds; both pointers move on."""
    arena = ptr8((p[0] | 0) * blob[0] + int(arena))
    p = ptr32(int(p) + 4)
    blob = ptr8(int(blob) + 1)


def add_tap(weight, place):
    """One product more in the sum that `arena` holds, as add_products() adds it, of a byte at blob."""
    arena = ptr8((weight | 0) * blob[place] + int(arena))


def next_weight(weight):
    """weight becomes the byte at `arena`, less its zero point; the pointer moves on to the channel's next."""
    weight = (arena[0] | 0) - w_zero
    arena = ptr8(channels + int(arena))


def copy_byte(place):
    """The input's byte at `arena` to its place at `blob`; `arena` moves on to the channel's next."""
    blob[place] = arena[0]
    arena = ptr8(depth + int(arena))


def read_bias(channel):
    """A channel's bias, four bytes that may lie anywhere."""
    m = ptr8(int(bias) + 4 * channel)
    return (m[3] ^ 128) - 128 << 24 | m[2] << 16 | m[1] << 8 | m[0]


def taps_inside(first, count, at, start, step, taps, size):
    """`count` taps of a window lie inside the input, along one axis: from tap `first`, which is at `at`."""
    first = 0
    at = start
    while at < 0:
        at += step
        first += 1
    count = 0
    i = at
    while first + count < taps and i < size:
        i += step
        count += 1


def read_window():
    """The constants and parameters of a convolution."""
    bias = ptr8(k[0])
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    start = int(arena) + p.x
    out = ptr8(int(arena) + p.y)
    zero = int(p.zero)
    offset = int(p.offset)
    lowest = int(p.low)
    highest = int(p.high)
    weights = int(blob) + p.weights
    height = int(p.height)
    width = int(p.width)
    depth = int(p.depth)
    rows = int(p.out_height)
    columns = int(p.out_width)
    channels = int(p.channels)
    kernel_y = int(p.kernel_height)
    kernel_x = int(p.kernel_width)
    stride_y = int(p.stride_y)
    stride_x = int(p.stride_x)
    pad_x = int(p.pad_x)
    step_y = int(p.dilation_y)
    step_x = int(p.dilation_x)


def read_table(address):
    """The table of numbers_viper.py at an address: CURVE, and behind it SLOPE and BEND."""
    curve = ptr32(address)
    slope = ptr16(int(curve) + 272)
    bend = ptr8(int(curve) + 408)


def scaled(x, q15):
    """numbers.times(x, q15)."""
    return (x >> 15) * q15 + ((x & 32767) * q15 >> 15)


def log_add(x, y):
    """experts.log_add(x, y, unit), with narrow = 2^18 >> unit and half = 2^unit >> 1; y becomes something else."""
    d = x - y
    if d < 0:
        d = 0 - d
        x = y
    if d < narrow:
        d <<= unit
        y = d >> 12
        if y < 60:
            d &= 4095
            x += (curve[y] - d * (slope[y] - (d * bend[y] >> 10)) >> 15) + half >> unit
    return x


def look_up_exp2(y, x, unit):
    """y becomes numbers.exp2(x, unit)."""
    i = x >> 14 - unit
    y = 0
    if i < 30:
        d = ((x << unit) & 2047) << 1
        y = 60 + ((x << unit) >> 11 & 7)
        y = curve[y] - d * (slope[y] - (d * bend[y] >> 10)) >> i


def square_root(root, x):
    """root, which is 0, becomes forecaster.square_root(x)."""
    bit = 16384
    while bit:
        if (root + bit) * (root + bit) <= x:
            root += bit
        bit >>= 1


def smooth(bits):
    """Forecasts i + 2 and i + 3: from the labels and events of the widest cell down to those of the score's own, `leaf`."""
    a = 16384
    b = 16384
    shift = bits
    while shift >= 0:
        at = leaf >> shift
        n = labels[at]
        x = events[at] << 15
        a = (x + 4 * a) // (n + 4)
        b = (x + 32 * b) // (n + 32)
        shift -= 1
    p[i + 2] = a
    p[i + 3] = b


def add_spread(m):
    """m grows by the weighted squares of the distances of the `i` forecasts from their mean x; i becomes 0."""
    while i:
        i -= 1
        w = weight[i]
        if w:
            d = p[i] - x
            d *= d
            m += (d >> 15) * w + ((d & 32767) * w >> 15)


def store_belief(m):
    """belief becomes the mean x and its interval of m on both sides, within 1 and 32767."""
    belief[0] = x
    w = x - m
    if w < 1:
        w = 1
    belief[1] = w
    w = x + m
    if w > 32767:
        w = 32767
    belief[2] = w


def enter_score(score, column):
    """The inputs that a score gives the sample in a column of x: the constant and half the logit; and its logit."""
    if score < 128:
        logit = 0 - int(ptr16(places[10] + (127 - score << 1))[0])
    else:
        logit = ptr16(places[10] + (score - 128 << 1))[0]
    entry = ptr32(int(places) + (column << 2))
    entry[13] = logit << 2
    entry = ptr32(places[11] + 12 * places[0] + (column << 2))
    entry[0] = 32
    entry[3] = logit >> 8
