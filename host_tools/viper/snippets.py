# Code that generate.py writes into the kernels of this folder in place of each call, since a call would cost more cycles than
# the code. An argument replaces the parameter of its place; every other name is the kernel's own variable.


def requantise(acc, n):
    """acc times multiplier n, as kernels.requantise(); limbs and shifts are read byte by byte, for they may lie anywhere."""
    negative = acc < 0
    if negative:
        acc = 0 - acc
    acc <<= shifts[2 * n]
    h = acc >> 15
    acc &= 32767
    m = ptr8(int(limbs) + 6 * n)
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
    s = shifts[2 * n + 1]
    if s:
        acc = acc + (1 << s - 1) >> s
    if negative:
        acc = 0 - acc
    return acc


def clamp(value, low, high):
    """value within the bounds of the fused activation."""
    if value < low:
        value = low
    if value > high:
        value = high
    return value


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
