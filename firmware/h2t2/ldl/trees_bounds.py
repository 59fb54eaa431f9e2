# Checks the trees of a bundle: every feature is a number of the sample, every child a later node or a leaf that is there.
# trees.py describes the bytes. Set-up only, like bounds.py.

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, array


def check_trees(blob: "Any", nodes: int, own: "array[int]") -> None:
    """ValueError unless the trees at `nodes` stay inside their bytes and come to an end; own: the step's p[7:]."""
    inputs, outputs, count, size, record, leaves, _ = own
    if outputs < 1:
        raise ValueError("bundle: trees of %d outputs" % outputs)
    rows = (size - leaves) // outputs if leaves else 32768
    if record not in (6, 7) or leaves > size or rows > 32768:
        raise ValueError("bundle: trees of %d bytes, records of %d" % (size, record))
    at, end = nodes, nodes + (leaves or size)
    for _ in range(count):
        head = blob[at : at + 4] if at + 4 <= end else bytes(4)
        output, number = head[0] | head[1] << 8, head[2] | head[3] << 8
        at += 4
        if not number or output >= outputs or at + number * record > end:
            raise ValueError("bundle: a tree of %d nodes, for output %d" % (number, output))
        _check_tree(blob[at : at + number * record], number, record, inputs, 32768 + rows)
        at += number * record


def _check_tree(tree: "Any", number: int, record: int, inputs: int, leaves_end: int) -> None:
    for node in range(number):
        at = node * record
        feature = tree[at] | (tree[at + 6] << 8 if record == 7 else 0)
        if feature >= inputs:
            raise ValueError("bundle: a tree reads number %d of %d" % (feature, inputs))
        for side in (at + 2, at + 4):
            child = tree[side] | tree[side + 1] << 8
            if not (node < child < number or 32768 <= child < leaves_end):
                raise ValueError("bundle: a tree's node leads to %d" % child)
