# The operators of kernels_rare.py.
import micropython


@micropython.viper
def view(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    to = int(q.y)
    step = int(q.s4)
    first = int(q.x) + int(q.start)
    n0 = int(q.n0)
    while n0:
        n0 -= 1
        second = first
        n1 = int(q.n1)
        while n1:
            n1 -= 1
            third = second
            n2 = int(q.n2)
            while n2:
                n2 -= 1
                fourth = third
                n3 = int(q.n3)
                while n3:
                    n3 -= 1
                    at = fourth
                    n4 = int(q.n4)
                    while n4:
                        n4 -= 1
                        a[to] = a[at]
                        to += 1
                        at += step
                    fourth += int(q.s3)
                third += int(q.s2)
            second += int(q.s1)
        first += int(q.s0)


@micropython.viper
def extreme(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    memory = ptr8(blob) if int(q.constant) else a
    x = int(q.x)
    to = int(q.y)
    second = int(q.second)
    inner = int(q.inner)
    is_minimum = int(q.is_minimum)
    rows = int(q.outer)
    while rows:
        rows -= 1
        again = int(q.repeat)
        while again:
            again -= 1
            i = 0
            while i < inner:
                u = int(a[x])
                v = int(memory[second + i])
                if is_minimum:
                    if v < u:
                        u = v
                elif v > u:
                    u = v
                a[to] = u
                x += 1
                to += 1
                i += 1
        second += inner


@micropython.viper
def prelu(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    factors = ptr8(int(ptr8(blob)) + int(q.w))
    x = int(q.x)
    to = int(q.y)
    inner = int(q.inner)
    rows = int(q.outer)
    while rows:
        rows -= 1
        i = 0
        while i < inner:
            acc = int(a[x]) - int(q.zero)
            n = 0
            if acc < 0:
                acc *= int(factors[i]) - int(q.w_zero)
                n = 1
            acc = requantise(acc, n)
            acc += int(q.offset)
            acc = clamp(acc, int(q.low), int(q.high))
            a[to] = acc
            x += 1
            to += 1
            i += 1


@micropython.viper
def resize_bilinear(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    x = int(q.x)
    to = int(q.y)
    height = int(q.height)
    width = int(q.width)
    depth = int(q.depth)
    step_y = int(q.step_y)
    step_x = int(q.step_x)
    mode = int(q.mode)
    at_y = (mode & 1) * ((step_y >> 1) - 512)
    rows = int(q.out_height)
    while rows:
        rows -= 1
        top = at_y >> 10 if at_y > 0 else 0
        bottom = at_y + 1023 >> 10
        if bottom > height - 1:
            bottom = height - 1
        fy = at_y - (top << 10)
        at_x = (mode & 1) * ((step_x >> 1) - 512)
        columns = int(q.out_width)
        while columns:
            columns -= 1
            west = at_x >> 10 if at_x > 0 else 0
            east = at_x + 1023 >> 10
            if east > width - 1:
                east = width - 1
            fx = at_x - (west << 10)
            nw = x + (top * width + west) * depth
            ne = x + (top * width + east) * depth
            sw = x + (bottom * width + west) * depth
            se = x + (bottom * width + east) * depth
            i = 0
            while i < depth:
                acc = ((int(a[nw + i]) - 128) * (1024 - fx) + (int(a[ne + i]) - 128) * fx) * (1024 - fy)
                acc += ((int(a[sw + i]) - 128) * (1024 - fx) + (int(a[se + i]) - 128) * fx) * fy
                if acc > 0 or mode > 1:
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
    x = int(q.x)
    to = int(q.y)
    zero = int(q.zero)
    second = int(q.second)
    second_zero = int(q.second_zero)
    inner = int(q.inner)
    columns = int(q.columns)
    step = int(q.step_inner)
    batches = int(q.batches)
    while batches:
        batches -= 1
        rows = int(q.rows)
        while rows:
            rows -= 1
            j = 0
            while j < columns:
                acc = 0
                at = second + j * int(q.step_row)
                i = 0
                while i < inner:
                    acc += (int(a[x + i]) - zero) * (int(a[at]) - second_zero)
                    at += step
                    i += 1
                acc = requantise(acc, 0)
                acc += int(q.offset)
                acc = clamp(acc, int(q.low), int(q.high))
                a[to] = acc
                to += 1
                j += 1
            x += inner
        second += inner * columns
