# The operators of kernels_rare.py as machine code by MicroPython's viper emitter: the same bytes. Every value fits 31 bits;
# multipliers are read byte by byte where the bundle is. Parameters stand in the order in which kernels_rare.py unpacks them.
import micropython


@micropython.viper
def view(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    to = int(q[1])
    step = int(q[17])
    first = int(q[0]) + int(q[7])
    n0 = int(q[8])
    while n0:
        n0 -= 1
        second = first
        n1 = int(q[9])
        while n1:
            n1 -= 1
            third = second
            n2 = int(q[10])
            while n2:
                n2 -= 1
                fourth = third
                n3 = int(q[11])
                while n3:
                    n3 -= 1
                    at = fourth
                    n4 = int(q[12])
                    while n4:
                        n4 -= 1
                        a[to] = a[at]
                        to += 1
                        at += step
                    fourth += int(q[16])
                third += int(q[15])
            second += int(q[14])
        first += int(q[13])


@micropython.viper
def extreme(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    second = ptr8(blob) if int(q[7]) else a
    x = int(q[0])
    to = int(q[1])
    other = int(q[6])
    inner = int(q[10])
    least = int(q[11])
    rows = int(q[8])
    while rows:
        rows -= 1
        again = int(q[9])
        while again:
            again -= 1
            i = 0
            while i < inner:
                u = int(a[x])
                v = int(second[other + i])
                if least:
                    if v < u:
                        u = v
                elif v > u:
                    u = v
                a[to] = u
                x += 1
                to += 1
                i += 1
        other += inner


@micropython.viper
def prelu(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    factors = ptr8(int(ptr8(blob)) + int(q[6]))
    x = int(q[0])
    to = int(q[1])
    inner = int(q[9])
    rows = int(q[8])
    while rows:
        rows -= 1
        i = 0
        while i < inner:
            acc = int(a[x]) - int(q[2])
            n = 0
            if acc < 0:
                acc *= int(factors[i]) - int(q[7])
                n = 1
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
            i += 1


@micropython.viper
def resize_bilinear(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    x = int(q[0])
    to = int(q[1])
    height = int(q[7])
    width = int(q[8])
    depth = int(q[9])
    step_y = int(q[12])
    step_x = int(q[13])
    at_y = int(q[14]) * ((step_y >> 1) - 512)
    rows = int(q[10])
    while rows:
        rows -= 1
        top = at_y >> 10 if at_y > 0 else 0
        bottom = at_y + 1023 >> 10
        if bottom > height - 1:
            bottom = height - 1
        fy = at_y - (top << 10)
        at_x = int(q[14]) * ((step_x >> 1) - 512)
        columns = int(q[11])
        while columns:
            columns -= 1
            left = at_x >> 10 if at_x > 0 else 0
            right = at_x + 1023 >> 10
            if right > width - 1:
                right = width - 1
            fx = at_x - (left << 10)
            one = x + (top * width + left) * depth
            two = x + (top * width + right) * depth
            three = x + (bottom * width + left) * depth
            four = x + (bottom * width + right) * depth
            i = 0
            while i < depth:
                acc = ((int(a[one + i]) - 128) * (1024 - fx) + (int(a[two + i]) - 128) * fx) * (1024 - fy)
                acc += ((int(a[three + i]) - 128) * (1024 - fx) + (int(a[four + i]) - 128) * fx) * fy
                if acc > 0:
                    acc = acc + 524288 >> 20
                else:
                    acc = 0 - (524288 - acc >> 20)
                a[to] = acc + 128
                to += 1
                i += 1
            at_x += step_x
        at_y += step_y


@micropython.viper
def batch_matmul(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q[0])
    to = int(q[1])
    zero = int(q[2])
    other = int(q[6])
    other_zero = int(q[7])
    inner = int(q[10])
    columns = int(q[11])
    step = int(q[13])
    batches = int(q[8])
    while batches:
        batches -= 1
        rows = int(q[9])
        while rows:
            rows -= 1
            j = 0
            while j < columns:
                acc = 0
                at = other + j * int(q[12])
                i = 0
                while i < inner:
                    acc += (int(a[x + i]) - zero) * (int(a[at]) - other_zero)
                    at += step
                    i += 1
                negative = acc < 0
                if negative:
                    acc = 0 - acc
                acc <<= shifts[0]
                h = acc >> 15
                acc &= 32767
                m = limbs
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
                s = shifts[1]
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
                j += 1
            x += inner
        other += inner * columns
