# Decision trees: the same sums as trees.py.
import micropython


@micropython.viper
def trees(arena, blob, p, k):
    a = ptr8(arena)
    memory = ptr8(blob)
    q = ptr32(p)
    bias = ptr8(k[0])
    limbs = ptr8(k[1])
    shifts = ptr8(k[2])
    x = int(q.x)
    to = int(q.y)
    outputs = int(q.outputs)
    record = int(q.record)
    sums = int(q.sums)
    table = int(q.leaves)
    if table:
        table += int(q.nodes)
    o = 2 * outputs
    while o:
        o -= 1
        a[sums + o] = 0
    at = int(q.nodes)
    count = int(q.count)
    while count:
        count -= 1
        first = at + 4
        child = 0
        while child < 32768:
            node = first + child * record
            feature = int(memory[node])
            if record == 7:
                feature |= int(memory[node + 6]) << 8
            if int(a[x + feature]) > int(memory[node + 1]):
                node += 2
            child = int(memory[node + 2]) | int(memory[node + 3]) << 8
        o = sums
        if table:
            leaf = table + (child - 32768) * outputs
            end = sums + 2 * outputs
        else:
            leaf = 0
            o += 2 * (int(memory[at]) | int(memory[at + 1]) << 8)
            end = o + 2
        value = child - 49152
        while o < end:
            if table:
                value = int(memory[leaf])
                leaf += 1
            value += int(a[o]) | int(a[o + 1]) << 8
            a[o] = value & 255
            a[o + 1] = value >> 8 & 255
            o += 2
        at = first + (int(memory[at + 2]) | int(memory[at + 3]) << 8) * record
    o = 0
    while o < outputs:
        acc = int(a[sums]) | int(a[sums + 1]) << 8
        acc = (acc ^ 32768) - 32768
        sums += 2
        acc += read_bias(o)
        acc = requantise(acc, 0)
        acc += int(q.offset)
        acc = clamp(acc, int(q.low), int(q.high))
        a[to + o] = acc
        o += 1
