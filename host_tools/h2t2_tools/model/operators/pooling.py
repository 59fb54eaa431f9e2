"""Operators on pictures without weights: pools, means, padding; and what windows have in common."""

import math

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from .step import Step, ends, parameters
from .tflite_fixed_point import multiplier


def window(operator: Operator, x: Tensor, y: Tensor, height: int, width: int) -> dict[str, int]:
    """The parameters that convolutions and pools have in common; height, width: of the kernel."""
    o = operator.options
    before = []
    for size, out, kernel, stride, dilation in (
        (x.shape[1], y.shape[1], height, o["stride_h"], o.get("dilation_h", 1)),
        (x.shape[2], y.shape[2], width, o["stride_w"], o.get("dilation_w", 1)),
    ):
        total = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size) if o["padding"] == 0 else 0
        before.append(total // 2)
    before = list(o.get("before", before))
    return {
        **sizes(x, y), "channels": y.shape[3], "kernel_height": height, "kernel_width": width,
        "stride_y": o["stride_h"], "stride_x": o["stride_w"], "pad_y": before[0], "pad_x": before[1],
    }  # fmt: skip


def sizes(x: Tensor, y: Tensor) -> dict[str, int]:
    """Sizes of two images, batch first."""
    return {
        "height": x.shape[1], "width": x.shape[2], "depth": x.shape[3], "out_height": y.shape[1], "out_width": y.shape[2],
    }  # fmt: skip


def pool(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = ends(graph, operator)
    own = window(operator, x, y, operator.options["filter_h"], operator.options["filter_w"])
    own["average"] = (2 if operator.options.get("unsigned") else 1) if operator.name == "AVERAGE_POOL_2D" else 0
    return [Step("pool_2d", parameters("pool_2d", x, y, fused, **own), y.index)]


def largest(graph: Graph, operator: Operator) -> list[Step]:
    """REDUCE_MAX over axes that lie together: a pool whose window is a row of all numbers that become one."""
    x, y, fused = ends(graph, operator)
    if x.quantisation != y.quantisation:
        raise UserError(f"{graph.path}: {operator.name}: only with the input's quantisation")
    rows, count, channels = reduced(graph, operator)
    own = {"height": rows, "width": count, "depth": channels, "out_height": rows, "out_width": 1, "channels": channels}
    own |= {"kernel_height": 1, "kernel_width": count, "stride_y": 1, "stride_x": 1, "pad_y": 0, "pad_x": 0, "average": 0}
    return [Step("pool_2d", parameters("pool_2d", x, y, fused, **own), y.index)]


def mean(graph: Graph, operator: Operator) -> list[Step]:
    """MEAN and SUM over axes that lie together, such as height and width, or time."""
    x, y, fused = ends(graph, operator)
    rows, count, channels = reduced(graph, operator)
    m, exponent = multiplier(float(x.scale[0]) / float(y.scale[0]))
    if operator.name == "MEAN":
        shift = min(count.bit_length() - 1, 32, 31 + exponent)
        m, exponent = (m << shift) // count, exponent - shift
    p = parameters("mean", x, y, fused, positions=count, channels=channels, rows=rows)
    return [Step("mean", p, y.index, multipliers=[(m, exponent)], reach=255 * count)]


def reduced(graph: Graph, operator: Operator) -> tuple[int, int, int]:
    """(rows, numbers that become one, channels) of a MEAN or SUM."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    axes = graph.tensors[operator.inputs[1]].data
    reduced_axes = [] if axes is None else sorted({int(a) % len(x.shape) for a in axes.ravel()})
    if not reduced_axes or reduced_axes != list(range(reduced_axes[0], reduced_axes[-1] + 1)):
        raise UserError(f"{graph.path}: {operator.name}: only over axes that lie together")
    first, last = reduced_axes[0], reduced_axes[-1] + 1
    rows, count = math.prod(x.shape[:first]), math.prod(x.shape[first:last])
    if y.size * count != x.size:
        raise ValueError(f"{operator.name} of {x.shape} gives {y.shape}")
    return rows, count, x.size // (rows * count)


def pad(graph: Graph, operator: Operator) -> list[Step]:
    """PAD of any axis, or of two that lie together and have one picture or sequence before them: height and width."""
    x, y, fused = ends(graph, operator)
    around = graph.tensors[operator.inputs[1]].data
    rank = len(x.shape)
    if around is None or around.shape != (rank, 2):
        raise UserError(f"{graph.path}: PAD: only by constants, two an axis")
    padded = {n for n in range(rank) if around[n].any()}
    spans = [(first, last) for first in range(rank) for last in (first + 1, first + 2) if math.prod(x.shape[:first]) == 1]
    first, last = next((span for span in spans if padded <= set(range(*span)) and span[1] <= rank), (0, 0))
    if last:
        pads = [int(around[n][0]) for n in range(first, last)] + [0]
        wide = [tuple(t.shape[first:last]) + (1,) for t in (x, y)]  # of one axis the width is 1
    elif len(padded) == 1:  # channels: each pixel is a row
        last = padded.pop() + 1
        pads = [0, int(around[last - 1][0])]
        wide = [(math.prod(t.shape[: last - 1]), t.shape[last - 1]) for t in (x, y)]
    else:
        raise UserError(f"{graph.path}: PAD: only of one axis, or of two that lie together in one picture or sequence")
    own = {"height": wide[0][0], "width": wide[0][1], "out_height": wide[1][0], "out_width": wide[1][1]}
    own |= {"depth": math.prod(x.shape[last:]), "rows_before": pads[0], "columns_before": pads[1]}
    return [Step("pad", parameters("pad", x, y, fused, **own), y.index)]
