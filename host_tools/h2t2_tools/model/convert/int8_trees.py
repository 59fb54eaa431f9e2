"""Decision trees in integers: int8 thresholds, leaves of 15 or 8 bits, as a .tflite for the integer interpreter alone.

A number of a sample is compared with thresholds alone, so the range of its thresholds is the range of its int8: what lies
outside is clipped, and goes the same way at every node. A number that is compared with many thresholds has several inputs.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from struct import pack

import numpy as np

from ...common.errors import UserError
from ..operators.trees import LARGEST_SUM
from ..quality import TREES_REMEDY, spread
from ..tflite import TREES, Graph, Operator, Tensor, read
from ..tflite_write import write
from .forest import Forest, Tree, ordered
from .trained_model import Encoding, Source

STEP = 1 / 128  # of the int8 input
LOWEST, HIGHEST = -127.0, 127.0  # between which a number's thresholds lie
ASIDE = 0.1  # of a step, so that a number equal to the first threshold is not rounded across it
WIDENED = 0.0, 0.25, 0.5, 0.75, 3.0, 6.25, 12.5  # steps by which a range may grow, so that steps meet thresholds that matter
NOISE = 0.02  # of a step
FAR = 4.0  # times their range: numbers that lie further from 0
MOST_PARTS = 8  # inputs of a number, on average
LEAST_LOSS = 1e-5  # of a part that is divided
LEAF = 32768  # a child that is a leaf
LARGEST_VALUE, LARGEST_BYTE = 16383, 255  # of a leaf that stands in its parent, and of one in the table
MOST_NODES, MOST_ROWS, MOST_INPUTS = 32768, 32768, 65536  # in a tree, in the table, in a sample
LOGITS = 16.0  # a softmax's inputs need not span more
DECISIVE = 40.0  # a leaf as large decides alone; a larger one would leave no steps for the others
LARGEST_LOGIT = 6.0  # its logistic is 255/256 rounded


def source(forest: Forest, path: Path, file_bytes: int, encoding: Encoding | None = None) -> Source:
    """The source of a forest; path: its file, of that size. UserError for a forest that the operator cannot hold.

    encoding: How a sample's numbers become the forest's; None: as the forest says.
    """
    opened = (path, file_bytes, encoding)
    encoding = encoding or forest.encoding
    numbers = len(set(forest.encoding.columns)) if forest.encoding else forest.inputs
    if not any((tree.feature >= 0).any() for tree in forest.trees):
        raise UserError(f"{path}: no tree of it asks for anything: train it on more data, or with a smaller minimum for a leaf")
    _check_trees(forest, path)
    if forest.inputs > MOST_INPUTS:
        raise UserError(f"{path}: {forest.inputs} numbers in a sample: {MOST_INPUTS} at most")
    fine, columns = divided(_clipped(forest))
    if len(columns) > forest.inputs or encoding:
        encoding = (encoding or Encoding(list(range(forest.inputs)), None, None)).picked(columns)

    def scaled(own: Source, widths: np.ndarray | None) -> Source:
        factor, offset = scaling(fine, widths)
        write = partial(_written, fine, factor, offset, path)
        return replace(own, quantise=write, factor=factor, offset=offset, fitted=None)

    def fitted(own: Source, x: np.ndarray) -> Source:
        rows = x.reshape(len(x), -1)
        return scaled(own, spread(encoding.apply(rows) if encoding else rows))

    bare = Source(
        forest.kind, path, (numbers,), file_bytes, forest.scores, lambda _: b"", encoding=encoding, remedy=TREES_REMEDY,
        complement=(lambda: source(forest.complement(), *opened)) if len(forest.base) == 1 else None,
    )  # fmt: skip
    return replace(scaled(bare, None), fitted=fitted)


def _clipped(forest: Forest) -> Forest:
    """The forest with no leaf beyond DECISIVE before a link: booster leaves without regularisation are as large as 1e30."""
    if forest.link == "none":
        return forest
    return replace(forest, trees=[replace(tree, value=np.clip(tree.value, -DECISIVE, DECISIVE)) for tree in forest.trees])


def _written(forest: Forest, factor: np.ndarray, offset: np.ndarray, path: Path, calibration: np.ndarray) -> bytes:
    return tflite(forest, factor, offset, calibration, path)


def divided(forest: Forest) -> tuple[Forest, list[int]]:
    """The forest with several inputs for a number whose thresholds one int8 tells apart badly, and the number of each input.

    An input has the steps of int8 for its own part of the thresholds. Outside it is clipped, and goes the same way there. The
    part that loses most is divided first, where its two parts lose least; _lost() says what thresholds lose.
    """
    thresholds, features = (np.concatenate([getattr(tree, name) for tree in forest.trees]) for name in ("threshold", "feature"))
    spans = np.concatenate([tree.spans() for tree in forest.trees])
    usable = (features >= 0) & np.isfinite(thresholds)
    parts: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}  # number -> (thresholds, their spans) of each part
    for n in np.unique(features[usable]).tolist():
        own = usable & (features == n)
        values, places = np.unique(thresholds[own], return_inverse=True)
        scale = float(np.diff(np.quantile(thresholds[own], (0.1, 0.9)))[0]) or 1.0
        parts[n] = [(values, np.bincount(places, spans[own]) / scale / spans[usable].sum())]
    for _ in range(MOST_PARTS * len(parts)):
        n, worst = max(((n, part) for n, own in parts.items() for part in own), key=lambda entry: _lost(*entry[1]))
        if _lost(*worst) < LEAST_LOSS:
            break
        values, weights = worst
        below = np.cumsum(weights)[:-1]
        both = below * (values[:-1] - values[0]) + (weights.sum() - below) * (values[-1] - values[1:])
        k = int(np.argmin(both)) + 1
        at = next(m for m, part in enumerate(parts[n]) if part is worst)
        parts[n][at : at + 1] = [(values[:k], weights[:k]), (values[k:], weights[k:])]
    columns = list(range(forest.inputs))
    inputs: dict[int, tuple[list[float], list[int]]] = {}
    for n, own in parts.items():
        inputs[n] = [float(part[0][0]) for part in own[1:]], [n, *range(len(columns), len(columns) + len(own) - 1)]
        columns += [n] * (len(own) - 1)

    def part_of(feature: int, threshold: float) -> int:
        begins, numbers = inputs.get(feature, ([], [feature]))
        return numbers[bisect_right(begins, threshold)]

    trees = [replace(t, feature=np.array([*map(part_of, t.feature.tolist(), t.threshold.tolist())])) for t in forest.trees]
    return replace(forest, inputs=len(columns), trees=trees), columns


def _lost(values: np.ndarray, weights: np.ndarray) -> float:
    """What thresholds of one input lose: the sum of their weights times their range, which int8 has 254 steps for."""
    return float(weights.sum() * (values[-1] - values[0])) / 254


def _check_trees(forest: Forest, path: Path) -> None:
    """Raise a UserError where a file's trees do not fit together."""
    outputs = len(forest.base)
    if forest.output is not None and (
        len(forest.output) != len(forest.trees) or not all(0 <= output < outputs for output in forest.output)
    ):
        raise UserError(f"{path}: its trees are for other outputs than its {outputs}")
    for tree in forest.trees:
        if tree.feature.max() >= forest.inputs:
            raise UserError(f"{path}: a tree reads number {tree.feature.max()} of {forest.inputs}")
        if not np.isfinite(tree.value).all():
            raise UserError(f"{path}: a leaf adds no finite number")


def scaling(forest: Forest, widths: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(factor, offset), (inputs,) each: x * factor + offset is STEP times the int8 input; 0 for a number without thresholds.

    widths: The range of most of each input's numbers, (inputs,), where it is known.
    """
    factor, offset = np.zeros(forest.inputs), np.zeros(forest.inputs)
    features = np.concatenate([tree.feature for tree in forest.trees])
    thresholds = np.concatenate([tree.threshold for tree in forest.trees])
    spans = np.concatenate([tree.spans() for tree in forest.trees])
    usable = (features >= 0) & np.isfinite(thresholds)
    for n in np.unique(features[usable]):
        own = usable & (features == n)
        order = np.argsort(thresholds[own])
        width = np.inf if widths is None or not widths[n] else float(widths[n])
        low, high = _range(thresholds[own][order], spans[own][order], forest.strict, width)
        factor[n], offset[n] = _line(low, high, forest.strict)
    return factor * STEP, offset * STEP


def _line(low: float, high: float, strict: bool) -> tuple[float, float]:
    """(factor, offset) that puts `low` and `high` just inside the ends of int8, in its steps."""
    factor = (HIGHEST - LOWEST - 1) / (high - low)
    return factor, LOWEST + 0.5 + (ASIDE if strict else -ASIDE) - low * factor


def _range(thresholds: np.ndarray, spans: np.ndarray, strict: bool, width: float = np.inf) -> tuple[float, float]:
    """The range of a number's thresholds, sorted, that loses the least. width: of most of its numbers.

    The loss of a threshold is the number of thresholds between it and where int8 moves it, since trees put thresholds where
    samples are, times its span: what the leaves behind it differ by.
    """
    low, high = float(thresholds[0]), float(thresholds[-1])
    # below this range, floats of a board cannot tell steps apart; numbers far from 0, such as a time, need less all the same
    narrow = min(max(abs(low), abs(high), 1e-3), FAR * width) / 64
    high = max(high, low + 2 * narrow)
    step = (high - low) / 254
    ranges = [(low - step * below, high + step * above) for below in WIDENED for above in WIDENED]
    losses = [_loss(thresholds, spans, *ends, strict) for ends in ranges]
    return ranges[int(np.argmin(losses))]


def _loss(thresholds: np.ndarray, spans: np.ndarray, low: float, high: float, strict: bool) -> float:
    """What _range() minimises, of the range from low to high."""
    values, counts = np.unique(thresholds, return_counts=True)
    ranks = np.cumsum(counts) - counts / 2
    factor, offset = _line(low, high, strict)
    moved = (np.clip(_integer(thresholds * factor + offset, strict), LOWEST - 1, HIGHEST) + 0.5 - offset) / factor
    before, after = (np.interp(at, values, ranks, -1, len(thresholds) + 1) for at in (thresholds, moved))
    return float((spans * np.abs(after - before)).mean())


def _integer(threshold: np.ndarray, strict: bool) -> np.ndarray:
    """The integer that a number, rounded, must not exceed to go left, for thresholds in steps of the int8 input.

    A number equal to a threshold goes as in the library, also where floats of 32 bits round it by NOISE.
    """
    return np.asarray(np.ceil(threshold - 0.5 - NOISE) - 1 if strict else np.floor(threshold + 0.5 + NOISE))


@dataclass(frozen=True)
class Nodes:
    """The bytes of all trees, as h2t2/ldl/trees.py describes them.

    Attributes:
        content: The bytes.
        count: Trees.
        record: Bytes of a node.
        leaves: Where the table of rows begins in the content, or 0.
        step: Real size of a step of a leaf.
        bias: What the sums begin with, in steps, (outputs,).
    """

    content: bytes
    count: int
    record: int
    leaves: int
    step: float
    bias: np.ndarray


def nodes(forest: Forest, factor: np.ndarray, offset: np.ndarray, path: Path) -> Nodes:
    """The trees in integers; factor, offset: of scaling(). Nodes that no int8 passes on both sides are left out."""
    step, record = _step(forest), 6 if forest.inputs <= 256 else 7
    bias = np.asarray(forest.base, float) / step
    rows: dict[tuple[int, ...], int] | None = {} if _has_rows(forest) else None
    trees, count = b"", 0
    for n, tree in enumerate(forest.trees):
        values = np.rint(tree.value / step).astype(int)
        output = 0 if forest.output is None else forest.output[n]
        pruned = _pruned(tree, _thresholds(tree, factor / STEP, offset / STEP, forest.strict))
        if not pruned.children:  # a leaf alone
            bias[output : output + values.shape[1]] += values[pruned.root]
            continue
        if len(pruned.children) >= MOST_NODES:
            raise UserError(f"{path}: a tree of {len(pruned.children)} nodes: {MOST_NODES - 1} at most; limit its depth")
        trees += pack("<HH", output, len(pruned.children)) + _records(tree, pruned, values, rows, record)
        count += 1
    if rows is None:
        return Nodes(trees, count, record, 0, step, np.rint(bias).astype(np.int32))
    if len(rows) > MOST_ROWS:
        raise UserError(f"{path}: {len(rows)} different leaves: {MOST_ROWS} at most; limit the trees' depth or their number")
    table = b"".join(map(bytes, rows))
    return Nodes(trees + table, count, record, len(trees), step, np.rint(bias).astype(np.int32))


def _step(forest: Forest) -> float:
    """The size of a leaf's step with which no sum exceeds 16 bits, no leaf in its parent 15, and none in the table a byte."""
    largest = np.array([np.abs(tree.value[tree.feature < 0]).max(0) for tree in forest.trees])
    total = largest.sum(0) if forest.output is None else np.bincount(forest.output, largest[:, 0])
    limit = LARGEST_BYTE if _has_rows(forest) else LARGEST_VALUE
    return float(max(float(np.max(total)) / (LARGEST_SUM - len(forest.trees)), float(np.max(largest)) / limit, 1e-30))


def _has_rows(forest: Forest) -> bool:
    """Whether leaves are rows of a table: shares of several classes."""
    return forest.output is None and len(forest.base) > 1


def _thresholds(tree: Tree, factor: np.ndarray, offset: np.ndarray, strict: bool) -> np.ndarray:
    """The integer of each node's threshold: -129 where no int8 goes left, 127 where each does."""
    at = np.maximum(tree.feature, 0)
    finite = np.where(np.isfinite(tree.threshold), tree.threshold, 0)
    integers = np.clip(_integer(finite * factor[at] + offset[at], strict), -129, 127)
    return np.asarray(np.where(np.isfinite(tree.threshold), integers, np.where(tree.threshold > 0, 127, -129))).astype(int)


@dataclass(frozen=True)
class Pruned:
    """What a tree still asks in integers.

    Attributes:
        root: Its first node; a leaf where there are no others.
        thresholds: Of each node of the whole tree.
        children: Node that is kept -> (left, right), parents first.
    """

    root: int
    thresholds: np.ndarray
    children: dict[int, tuple[int, int]]


def _pruned(tree: Tree, thresholds: np.ndarray) -> Pruned:
    """The tree without nodes at which every int8 that gets there goes the same way."""

    def next_node(node: int, ranges: dict[int, tuple[int, int]]) -> int:
        while tree.feature[node] >= 0:
            low, high = ranges.get(int(tree.feature[node]), (-128, 127))
            if low <= thresholds[node] < high:
                break
            node = int(tree.below[node] if thresholds[node] >= high else tree.above[node])
        return node

    root = next_node(0, {})
    children: dict[int, tuple[int, int]] = {}
    waiting: list[tuple[int, dict[int, tuple[int, int]]]] = [(root, {})]
    while waiting:
        node, ranges = waiting.pop()
        feature, threshold = int(tree.feature[node]), int(thresholds[node])
        if feature < 0:
            continue
        low, high = ranges.get(feature, (-128, 127))
        below, above = {**ranges, feature: (low, threshold)}, {**ranges, feature: (threshold + 1, high)}
        children[node] = next_node(int(tree.below[node]), below), next_node(int(tree.above[node]), above)
        waiting += [(children[node][1], above), (children[node][0], below)]
    return Pruned(root, thresholds, children)


def _records(tree: Tree, pruned: Pruned, values: np.ndarray, rows: dict[tuple[int, ...], int] | None, record: int) -> bytes:
    """The bytes of a tree's nodes. rows: the numbers of rows of values; new ones are added. None: a leaf is its value."""
    place = {node: at for at, node in enumerate(pruned.children)}
    content = b""
    for node, both in pruned.children.items():
        numbers = []
        for child in both:
            if child in place:
                numbers.append(place[child])
            elif rows is None:
                numbers.append(LEAF + LARGEST_VALUE + 1 + int(values[child, 0]))
            else:
                numbers.append(LEAF + rows.setdefault(tuple(values[child].tolist()), len(rows)))
        feature = int(tree.feature[node])
        content += pack("<BBHH", feature & 255, int(pruned.thresholds[node]) + 128, *numbers)
        content += bytes([feature >> 8]) if record == 7 else b""
    return content


def tflite(forest: Forest, factor: np.ndarray, offset: np.ndarray, calibration: np.ndarray, path: Path) -> bytes:
    """The .tflite; calibration: samples (n, inputs) as x * factor + offset, which set the range of what a link takes."""
    x = np.divide(calibration - offset, factor, out=np.zeros(calibration.shape), where=factor != 0)
    low, high, base = _range_of_sums(forest, forest.sums(x))
    integers = nodes(replace(forest, base=base), factor, offset, path)
    outputs = len(forest.base)
    scale = 1 / 256 if forest.link == "none" else (high - low) / 255
    zero = -128 if forest.link == "none" else round(-128 - low / scale)
    content = np.frombuffer(integers.content, np.uint8)
    layout = np.array([integers.count, integers.record, integers.leaves], np.int32)
    tensors = [
        _tensor(0, "x", (1, forest.inputs), "int8", scale=STEP),
        _tensor(1, "nodes", content.shape, "uint8", content, scale=integers.step),
        _tensor(2, "bias", (outputs,), "int32", integers.bias),
        _tensor(3, "layout", (3,), "int32", layout),
        replace(_tensor(4, "sums", (outputs,), "int16"), variable=True),
        _tensor(5, "sum", (1, outputs), "int8", scale=scale, zero=zero),
        _tensor(6, "score", (1, outputs), "int8", scale=1 / 256, zero=-128),
    ]
    operators = [Operator(TREES, 1, (0, 1, 2, 3, 4), (5,), {})]
    if forest.link != "none":
        options = {"beta": 1.0} if forest.link == "softmax" else {}
        operators.append(Operator(forest.link.upper(), 1, (5,), (6,), options))
    else:
        del tensors[6]
    return write(Graph(str(path), 0, tuple(tensors), tuple(operators), (0,), (len(tensors) - 1,)))


def _range_of_sums(forest: Forest, sums: np.ndarray) -> tuple[float, float, np.ndarray]:
    """(lowest, highest, base) of the sums that a link takes; a softmax's are moved to lie around 0, which changes no score."""
    low, high = float(sums.min()), float(sums.max())
    if forest.link == "softmax":
        half = min(max((high - low) / 2, 0.5), LOGITS / 2)
        return -half, half, np.asarray(forest.base, float) - (high - half)
    return max(min(low, -0.5), -LARGEST_LOGIT), min(max(high, 0.5), LARGEST_LOGIT), np.asarray(forest.base, float)


def with_tables(content: bytes, tables: list[Callable[[np.ndarray], np.ndarray]], reach: float) -> bytes:
    """The int8 .tflite with a function in place of each of the last LOGISTICs, in their order: a tree on its int8 input alone.

    Args:
        content: The .tflite, whose scores are whole 256ths.
        tables: Functions of (256,) numbers from -reach to reach, which the input of a LOGISTIC becomes.
        reach: Beyond it a function is constant.
    """
    graph = read(content)
    tensors, operators = list(graph.tensors), []
    last = [n for n, operator in enumerate(graph.operators) if operator.name == "LOGISTIC"][-len(tables) :]
    replaced = dict(zip(last, tables))
    for place, operator in enumerate(graph.operators):
        if place in replaced:
            n, scale = operator.inputs[0], reach / 127
            tensors[n] = replace(tensors[n], scale=np.array([scale], np.float32), zero=np.zeros(1, np.int64))
            at = len(tensors)
            values = np.round(replaced[place](np.arange(-128, 128) * scale) * 256) / 256
            tensors += [replace(t, index=at + k) for k, t in enumerate(table_tensors([values]))]
            operator = Operator(TREES, 1, (n, at, at + 1, at + 2, at + 3), operator.outputs, {})
        operators.append(operator)
    return write(replace(graph, tensors=tuple(tensors), operators=tuple(operators)))


def table_tensors(rows: list[np.ndarray]) -> list[Tensor]:
    """Nodes, bias, layout and sums of a TREES that gives the values (256,) of each of its inputs' -128 to 127."""
    count = len(rows)
    trees = [_of_steps(values) for values in rows]
    trees = [replace(tree, feature=np.where(tree.feature < 0, -1, n)) for n, tree in enumerate(trees)]
    forest = Forest("", count, trees, list(range(count)) if count > 1 else None, np.zeros(count), "none")
    own = nodes(forest, np.full(count, STEP), np.zeros(count), Path())
    data = np.frombuffer(own.content, np.uint8)
    return [
        _tensor(0, f"nodes{id(rows)}", data.shape, "uint8", data, scale=own.step),
        _tensor(1, f"bias{id(rows)}", (count,), "int32", own.bias),
        _tensor(2, f"layout{id(rows)}", (3,), "int32", np.array([own.count, own.record, own.leaves], np.int32)),
        replace(_tensor(3, f"sums{id(rows)}", (count,), "int16"), variable=True),
    ]


def _of_steps(values: np.ndarray) -> Tree:
    """The tree that gives the values of -128 to 127, (256,), of one number."""
    rows: list[list[float]] = []  # feature, threshold, below, above, value

    def add(low: int, high: int) -> int:
        changes = [k for k in range(low, high) if values[k] != values[k + 1]]
        n, k = len(rows), changes[len(changes) // 2] if changes else low
        rows.append([0 if changes else -1, k - 128, 0, 0, values[low]])
        if changes:
            rows[n][2:4] = add(low, k), add(k + 1, high)
        return n

    add(0, 255)
    feature, threshold, below, above, value = np.array(rows).T
    return ordered(feature, threshold, below, above, value[:, None])


def _tensor(
    index: int, name: str, shape: tuple[int, ...], dtype: str, data: np.ndarray | None = None, scale: float = 0, zero: int = 0
) -> Tensor:
    """A tensor; scale 0: without quantisation."""
    scales = np.array([scale] if scale else [], np.float32)
    return Tensor(index, name, shape, dtype, data, scales, np.full(len(scales), zero, np.int64))
