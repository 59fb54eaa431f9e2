# Pools, means and padding.
import micropython


@micropython.viper
def pool_2d(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    to = int(q.y)
    lowest = int(q.low)
    highest = int(q.high)
    height = int(q.height)
    width = int(q.width)
    depth = int(q.depth)
    rows = int(q.out_height)
    columns = int(q.out_width)
    kernel_y = int(q.kernel_height)
    kernel_x = int(q.kernel_width)
    stride_y = int(q.stride_y)
    stride_x = int(q.stride_x)
    average = int(q.average)
    line = width * depth
    top = 0 - int(q.pad_y)
    while rows:
        rows -= 1
        first = top if top > 0 else 0
        end_y = top + kernel_y
        if end_y > height:
            end_y = height
        west = 0 - int(q.pad_x)
        ox = 0
        while ox < columns:
            from_x = west if west > 0 else 0
            end_x = west + kernel_x
            if end_x > width:
                end_x = width
            count = (end_y - first) * (end_x - from_x)
            corner = int(q.x) + first * line + from_x * depth
            span = (end_x - from_x) * depth
            o = 0
            while o < depth:
                best = 0
                at = corner + o
                iy = first
                if average:
                    while iy < end_y:
                        x = at
                        end = at + span
                        while x < end:
                            best += a[x]
                            x += depth
                        at += line
                        iy += 1
                    if average > 1 or best > count << 7:  # the bytes' own mean is rounded as that of q
                        best = (best + (count >> 1)) // count
                    else:
                        best = 128 - ((count >> 1) + (count << 7) - best) // count
                else:
                    while iy < end_y:
                        x = at
                        end = at + span
                        while x < end:
                            u = int(a[x])
                            if u > best:
                                best = u
                            x += depth
                        at += line
                        iy += 1
                best = clamp(best, lowest, highest)
                a[to] = best
                to += 1
                o += 1
            west += stride_x
            ox += 1
        top += stride_y


@micropython.viper
def mean(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q.x)
    to = int(q.y)
    zero = int(q.zero)
    positions = int(q.positions)
    channels = int(q.channels)
    size = positions * channels
    last = x + int(q.rows) * size
    while x < last:
        o = 0
        while o < channels:
            acc = 0 - positions * zero
            n = x + o
            end = n + size
            while n < end:
                acc += a[n]
                n += channels
            acc = requantise(acc, 0)
            acc += int(q.offset)
            acc = clamp(acc, int(q.low), int(q.high))
            a[to] = acc
            to += 1
            o += 1
        x += size


@micropython.viper
def pad(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    x = int(q.x)
    to = int(q.y)
    line = int(q.width) * int(q.depth)
    before = int(q.columns_before) * int(q.depth)
    size = int(q.out_width) * int(q.depth)
    row = 0 - int(q.rows_before)
    end = row + int(q.out_height)
    while row < end:
        i = 0 - before
        last = i + size
        inside = row >= 0 and row < int(q.height)
        while i < last:
            a[to] = int(q.offset)
            if inside and i >= 0 and i < line:
                a[to] = a[x]
                x += 1
            to += 1
            i += 1
        row += 1
