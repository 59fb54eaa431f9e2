"""Factor and offset for each number of a sample, or each of its channels, where one int8 scale cannot serve them all.

The first layers take the opposite into their weights: dense layers that read numbers, convolutions that read channels. A number
that a dense layer weighs much more than its sum's int8 has steps for has several inputs.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..tflite import Graph, Operator, read
from ..tflite_edit import with_constants, with_input
from .from_tflite import of_network
from .logits import LARGEST, are_own
from .trained_model import Encoding, Source

INNER = 0.5, 99.5  # percentiles between which most samples lie
FEWEST_STEPS = 4  # of int8 in the standard deviation of a number; a scaler's output has about 30
RESHAPING = "RESHAPE", "EXPAND_DIMS", "SQUEEZE"
CHANNELS_LAST = {"FULLY_CONNECTED": 1, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3}  # axis of the weights along which the inputs lie
MOST_COPIES = 16  # inputs of a number
MOST_ADDED = 64  # inputs of all numbers, beside one of each
SAME = 0  # padding: an offset would shift the zeros around a picture


@dataclass(frozen=True)
class FirstLayers:
    """The layers that read a sample.

    Attributes:
        numbers: Of the operators.
        axis: Of a sample, from 0 without the batch, along which each layer has a weight for a number.
        is_padded: Whether zeros stand around a sample, which no offset may shift.
    """

    numbers: list[int]
    axis: int
    is_padded: bool


def scaled(source: Source, x: np.ndarray) -> Source:
    """The source whose int8 model takes every number around 0 with a deviation of 1, where its numbers are unlike.

    The first layers' weights take the opposite, so the scores stay. x: calibration samples, float32 (n, *shape). Other sources
    are returned as they are: those with like numbers, and those whose first layers are neither dense nor convolutions. Of a
    source without a scaler of its own, a number that weighs much has several inputs.
    """
    if source.fitted:
        return source.fitted(source, x)
    around_zero = _around_zero(source, x)
    return _repeated(around_zero, x) if around_zero is not source and not np.ndim(source.factor) else around_zero


def _repeated(source: Source, x: np.ndarray) -> Source:
    """The source with k inputs for a number whose int8 steps would move a sum of the first layers by k of the sum's own.

    Each input is shifted by a k-th of a step, so together they have k times as many; each has a k-th of the weights.
    """
    if not source.content or not np.ndim(source.factor):
        return source
    graph, prepared = read(source.content), source.prepared(x)
    readers = [graph.operators[n] for n in _readers(graph, graph.inputs[0])]
    if not all(reader.name == "FULLY_CONNECTED" and are_own(graph, reader) for reader in readers):
        return source
    step = (max(float(prepared.max()), 0) - min(float(prepared.min()), 0)) / 255
    moved = [np.ones(prepared.shape[1])]
    for reader in readers:
        weights, bias = (np.asarray(graph.tensors[n].data, float) for n in reader.inputs[1:])
        sums = prepared @ weights.T + bias
        ends_there = any(graph.operators[n].name == "LOGISTIC" for n in _readers(graph, reader.outputs[0]))
        sums = np.clip(sums, -LARGEST, LARGEST) if ends_there else sums
        moved.append(np.abs(weights).max(0) * step * 255 / max(float(np.ptp(sums)), 1e-9))
    wanted = np.ceil(np.clip(np.max(moved, 0), 1, MOST_COPIES)).astype(int)
    fitting = [most for most in range(1, MOST_COPIES + 1) if np.minimum(wanted, most).sum() <= len(wanted) + MOST_ADDED]
    copies = np.minimum(wanted, fitting[-1])
    columns = np.repeat(np.arange(len(copies)), copies)
    if len(columns) == len(copies):
        return source
    changed = {n: np.asarray(graph.tensors[n].data) for n in (reader.inputs[1] for reader in readers)}
    content = with_input(source.content, len(columns), {n: (data / copies)[:, columns] for n, data in changed.items()})
    place = np.arange(len(columns)) - (np.cumsum(copies) - copies)[columns]
    shift = step * (place - (copies[columns] - 1) / 2) / copies[columns]
    factor, offset = (np.broadcast_to(numbers, len(copies))[columns] for numbers in (source.factor, source.offset))
    encoding = (source.encoding or Encoding(list(range(len(copies))), None, None)).picked(columns.tolist())
    return of_network(
        source.kind, source.path, source.shape, source.file_bytes, content, source.scores, source.finish,
        factor=factor, offset=offset + shift, encoding=encoding,
    )  # fmt: skip


def _around_zero(source: Source, x: np.ndarray) -> Source:
    """As scaled(), with one input for each number."""
    prepared = source.prepared(x)
    shape = prepared.shape[1:]
    layers = _first_layers(read(source.content), shape) if source.content else None
    if not layers and not source.rescaled:
        return source
    axis = layers.axis if layers else 0
    rows = np.moveaxis(prepared, axis + 1, -1).reshape(-1, shape[axis])
    low, high = np.percentile(rows, INNER, axis=0)
    inner = np.clip(rows, low, high).astype(np.float64)
    centre = np.zeros(len(low)) if layers and layers.is_padded else inner.mean(0)
    deviation = np.sqrt(((inner - centre) ** 2).mean(0))
    step = (max(high.max(), 0) - min(low.min(), 0)) / 255
    varying = deviation > 1e-6 * np.abs(inner.mean(0))
    if not varying.any() or step * FEWEST_STEPS <= deviation[varying].min():
        return source
    factor = np.where(varying, 1 / np.where(varying, deviation, 1), 1)
    along = [-1 if n == axis else 1 for n in range(len(shape))]
    numbers = [np.broadcast_to(values.reshape(along), shape) for values in (factor, centre)]
    scaling = {"factor": source.factor * numbers[0], "offset": (source.offset - numbers[1]) * numbers[0]}
    if source.rescaled:
        return replace(source, quantise=source.rescaled(factor, centre), rescaled=None, **scaling)
    assert source.content and layers
    content = _folded(source.content, layers, factor, centre)
    return of_network(
        source.kind, source.path, source.shape, source.file_bytes, content, source.scores, source.finish,
        encoding=source.encoding, **scaling,
    )  # fmt: skip


def _first_layers(graph: Graph, shape: tuple[int, ...]) -> FirstLayers | None:
    """The layers that read the graph's input, or what only moves its numbers; None where others do, or share their weights."""
    tensor, is_padded = graph.inputs[0], False
    axes = {axis: _indices((1, *shape), axis + 1) for axis in range(len(shape))}
    readers = _readers(graph, tensor)
    while len(readers) == 1 and graph.operators[readers[0]].name in (*RESHAPING, "TRANSPOSE", "PAD"):
        operator = graph.operators[readers[0]]
        tensor = operator.outputs[0]
        is_padded |= operator.name == "PAD"
        if operator.name != "PAD":
            axes = {axis: _moved(graph, operator, numbers) for axis, numbers in axes.items()}
        readers = _readers(graph, tensor)
    found = [axis for axis, numbers in axes.items() if (numbers == _indices(numbers.shape, numbers.ndim - 1)).all()]
    if not readers or not found or (len(shape) > 1 and graph.operators[readers[0]].name == "FULLY_CONNECTED"):
        return None
    for n in readers:
        operator = graph.operators[n]
        if operator.name not in CHANNELS_LAST or not are_own(graph, operator):
            return None
        is_padded |= operator.name != "FULLY_CONNECTED" and operator.options["padding"] == SAME
    return FirstLayers(readers, found[-1], is_padded)


def _readers(graph: Graph, tensor: int) -> list[int]:
    """Numbers of the operators that read a tensor."""
    return [n for n, operator in enumerate(graph.operators) if tensor in operator.inputs]


def _indices(shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Of each number of a tensor its place along an axis."""
    return np.asarray(np.indices(shape)[axis])


def _moved(graph: Graph, operator: Operator, numbers: np.ndarray) -> np.ndarray:
    """What a RESHAPE or a TRANSPOSE makes of the numbers of its input."""
    if operator.name == "TRANSPOSE":
        return numbers.transpose(graph.tensors[operator.inputs[1]].data)
    return numbers.reshape(graph.tensors[operator.outputs[0]].shape)


def _folded(content: bytes, layers: FirstLayers, factor: np.ndarray, centre: np.ndarray) -> bytes:
    """The .tflite whose layers take (x - centre) * factor in place of x."""
    graph, changes = read(content), {}
    for n in layers.numbers:
        operator = graph.operators[n]
        weights, bias = (graph.tensors[m].data for m in operator.inputs[1:3])
        assert weights is not None and bias is not None
        outputs = weights.shape[-1] if operator.name == "DEPTHWISE_CONV_2D" else len(weights)
        repeated = np.repeat(np.stack([factor, centre]), weights.shape[CHANNELS_LAST[operator.name]] // len(factor), axis=1)
        numbers = weights.astype(np.float64)
        moved = numbers * repeated[1]
        added = moved.reshape(-1, outputs).sum(0) if operator.name == "DEPTHWISE_CONV_2D" else moved.reshape(outputs, -1).sum(1)
        for m, data in zip(operator.inputs[1:3], (numbers / repeated[0], bias + added)):
            changes[m] = data.astype(np.float32), np.zeros(0)
    return with_constants(content, changes)
