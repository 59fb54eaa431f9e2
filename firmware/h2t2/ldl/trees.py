# Decision trees of the integer LDL, loaded for a bundle that has some: a forest, or gradient boosting before its sigmoid or
# softmax. h2t2 makes them (model/convert/forest.py); TFLite has no such operator. kernels.py explains p and k.
from .kernels import requantise, store_byte

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def _add(arena: bytearray, at: int, value: int) -> None:
    """Add to a sum of 16 bits, which wraps."""
    value += arena[at] | arena[at + 1] << 8
    arena[at] = value & 255
    arena[at + 1] = value >> 8 & 255


def trees(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """Sum the leaves that a sample reaches in `count` trees, by output; then bias and multiplier, as a dense layer has.

    A tree is its output and its number of nodes (two bytes each), then its nodes of `record` bytes: feature, threshold, the
    children of numbers up to the threshold and above it (two bytes each), and of records of 7 bytes the feature's high byte. A
    child below 32768 is a node further on in the tree. Others are a leaf: its value, 49152 more, or where `leaves` is not 0 the
    number (32768 more) of a row with a byte for each output, in the table that begins there. sums: where the arena has 16 bits
    for each output.
    """
    x, y, _, offset, low, high, nodes, inputs, outputs, count, size, record, leaves, sums = p
    bias, limbs, shifts = k
    for o in range(2 * outputs):
        arena[sums + o] = 0
    at = nodes
    for _ in range(count):
        first = at + 4
        child = 0
        while child < 32768:
            node = first + child * record
            feature = blob[node]
            if record == 7:
                feature |= blob[node + 6] << 8
            if arena[x + feature] > blob[node + 1]:
                node += 2
            child = blob[node + 2] | blob[node + 3] << 8
        if leaves:
            leaf = nodes + leaves + (child - 32768) * outputs
            for o in range(outputs):
                _add(arena, sums + 2 * o, blob[leaf + o])
        else:
            _add(arena, sums + 2 * (blob[at] | blob[at + 1] << 8), child - 49152)
        at = first + (blob[at + 2] | blob[at + 3] << 8) * record
    for o in range(outputs):
        acc = ((arena[sums + 2 * o] | arena[sums + 2 * o + 1] << 8) ^ 32768) - 32768 + bias[o]
        store_byte(arena, y + o, requantise(acc, 0, limbs, shifts) + offset, low, high)
