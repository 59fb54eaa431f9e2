"""A dilated convolution as older converters write one: SPACE_TO_BATCH_ND, a convolution, BATCH_TO_SPACE_ND."""

from dataclasses import replace

import numpy as np

from .tflite import Graph, Operator

CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")


def merge_dilated(graph: Graph) -> Graph:
    """The graph with each such triple as one dilated convolution. The sums are the same, since padding adds nothing."""
    operators = list(graph.operators)
    for before in (o for o in graph.operators if o.name == "SPACE_TO_BATCH_ND"):
        conv, after = _only_user(graph, before.outputs[0], CONVOLUTIONS), None
        if conv:
            after = _only_user(graph, conv.outputs[0], ("BATCH_TO_SPACE_ND",))
        if not conv or not after:
            continue
        dilated = _dilated(graph, before, conv, after)
        if dilated:
            operators[operators.index(conv)] = dilated
            operators = [o for o in operators if o is not before and o is not after]
    return replace(graph, operators=tuple(operators))


def _only_user(graph: Graph, tensor: int, names: tuple[str, ...]) -> Operator | None:
    """The operator that reads a tensor as its first input, where it is the only reader and has one of these names."""
    users = [o for o in graph.operators if tensor in o.inputs]
    only = len(users) == 1 and users[0].inputs[0] == tensor and users[0].name in names and tensor not in graph.outputs
    return users[0] if only else None


def _dilated(graph: Graph, before: Operator, conv: Operator, after: Operator) -> Operator | None:
    """The dilated convolution; None where a stride, a dilation of its own, other blocks or inner padding prevent it."""
    x = graph.tensors[before.inputs[0]]
    constants = [graph.tensors[n].data for n in (*before.inputs[1:3], *after.inputs[1:3])]
    data = [d for d in constants if d is not None and d.shape in ((2,), (2, 2))]
    if len(data) < 4 or len(x.shape) != 4 or x.shape[0] != 1:
        return None
    o = conv.options
    block, pads, again, crops = data
    plain = o["padding"] == 1 and {o[n] for n in ("stride_w", "stride_h", "dilation_w", "dilation_h")} == {1}
    top_left = [int(pad) - int(crop) for pad, crop in zip(pads[:, 0], crops[:, 0])]
    if not plain or not np.array_equal(block, again) or min(top_left) < 0:
        return None
    kernel, y = graph.tensors[conv.inputs[1]].shape[1:3], graph.tensors[after.outputs[0]].shape[1:3]
    sides = zip(kernel, block, top_left, y, x.shape[1:3])
    if any((k - 1) * b < pad or out - 1 - pad >= size for k, b, pad, out, size in sides):
        return None  # some of its windows hold nothing but padding
    options = {**o, "dilation_h": int(block[0]), "dilation_w": int(block[1]), "before": tuple(top_left)}
    return replace(conv, inputs=(before.inputs[0], *conv.inputs[1:]), outputs=after.outputs, options=options)
