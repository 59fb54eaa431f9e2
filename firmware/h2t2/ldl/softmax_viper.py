# SOFTMAX as machine code by MicroPython's viper emitter: the same bytes as kernels.py, whose words on each function hold here.
import micropython


@micropython.viper
def high(x: int, y: int) -> int:
    negative = y < 0
    if negative:
        y = 0 - y
    a = x >> 15
    x &= 32767
    b = y >> 15
    y &= 32767
    low = x * y
    middle = a * y + (low >> 15)
    a = a * b + (middle >> 15)
    middle = (middle & 32767) + x * b
    a += middle >> 15
    low = (middle & 32767) << 15 | low & 32767
    if negative:
        if low:
            a += 1
        return 0 - (a >> 1)
    return (a >> 1) + (a & 1)


@micropython.viper
def reciprocal(total: int, bits: int) -> int:
    fraction = (total - (1 << 31 - bits)) << bits - 1
    if fraction == 0:
        return -1
    r = 1010580540 + int(high(1010580540, 0 - fraction))
    n = 3
    while n:
        n -= 1
        a = r >> 15
        x = r & 32767
        b = fraction >> 15
        y = fraction & 32767
        middle = a * y + (x * y >> 15)
        a = a * b + (middle >> 15)
        a += (middle & 32767) + x * b >> 15
        r += int(high(r, 536870912 - ((a >> 1) + (r >> 1) + ((a & 1) + (r & 1) + 1 >> 1)))) << 2
    return r


@micropython.viper
def softmax(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    table = int(ptr8(blob)) + int(q[6])
    x = int(q[0])
    to = int(q[1])
    classes = int(q[7])
    rows = int(q[8])
    while rows:
        rows -= 1
        top = 0
        i = 0
        while i < classes:
            if int(a[x + i]) > top:
                top = int(a[x + i])
            i += 1
        total = 0
        i = 0
        while i < classes:
            t = ptr8(table + (top - int(a[x + i]) << 2))
            total += ((t[3] << 16 | t[2] << 8 | t[1]) >> 3) + 1 >> 1
            i += 1
        bits = 31
        while total >> 32 - bits:
            bits -= 1
        r = int(reciprocal(total, bits))
        shift = 33 - bits
        i = 0
        while i < classes:
            t = ptr8(table + (top - int(a[x + i]) << 2))
            e = t[3] << 23 | t[2] << 15 | t[1] << 7 | t[0] >> 1
            odd = t[0] & 1
            if r < 0:  # 2^30: its double saturates at 2^31 - 1
                if e > 536870912 and odd == 0:
                    e -= 1
                e = (e >> shift) + 1 >> 1
            else:  # as kernels.share(): the product's two halves of 30 bits, then a rounding shift
                u = r >> 15
                v = r & 32767
                b = e >> 15
                c = e & 32767
                low = v * c
                middle = u * c + (low >> 15)
                high = u * b + (middle >> 15)
                middle = (middle & 32767) + v * b
                high += middle >> 15
                low = (middle & 32767) << 15 | low & 32767
                c = r if odd else 0
                low = (low >> 1) + (c >> 2) + ((low & 1) + (c >> 1 & 1) >> 1) + 134217728
                e = (high + (low >> 29) >> shift) + 1 >> 1
            if e > 255:
                e = 255
            a[to + i] = e
            i += 1
        x += classes
        to += classes
