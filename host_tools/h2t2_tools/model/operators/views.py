"""Operators that only move bytes."""

import math
from collections.abc import Sequence

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from .pooling import sizes
from .step import Step, parameters

AXES = 5  # that the kernel has


def _same(graph: Graph, operator: Operator, x: Tensor, y: Tensor) -> None:
    if x.data is not None or x.quantisation != y.quantisation:
        raise UserError(f"{graph.path}: {operator.name}: only of activations with the output's quantisation")


def _constant(graph: Graph, operator: Operator, n: int) -> list[int]:
    """The numbers of its n-th input. UserError where they are computed."""
    data = graph.tensors[operator.inputs[n]].data
    if data is None:
        raise UserError(f"{graph.path}: {operator.name}: by sizes that the model computes; only constants are run")
    return [int(value) for value in data.ravel()]


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[n + 1 :]) for n in range(len(shape))]


def _view(graph: Graph, operator: Operator, x: Tensor, y: Tensor, start: int, axes: list[tuple[int, int]]) -> list[Step]:
    """axes: of each axis of the output, how many and how far apart in the input."""
    _same(graph, operator, x, y)
    merged: list[tuple[int, int]] = []
    for n, stride in axes:
        if n == 1:
            continue
        if merged and merged[-1][1] == n * stride:  # goes on where the axis before left off
            merged[-1] = (merged[-1][0] * n, stride)
        else:
            merged.append((n, stride))
    if len(merged) > AXES:
        raise UserError(f"{graph.path}: {operator.name}: of {x.shape} to {y.shape}: more than {AXES} axes")
    merged = [(1, 0)] * (AXES - len(merged)) + merged
    own = {f"n{i}": n for i, (n, _) in enumerate(merged)} | {f"s{i}": stride for i, (_, stride) in enumerate(merged)}
    if math.prod(n for n, _ in merged) != y.size:
        raise ValueError(f"{operator.name} of {x.shape} gives {y.shape}")
    return [Step("view", parameters("view", x, y, 0, start=start, **own), y.index)]


def transpose(graph: Graph, operator: Operator) -> list[Step]:
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    strides = _strides(x.shape)
    return _view(graph, operator, x, y, 0, [(x.shape[n], strides[n]) for n in _constant(graph, operator, 1)])


def gather(graph: Graph, operator: Operator) -> list[Step]:
    """GATHER of constant places that are equally far apart along an axis."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    axis, places = operator.options["axis"] % len(x.shape), _constant(graph, operator, 1)
    step = places[1] - places[0] if len(places) > 1 else 1
    apart = places != [places[0] + n * step for n in range(len(places))]
    if apart or operator.options["batch_dims"] or min(places) < 0 or max(places) >= x.shape[axis]:
        raise UserError(f"{graph.path}: GATHER: only of constant places that are equally far apart along an axis")
    strides = _strides(x.shape)
    axes = list(zip(x.shape, strides))
    axes[axis] = len(places), step * strides[axis]
    return _view(graph, operator, x, y, places[0] * strides[axis], axes)


def reverse(graph: Graph, operator: Operator) -> list[Step]:
    """REVERSE_V2 along one axis: the numbers from the last to the first."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    strides = _strides(x.shape)
    start, axes = 0, list(zip(x.shape, strides))
    for n in _constant(graph, operator, 1):
        size, stride = axes[n]
        start, axes[n] = start + (size - 1) * stride, (size, -stride)
    return _view(graph, operator, x, y, start, axes)


def slice_view(graph: Graph, operator: Operator) -> list[Step]:
    """SLICE."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    begin, size = _constant(graph, operator, 1), _constant(graph, operator, 2)
    counts = [full - at if n < 0 else n for n, at, full in zip(size, begin, x.shape)]
    strides = _strides(x.shape)
    if any(not 0 <= at < size or not 0 <= at + n - 1 < size for at, n, size in zip(begin, counts, x.shape)):
        raise ValueError(f"a slice outside {x.shape}")
    return _view(graph, operator, x, y, sum(a * s for a, s in zip(begin, strides)), list(zip(counts, strides)))


def strided_slice(graph: Graph, operator: Operator) -> list[Step]:
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    begin, end, step = (_constant(graph, operator, n) for n in (1, 2, 3))
    o = operator.options
    if o["ellipsis_mask"] or o["new_axis_mask"]:
        raise UserError(f"{graph.path}: STRIDED_SLICE with an ellipsis or a new axis: write it out, or RESHAPE")
    if o.get("offset"):
        raise UserError(f"{graph.path}: STRIDED_SLICE whose ends count from its beginnings: write the ends out")
    axes, start, strides = [], 0, _strides(x.shape)
    for n, size in enumerate(x.shape):
        places = range(size)
        if n < len(begin):
            if o["shrink_mask"] >> n & 1:  # one place: the first, where begin is masked
                at = 0 if o["begin_mask"] >> n & 1 else begin[n] + size * (begin[n] < 0)
                if not 0 <= at < size:
                    raise ValueError(f"place {begin[n]} of {size} along axis {n}")
                places = range(at, at + 1)
            else:
                first = None if o["begin_mask"] >> n & 1 else begin[n]
                last = None if o["end_mask"] >> n & 1 else end[n]
                places = range(size)[first : last : step[n]]
        start += places[0] * strides[n]
        axes.append((len(places), places.step * strides[n]))
    return _view(graph, operator, x, y, start, axes)


def split(graph: Graph, operator: Operator) -> list[Step]:
    """SPLIT, SPLIT_V, UNPACK: a step for each output."""
    number = {"SPLIT": 1, "SPLIT_V": 0, "UNPACK": 0}[operator.name]
    x = graph.tensors[operator.inputs[number]]
    axis = operator.options["axis"] if operator.name == "UNPACK" else _constant(graph, operator, 2 if number == 0 else 0)[0]
    axis %= len(x.shape)
    strides, steps, start = _strides(x.shape), [], 0
    for n in operator.outputs:
        y = graph.tensors[n]
        size = 1 if operator.name == "UNPACK" else y.shape[axis]
        axes = list(zip((*x.shape[:axis], size, *x.shape[axis + 1 :]), strides))
        steps += _view(graph, operator, x, y, start, axes)
        start += size * strides[axis]
    if start != x.shape[axis] * strides[axis]:
        raise ValueError(f"{operator.name} of {x.shape} into {len(operator.outputs)}")
    return steps


def blocks(graph: Graph, operator: Operator) -> list[Step]:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    size = operator.options["block"]
    _, height, width, depth = x.shape
    row, column, _ = _strides(x.shape)[1:]
    if operator.name == "DEPTH_TO_SPACE":
        n = depth // size**2
        axes = [(height, row), (size, size * n), (width, column), (size, n), (n, 1)]
    else:
        axes = [(height // size, size * row), (width // size, size * column), (size, row), (size, column), (depth, 1)]
    return _view(graph, operator, x, y, 0, axes)


def tile(graph: Graph, operator: Operator) -> list[Step]:
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    times = _constant(graph, operator, 1)
    axes = [pair for n, size, s in zip(times, x.shape, _strides(x.shape)) for pair in ((n, 0), (size, s))]
    return _view(graph, operator, x, y, 0, axes)


def nearest(graph: Graph, operator: Operator) -> list[Step]:
    """RESIZE_NEAREST_NEIGHBOR by whole numbers."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    if operator.options["align_corners"]:
        raise UserError(f"{graph.path}: {operator.name} with align_corners: leave it out, or use RESIZE_BILINEAR")
    axes, start = [], 0
    for size, out, stride in zip(x.shape[1:3], y.shape[1:3], _strides(x.shape)[1:3]):
        if out % size == 0:
            axes += [(size, stride), (out // size, 0)]
        elif size % out == 0:
            start += stride * (size // out // 2 if operator.options["half_pixel_centers"] else 0)
            axes += [(out, stride * (size // out))]
        else:
            raise UserError(f"{graph.path}: {operator.name} of {size} to {out}: only by a whole number; or use RESIZE_BILINEAR")
    return _view(graph, operator, x, y, start, [*axes, (x.shape[3], 1)])


def bilinear(graph: Graph, operator: Operator) -> list[Step]:
    """RESIZE_BILINEAR. TFLite computes uint8 in float32: the same bytes where float32 is exact, which is checked here."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    _same(graph, operator, x, y)
    half = int(bool(operator.options["half_pixel_centers"]))
    unsigned = int(bool(operator.options.get("unsigned")))
    steps, bits = [], []
    for size, out in zip(x.shape[1:3], y.shape[1:3]):
        inner, outer = (size - 1, out - 1) if operator.options["align_corners"] and out > 1 else (size, out)
        steps.append((1024 * inner + outer // 2) // outer)
        bits.append(_fraction_bits(inner, outer, half))
    if unsigned and 8 + sum(bits) > 24 and any(n and size > 1 for n, size in zip(bits, x.shape[1:3])):
        raise UserError(
            f"{graph.path}: RESIZE_BILINEAR of uint8 {x.shape[1:3]} to {y.shape[1:3]}: TFLite rounds its weights in float32; "
            "resize by a power of two, or convert the model again, to int8 (h2t2 convert)"
        )
    p = parameters("resize_bilinear", x, y, 0, **sizes(x, y), step_y=steps[0], step_x=steps[1], mode=half + 2 * unsigned)
    return [Step("resize_bilinear", p, y.index)]


def _fraction_bits(inner: int, outer: int, half: int) -> int:
    """Bits behind the point of the places n inner / outer, or (n + 1/2) inner / outer - 1/2; 24 for more than 10."""
    denominator = max((1 + half) * outer // math.gcd(inner, (1 + half) * outer), 1 + half)
    return denominator.bit_length() - 1 if denominator <= 1024 and not denominator & denominator - 1 else 24


def concatenate(graph: Graph, operator: Operator) -> list[Step]:
    """CONCATENATION, and PACK, which does so along a new axis."""
    y = graph.tensors[operator.outputs[0]]
    axis = operator.options["axis"] % len(y.shape)
    runs = int(np.prod(y.shape[:axis], dtype=np.int64))
    steps, start = [], 0
    for n in operator.inputs:
        x = graph.tensors[n]
        _same(graph, operator, x, y)
        size = x.size // runs
        p = parameters("concatenate", x, y, 0, runs=runs, size=size, step=y.size // runs)
        steps.append(Step("concatenate", p, y.index, start=start))
        start += size
    return steps


def copied(graph: Graph, operator: Operator) -> list[Step]:
    """READ_VARIABLE and ASSIGN_VARIABLE, of which the one end is the variable's own tensor: its bytes as they are."""
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    return [Step("concatenate", parameters("concatenate", x, y, 0, runs=1, size=x.size, step=x.size), y.index)]
