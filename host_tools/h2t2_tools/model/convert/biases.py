"""Channels that training switched off, after quantisation: their bias as a number that int32 and a board hold."""

from collections import Counter

import numpy as np

from ..plan import WEIGHTED
from ..tflite import Graph, Operator, read
from ..tflite_edit import with_constants

GREATEST_BIAS = 2**27  # with the products of a layer it stays within a board's accumulator, plan.LIMIT


def bound_biases(content: bytes, original: bytes) -> bytes:
    """The int8 .tflite with every bias within +-GREATEST_BIAS; original: the float .tflite it was quantised from.

    Of a channel whose weights vanish the quantizer makes their scale so small that the bias, in steps of that scale and the
    input's, leaves int32: it then saturates, or changes its sign. Such a channel gets a larger scale, by which its weights
    round to 0, or nearly: they add less than a millionth of its bias.
    """
    graph, real = read(content), read(original)
    sources = {real.tensors[o.outputs[0]].name: o for o in real.operators if o.name in WEIGHTED}
    changes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    uses = Counter(n for operator in graph.operators for n in operator.inputs)
    for operator in graph.operators:
        source = sources.get(graph.tensors[operator.outputs[0]].name) if operator.name in WEIGHTED else None
        if source and source.name == operator.name and all(uses[n] == 1 for n in operator.inputs[1:] if n >= 0):
            changes |= _rescaled(graph, operator, real, source)
    return with_constants(content, changes) if changes else content


def _rescaled(graph: Graph, operator: Operator, real: Graph, source: Operator) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """{tensor: (its data, its scales)} of the weights and bias of a layer that has such channels; {} of any other."""
    ends = [*operator.inputs, -1][:3], [*source.inputs, -1][:3]
    if min(*ends[0], *ends[1]) < 0:
        return {}
    x, weights, bias = (graph.tensors[n] for n in ends[0])
    real_weights, real_bias = (real.tensors[n].data for n in ends[1][1:])
    if real_weights is None or real_bias is None or weights.data is None or weights.dtype != "int8" or bias.dtype != "int32":
        return {}
    axis = len(weights.shape) - 1 if operator.name == "DEPTHWISE_CONV_2D" else 0
    step = float(x.scale[0])
    smallest = np.abs(real_bias.ravel().astype(np.float64)) / (step * GREATEST_BIAS)
    if len(weights.scale) == 1:
        smallest = smallest.max(keepdims=True)
    if not (weights.scale < smallest).any():
        return {}
    scale = np.maximum(weights.scale.astype(np.float64), smallest).astype(np.float32)
    along = [-1 if n == axis else 1 for n in range(len(weights.shape))]
    unchanged = (weights.scale >= smallest).reshape(along if len(scale) > 1 else [1] * len(along))
    rounded = np.clip(np.round(real_weights / scale.reshape(unchanged.shape)), -127, 127).astype(np.int8)
    steps = np.round(real_bias.ravel() / (step * scale.astype(np.float64))).astype(np.int32)
    biases = np.where(unchanged.ravel(), bias.data.ravel(), steps) if bias.data is not None else steps
    return {
        weights.index: (np.where(unchanged, weights.data, rounded), scale),
        bias.index: (biases.astype(np.int32), (np.float32(step) * scale).astype(np.float32)),
    }
