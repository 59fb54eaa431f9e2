"""Means of unlike models' scores, and calibrated scores of trees and of several classes, as one int8 .tflite.

Each member becomes int8 alone and takes its own numbers of the common input; a dense layer behind them takes the mean.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..tflite import TREES, Graph, Operator, Tensor, read
from ..tflite_write import write
from .int8_trees import STEP, table_tensors
from .scaling import scaled
from .trained_model import Encoding, NoInt8Form, Source

Table = Callable[[np.ndarray], np.ndarray]
SCORE = 1 / 256, -128  # quantisation of a score
LEAST_SHARE = 1 / 512  # smaller ones count as this, where shares get the sum 1


@dataclass(frozen=True)
class Member:
    """One model of several.

    Attributes:
        source: The model.
        columns: The numbers of a sample that it reads.
        weight: Of its scores in the mean.
        tables: A function for each of its outputs, which gives a share in [0, 1]; (): the outputs are scores. Of more shares
            than one the sum becomes 1.
    """

    source: Source
    columns: list[int]
    weight: float = 1.0
    tables: tuple[Table, ...] = ()


def mean(ensemble: Source, members: list[Member], last: Table | None = None) -> Source:
    """Return the weighted mean of the members' scores; last: a function of it. ensemble: what it says of itself."""
    return replace(ensemble, fitted=lambda own, x: _fitted(own, members, last, x))


def _fitted(ensemble: Source, members: list[Member], last: Table | None, x: np.ndarray) -> Source:
    ready = [scaled(member.source, x[:, member.columns]) for member in members]
    graphs = [read(own.quantise(own.prepared(x[:, member.columns]))) for own, member in zip(ready, members)]
    numbers: list[tuple[float, float, int, float | None, float | None]] = []  # factor, offset, column, missing, equal
    for own, member, graph in zip(ready, members, graphs):
        scale, zero = graph.tensors[graph.inputs[0]].quantisation
        count = graph.tensors[graph.inputs[0]].shape[1]
        encoding = own.encoding or Encoding(list(range(count)), None, None)
        factor = np.broadcast_to(own.factor, count) / scale * STEP
        offset = (np.broadcast_to(own.offset, count) / scale + zero) * STEP
        rules = [rule or [None] * count for rule in (encoding.missing, encoding.equal)]
        numbers += zip(factor, offset, [member.columns[n] for n in encoding.columns], *rules)
    factors, offsets, columns, missing, equal = (list(values) for values in zip(*numbers))
    content = _joined(ensemble, members, graphs, last)
    rule = [values if set(values) != {None} else None for values in (missing, equal)]
    return replace(
        ensemble, fitted=None, quantise=lambda _: content, factor=np.array(factors), offset=np.array(offsets),
        encoding=Encoding(columns, *rule),
    )  # fmt: skip


class _Builder:
    """Tensors and operators of a graph that grows."""

    def __init__(self, inputs: int) -> None:
        self.tensors = [Tensor(0, "x", (1, inputs), "int8", None, np.array([STEP], np.float32), np.zeros(1, np.int64))]
        self.operators: list[Operator] = []

    def tensor(self, shape: tuple[int, ...], quantisation: tuple[float, int] = SCORE) -> int:
        scale, zero = np.array(quantisation[:1], np.float32), np.array(quantisation[1:], np.int64)
        self.tensors.append(Tensor(len(self.tensors), f"t{len(self.tensors)}", shape, "int8", None, scale, zero))
        return len(self.tensors) - 1

    def constant(self, data: np.ndarray, scale: float | None = None) -> int:
        scales = np.array([] if scale is None else [scale], np.float32)
        zero = np.zeros(len(scales), np.int64)
        self.tensors.append(Tensor(len(self.tensors), f"t{len(self.tensors)}", data.shape, str(data.dtype), data, scales, zero))
        return len(self.tensors) - 1

    def add(self, name: str, inputs: list[int], output: int, **options: float) -> int:
        self.operators.append(Operator(name, 1, tuple(inputs), (output,), options))
        return output

    def member(self, graph: Graph, begin: int) -> int:
        """Add a member's graph, which reads numbers from `begin` on; return its output."""
        base, start = len(self.tensors), graph.inputs[0]
        shape = graph.tensors[start].shape
        self.tensors += [replace(t, index=base + t.index, name=f"{base}/{t.name}") for t in graph.tensors]
        sizes = [self.constant(np.array(values, np.int32)) for values in ([0, begin], shape)]
        self.add("SLICE", [0, *sizes], base + start)
        for o in graph.operators:
            ends = [tuple(n + base if n >= 0 else n for n in side) for side in (o.inputs, o.outputs)]
            self.operators.append(replace(o, inputs=ends[0], outputs=ends[1]))
        return base + graph.outputs[0]

    def tables(self, x: int, functions: tuple[Table, ...]) -> int:
        """Add functions of the numbers of a tensor, each a tree; of several the shares get the sum 1."""
        scale, zero = self.tensors[x].quantisation
        given = [np.clip(function(scale * (np.arange(-128, 128) - zero)), 0, 1) for function in functions]
        alone, step = len(given) == 1, SCORE[0] if len(given) == 1 else -np.log(LEAST_SHARE) / 255
        rows = given if alone else [np.log(np.maximum(values, LEAST_SHARE)) for values in given]
        rows = [np.round(values / step) * step for values in rows]
        if all(np.ptp(values) == 0 for values in rows):  # a tree must ask for something
            rows[0][0] += step if rows[0][0] < 0.5 else -step
        own = [replace(t, index=len(self.tensors) + n) for n, t in enumerate(table_tensors(rows))]
        self.tensors += own
        y = self.tensor((1, len(rows)), SCORE if alone else (step, 127))
        self.add(TREES, [x, *(t.index for t in own)], y)
        return y if alone else self.add("SOFTMAX", [y], self.tensor((1, len(rows))), beta=1.0)


def _joined(ensemble: Source, members: list[Member], graphs: list[Graph], last: Table | None) -> bytes:
    """The .tflite of all members."""
    sizes = [graph.tensors[graph.inputs[0]].shape[1] for graph in graphs]
    into = _Builder(sum(sizes))
    outputs = []
    for member, graph, begin in zip(members, graphs, np.cumsum([0, *sizes])):
        y = into.member(_with_step(ensemble, graph), int(begin))
        if member.tables:
            y = into.tables(y, member.tables)
        scale, zero = into.tensors[y].quantisation
        if abs(scale * 256 - 1) > 0.01 or zero != SCORE[1]:
            raise NoInt8Form(f"{ensemble.path}: a member of it gives no scores")
        into.tensors[y] = replace(into.tensors[y], scale=np.array([SCORE[0]], np.float32))
        outputs.append(y)
    y, classes = outputs[0], into.tensors[outputs[0]].size
    if len(members) > 1:
        y = into.add("CONCATENATION", outputs, into.tensor((1, classes * len(members))), axis=1, fused=0)
        shares = np.array([member.weight for member in members]) / sum(member.weight for member in members)
        scale = float(np.max(shares)) / 127
        weights = np.kron(np.round(shares / scale), np.eye(classes)).astype(np.int8)
        scale /= float((weights[0].astype(int)).sum() * scale)  # so that the rounded weights have the sum 1
        bias = into.constant(np.zeros(classes, np.int32), scale * SCORE[0])
        y = into.add("FULLY_CONNECTED", [y, into.constant(weights, scale), bias], into.tensor((1, classes)), fused=0)
    if last:
        y = into.tables(y, (last,))
    return write(Graph(str(ensemble.path), 0, tuple(into.tensors), tuple(into.operators), (0,), (y,)))


def _with_step(ensemble: Source, graph: Graph) -> Graph:
    """The graph with the input's step STEP and zero point 0: the dense layers that read it take the opposite."""
    start, tensors = graph.inputs[0], list(graph.tensors)
    scale, zero = tensors[start].quantisation
    for operator in graph.operators:
        if start not in operator.inputs or operator.name == TREES:
            continue
        if operator.name != "FULLY_CONNECTED" or min(operator.inputs) < 0:
            raise NoInt8Form(f"{ensemble.path}: a member of it begins with {operator.name}")
        weights, bias = (tensors[n] for n in operator.inputs[1:])
        assert weights.data is not None and bias.data is not None
        tensors[weights.index] = replace(weights, scale=(weights.scale * (scale / STEP)).astype(np.float32))
        moved = bias.data.ravel().astype(np.int64) - zero * weights.data.astype(np.int64).sum(1)
        tensors[bias.index] = replace(bias, data=moved.astype(np.int32).reshape(bias.shape))
    tensors[start] = replace(tensors[start], scale=np.array([STEP], np.float32), zero=np.zeros(1, np.int64))
    return replace(graph, tensors=tuple(tensors))
