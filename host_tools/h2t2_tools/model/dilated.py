"""A dilated convolution as converters write one: SPACE_TO_BATCH_ND, a convolution, BATCH_TO_SPACE_ND, views between them."""

from dataclasses import replace
from typing import Any

import numpy as np

from .operators import SAME_BYTES
from .tflite import Graph, Operator, Tensor

CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")


def merge_dilated(graph: Graph) -> Graph:
    """The graph with each such group as one dilated convolution. The sums are the same, since padding adds nothing."""
    operators, tensors = list(graph.operators), list(graph.tensors)
    for before in (o for o in graph.operators if o.name == "SPACE_TO_BATCH_ND"):
        conv, views = _next_of(graph, before.outputs[0], CONVOLUTIONS)
        after, more = _next_of(graph, conv.outputs[0], ("BATCH_TO_SPACE_ND",)) if conv else (None, [])
        merged = _dilated(graph, tensors, before, conv, after) if conv and after else []
        if merged:
            at = operators.index(conv) if conv else 0
            operators[at : at + 1] = merged
            operators = [o for o in operators if all(o is not each for each in (before, after, *views, *more))]
    return replace(graph, operators=tuple(operators), tensors=tuple(tensors))


def _next_of(graph: Graph, tensor: int, names: tuple[str, ...]) -> tuple[Operator | None, list[Operator]]:
    """(the operator of one of these names that alone reads a tensor as its first input, the views before it); None without."""
    views: list[Operator] = []
    while True:
        users = [o for o in graph.operators if tensor in o.inputs]
        if len(users) != 1 or users[0].inputs[0] != tensor or tensor in graph.outputs:
            return None, []
        if users[0].name in names:
            return users[0], views
        if users[0].name not in SAME_BYTES:
            return None, []
        views.append(users[0])
        tensor = users[0].outputs[0]


def _dilated(graph: Graph, tensors: list[Tensor], before: Operator, conv: Operator, after: Operator) -> list[Operator]:
    """The dilated convolution, of a sequence between two views; [] where a stride, other blocks or inner padding prevent it.

    tensors: of the graph; what the views need is appended.
    """
    x, y = graph.tensors[before.inputs[0]], graph.tensors[after.outputs[0]]
    constants = [graph.tensors[n].data for n in (*before.inputs[1:3], *after.inputs[1:3])]
    data = [_of_picture(d) for d in constants if d is not None and d.shape in ((2,), (2, 2), (1,), (1, 2))]
    if len(data) < 4 or len(x.shape) not in (3, 4) or x.shape[0] != 1:
        return []
    o = conv.options
    block, pads, again, crops = data
    plain = o["padding"] == 1 and {o[n] for n in ("stride_w", "stride_h", "dilation_w", "dilation_h")} == {1}
    top_left = [int(pad) - int(crop) for pad, crop in zip(pads[:, 0], crops[:, 0])]
    if not plain or not np.array_equal(block, again) or min(top_left) < 0:
        return []
    shapes = [(*(1,) * (4 - len(t.shape)), *t.shape) for t in (x, y)]
    kernel = graph.tensors[conv.inputs[1]].shape[1:3]
    sides = zip(kernel, block, top_left, shapes[1][1:3], shapes[0][1:3])
    if any((k - 1) * b < pad or out - 1 - pad >= size for k, b, pad, out, size in sides):
        return []  # some of its windows hold nothing but padding
    options = {**o, "dilation_h": int(block[0]), "dilation_w": int(block[1]), "before": tuple(top_left)}
    if len(x.shape) == 4:
        return [replace(conv, inputs=(x.index, *conv.inputs[1:]), outputs=(y.index,), options=options)]
    ends = []
    for tensor, shape in zip((x, graph.tensors[conv.outputs[0]]), shapes):
        ends.append(len(tensors))
        tensors.append(replace(tensor, index=len(tensors), shape=shape))
    convolution = replace(conv, inputs=(ends[0], *conv.inputs[1:]), outputs=(ends[1],), options=options)
    views = [Operator("RESHAPE", 1, (a,), (b,), {}) for a, b in ((x.index, ends[0]), (ends[1], y.index))]
    return [views[0], convolution, views[1]]


def _of_picture(numbers: Any) -> np.ndarray:
    """Blocks (2,) or pads (2, 2) of a picture, from those of a sequence, which is one of height 1."""
    if len(numbers) == 2:
        return np.asarray(numbers)
    return np.concatenate([np.ones(1, np.int32), numbers]) if numbers.ndim == 1 else np.concatenate([[[0, 0]], numbers])
