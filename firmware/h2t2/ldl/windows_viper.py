# Pools, means and padding, as machine code by MicroPython's viper emitter: the same bytes as kernels.py.
#
# Native words have 32 or 64 bits, so every value here fits 31. Biases and multipliers are read byte by byte where the bundle
# is, which may be anywhere in flash. Requantising is written out in each operator: a call would cost more than it does.
# Parameters stand in the order in which kernels.py unpacks them.
import micropython


@micropython.viper
def pool_2d(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    to = int(q[1])
    lowest = int(q[4])
    highest = int(q[5])
    height = int(q[7])
    width = int(q[8])
    depth = int(q[9])
    rows = int(q[10])
    columns = int(q[11])
    kernel_y = int(q[13])
    kernel_x = int(q[14])
    stride_y = int(q[15])
    stride_x = int(q[16])
    average = int(q[19])
    line = width * depth
    top = 0 - int(q[17])
    while rows:
        rows -= 1
        first = top if top > 0 else 0
        end_y = top + kernel_y
        if end_y > height:
            end_y = height
        left = 0 - int(q[18])
        ox = 0
        while ox < columns:
            from_x = left if left > 0 else 0
            end_x = left + kernel_x
            if end_x > width:
                end_x = width
            count = (end_y - first) * (end_x - from_x)
            corner = int(q[0]) + first * line + from_x * depth
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
                if best < lowest:
                    best = lowest
                if best > highest:
                    best = highest
                a[to] = best
                to += 1
                o += 1
            left += stride_x
            ox += 1
        top += stride_y


@micropython.viper
def mean(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q[0])
    to = int(q[1])
    zero = int(q[2])
    positions = int(q[7])
    channels = int(q[8])
    size = positions * channels
    last = x + int(q[9]) * size
    while x < last:
        o = 0
        while o < channels:
            acc = 0 - positions * zero
            n = x + o
            end = n + size
            while n < end:
                acc += a[n]
                n += channels
            n = 0
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
            acc += int(q[3])
            if acc < int(q[4]):
                acc = int(q[4])
            if acc > int(q[5]):
                acc = int(q[5])
            a[to] = acc
            to += 1
            o += 1
        x += size


@micropython.viper
def pad(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    x = int(q[0])
    to = int(q[1])
    line = int(q[8]) * int(q[9])
    before = int(q[13]) * int(q[9])
    size = int(q[11]) * int(q[9])
    row = 0 - int(q[12])
    end = row + int(q[10])
    while row < end:
        i = 0 - before
        last = i + size
        inside = row >= 0 and row < int(q[7])
        while i < last:
            a[to] = int(q[3])
            if inside and i >= 0 and i < line:
                a[to] = a[x]
                x += 1
            to += 1
            i += 1
        row += 1
