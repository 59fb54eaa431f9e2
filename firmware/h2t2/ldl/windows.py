# Pools, means and padding. kernels.py explains p and k.
from .kernels import requantise, store_byte

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def pool_2d(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """AVERAGE_POOL_2D (average is 1; of uint8 2, halves rounded up) and MAX_POOL_2D (0). Taps in the padding do not count."""
    (
        x, y, _, _, low, high, _, height, width, depth, out_height, out_width, channels, kernel_height, kernel_width, stride_y,
        stride_x, pad_y, pad_x, average,
    ) = p  # fmt: skip
    for oy in range(out_height):
        top = oy * stride_y - pad_y
        bottom = min(top + kernel_height, height)
        top = max(top, 0)
        for ox in range(out_width):
            west = ox * stride_x - pad_x
            east = min(west + kernel_width, width)
            west = max(west, 0)
            count = (bottom - top) * (east - west)
            first = x + (top * width + west) * depth
            for _ in range(channels):
                best = 0
                line = first
                for _ in range(bottom - top):
                    at = line
                    if average:
                        for _ in range(east - west):
                            best += arena[at]
                            at += depth
                    else:
                        for _ in range(east - west):
                            u = arena[at]
                            if u > best:
                                best = u
                            at += depth
                    line += width * depth
                if average > 1 or average and best > 128 * count:  # the mean of q is rounded, halves away from zero
                    best = (best + count // 2) // count
                elif average:
                    best = 128 - (128 * count - best + count // 2) // count
                store_byte(arena, y, best, low, high)
                y += 1
                first += 1


def mean(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """MEAN and SUM over `positions` that lie together (height and width, or time), in each of `rows`."""
    x, y, zero, offset, low, high, _, positions, channels, rows = p
    _, limbs, shifts = k
    for _ in range(rows):
        for o in range(channels):
            acc = -positions * zero
            for i in range(positions):
                acc += arena[x + i * channels + o]
            store_byte(arena, y + o, requantise(acc, 0, limbs, shifts) + offset, low, high)
        x += positions * channels
        y += channels


def pad(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
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
