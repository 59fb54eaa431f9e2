# The dense layer, as machine code by MicroPython's viper emitter: the same bytes as kernels.py.
#
# Native words have 32 or 64 bits, so every value here fits 31. Biases are read as two halves, since a 32-bit load is signed on
# one kind of board and not on the other. Requantising is written out in each operator: a call would cost more than it does.
# Parameters stand in the order in which kernels.py unpacks them.
import micropython


@micropython.viper
def fully_connected(arena, blob, p, k):
    a = ptr8(arena)
    w = ptr8(blob)
    q = ptr32(p)
    bias = ptr16(k[0])
    limbs = ptr16(k[1])
    shifts = ptr8(k[2])
    zero = int(q[2])
    y = int(q[1])
    f = int(q[6])
    n = int(q[7])
    outputs = int(q[8])
    start = int(q[0])
    offset = int(q[3])
    lowest = int(q[4])
    highest = int(q[5])
    o = 0
    while o < outputs:
        acc = (int(bias[2 * o + 1]) ^ 32768) - 32768 << 16 | int(bias[2 * o])
        x = start
        end = start + n
        while x < end:
            acc += (a[x] - zero) * (w[f] - 128)
            x += 1
            f += 1
        # requantise, as kernels.requantise
        negative = acc < 0
        if negative:
            acc = 0 - acc
        acc <<= shifts[2 * o]
        h = acc >> 15
        acc &= 32767
        c = limbs[3 * o + 2]
        b = limbs[3 * o + 1]
        s = acc * c
        low = s & 1023
        s = acc * b + (s >> 10) + (h * c << 5)
        low |= s & 1023
        c = limbs[3 * o]
        s = acc * c + (s >> 10) + (h * b << 5) + 1024
        if negative:
            if low == 0:
                s -= 1
        acc = (s >> 11) + (h * c << 4)
        s = shifts[2 * o + 1]
        if s:
            acc = acc + (1 << s - 1) >> s
        if negative:
            acc = 0 - acc
        acc += offset
        if acc < lowest:
            acc = lowest
        if acc > highest:
            acc = highest
        a[y + o] = acc
        o += 1
