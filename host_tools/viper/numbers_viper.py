# The operators that change each number, or only move it.
import micropython


@micropython.viper
def arithmetic(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    memory = ptr8(blob) if int(q.constant) else a
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q.x)
    to = int(q.y)
    zero = int(q.zero)
    offset = int(q.offset)
    lowest = int(q.low)
    highest = int(q.high)
    second = int(q.second)
    second_zero = int(q.second_zero)
    inner = int(q.inner)
    operation = int(q.operation)
    rows = int(q.outer)
    while rows:
        rows -= 1
        again = int(q.repeat)
        while again:
            again -= 1
            i = 0
            while i < inner:
                operand = int(memory[second + i]) - second_zero
                acc = int(a[x]) - zero
                # each input in 2^20ths of the larger scale, then their sum; of a product only that
                n = 1
                if operation == 3:
                    acc *= operand
                    n = 0
                else:
                    acc <<= 20
                first = 0
                pending = 1
                while pending:
                    acc = requantise(acc, n)
                    if n == 0:
                        pending = 0
                    elif n == 1:
                        first = 0 - acc if operation == 2 else acc
                        acc = operand << 20
                        n = 2
                    else:
                        acc = first - acc if operation == 1 else first + acc
                        n = 0
                acc += offset
                acc = clamp(acc, lowest, highest)
                a[to] = acc
                x += 1
                to += 1
                i += 1
        second += inner


@micropython.viper
def rescale(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q.x)
    to = int(q.y)
    end = x + int(q.count)
    while x < end:
        acc = int(a[x]) - int(q.zero)
        acc = requantise(acc, 0)
        acc += int(q.offset)
        acc = clamp(acc, int(q.low), int(q.high))
        a[to] = acc
        x += 1
        to += 1


@micropython.viper
def concatenate(arena, blob, p, k):
    a = ptr8(arena)
    q = ptr32(p)
    x = int(q.x)
    to = int(q.y)
    runs = int(q.runs)
    size = int(q.size)
    while runs:
        runs -= 1
        end = x + size
        at = to
        while x < end:
            a[at] = a[x]
            x += 1
            at += 1
        to += int(q.step)
