# What changes each number, or only moves it, as machine code by MicroPython's viper emitter: the same bytes as kernels.py.
#
# Native words have 32 or 64 bits, so every value here fits 31. Biases and multipliers are read byte by byte where the bundle
# is, which may be anywhere in flash. Requantising is written out in each operator: a call would cost more than it does.
# Parameters stand in the order in which kernels.py unpacks them.
import micropython


@micropython.viper
def arithmetic(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    second = ptr8(blob) if int(q[8]) else a
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q[0])
    to = int(q[1])
    zero = int(q[2])
    offset = int(q[3])
    lowest = int(q[4])
    highest = int(q[5])
    other = int(q[6])
    other_zero = int(q[7])
    inner = int(q[11])
    how = int(q[12])
    rows = int(q[9])
    while rows:
        rows -= 1
        again = int(q[10])
        while again:
            again -= 1
            i = 0
            while i < inner:
                part = int(second[other + i]) - other_zero
                acc = int(a[x]) - zero
                # each input in 2^20ths of the larger scale, then their sum; of a product only that
                n = 1
                if how == 3:
                    acc *= part
                    n = 0
                else:
                    acc <<= 20
                first = 0
                more = 1
                while more:
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
                    if n == 0:
                        more = 0
                    elif n == 1:
                        first = 0 - acc if how == 2 else acc
                        acc = part << 20
                        n = 2
                    else:
                        acc = first - acc if how == 1 else first + acc
                        n = 0
                acc += offset
                if acc < lowest:
                    acc = lowest
                if acc > highest:
                    acc = highest
                a[to] = acc
                x += 1
                to += 1
                i += 1
        other += inner


@micropython.viper
def rescale(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q[0])
    to = int(q[1])
    end = x + int(q[7])
    n = 0
    while x < end:
        acc = int(a[x]) - int(q[2])
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
        x += 1
        to += 1


@micropython.viper
def concatenate(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    x = int(q[0])
    to = int(q[1])
    runs = int(q[7])
    size = int(q[8])
    while runs:
        runs -= 1
        end = x + size
        at = to
        while x < end:
            a[at] = a[x]
            x += 1
            at += 1
        to += int(q[9])


@micropython.viper
def look_up(arena, blob, p, k):
    a = ptr8(arena)
    table = ptr8(blob)
    q = ptr32(p)
    x = int(q[0])
    to = int(q[1])
    at = int(q[6])
    end = x + int(q[7])
    while x < end:
        a[to] = table[at + a[x]]
        x += 1
        to += 1
