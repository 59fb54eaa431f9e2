"""Operators on two inputs, number by number: of one shape, or one of them repeated to the other's (broadcast)."""

from __future__ import annotations

import math

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from .fixed_point import in_float32, multiplier, scale_product
from .step import Step, bytes_of, ends, parameters, zero_byte

HOW = {"ADD": 0, "SUB": 1, "MUL": 3}
TAKEN_FROM = 2  # SUB whose first input is the one that is repeated


def _operands(graph: Graph, operator: Operator) -> tuple[Tensor, Tensor, bool]:
    """The input that has the output's shape, the other, and whether they changed places. UserError where neither will do."""
    y = graph.tensors[operator.outputs[0]]
    one, two = (graph.tensors[n] for n in operator.inputs)
    for x, other in ((one, two), (two, one)):
        if x.data is None and x.size == y.size:
            return x, other, x is two
    raise UserError(f"{graph.path}: {operator.name}: of {one.shape} and {two.shape}, both repeated: write one of them in full")


def _repeated(graph: Graph, operator: Operator, other: Tensor) -> dict[str, int]:
    """Where the other's numbers go in the output: outer rows of inner numbers, each repeated."""
    full = graph.tensors[operator.outputs[0]].shape  # has the most axes: the first input may have fewer than the other
    shape = (1,) * (len(full) - len(other.shape)) + other.shape
    axes = [n for n, (size, wanted) in enumerate(zip(shape, full)) if size != wanted]
    first, end = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if any(shape[n] != 1 for n in range(first, end)):
        raise UserError(f"{graph.path}: {operator.name}: {other.shape} repeated to {full} along axes that are apart")
    return {
        "constant": int(other.data is not None), "outer": math.prod(full[:first]), "repeat": math.prod(full[first:end]),
        "inner": math.prod(full[end:]),
    }  # fmt: skip


def _step(p: list[int], other: Tensor, y: Tensor, kernel: str, real: list[float], reach: int = 0) -> list[Step]:
    made = Step(kernel, p, y.index, multipliers=[multiplier(r) for r in real], reach=reach)
    if other.data is None:
        made.other = other.index
    else:
        made.weights = bytes_of(other)
    return [made]


def arithmetic(graph: Graph, operator: Operator) -> list[Step]:
    """ADD, SUB, MUL."""
    x, other, swapped = _operands(graph, operator)
    _, y, fused = ends(graph, operator)
    how = TAKEN_FROM if swapped and operator.name == "SUB" else HOW[operator.name]
    if operator.name == "MUL":
        real = [in_float32(x.scale[0], other.scale[0], over=y)]
    else:
        twice = 2 * max(float(x.scale[0]), float(other.scale[0]))
        real = [twice / (2**20 * float(y.scale[0])), float(x.scale[0]) / twice, float(other.scale[0]) / twice]
    own = {"other_zero": zero_byte(other), "how": how, **_repeated(graph, operator, other)}
    reach = 255 * 255 if operator.name == "MUL" else 2**28  # of a sum: two numbers in 2^20ths of twice the larger scale
    return _step(parameters("arithmetic", x, y, fused, **own), other, y, "arithmetic", real, reach)


def extreme(graph: Graph, operator: Operator) -> list[Step]:
    """MAXIMUM, MINIMUM."""
    x, other, _ = _operands(graph, operator)
    y = graph.tensors[operator.outputs[0]]
    if {(float(t.scale[0]), int(t.zero[0])) for t in (x, other)} != {(float(y.scale[0]), int(y.zero[0]))}:
        raise UserError(f"{graph.path}: {operator.name}: only of inputs with the output's quantisation")
    own = {"least": int(operator.name == "MINIMUM"), **_repeated(graph, operator, other)}
    return _step(parameters("extreme", x, y, 0, **own), other, y, "extreme", [])


def prelu(graph: Graph, operator: Operator) -> list[Step]:
    """PRELU by constants, one for each of the last numbers."""
    x, y, _ = ends(graph, operator)
    factor = graph.tensors[operator.inputs[1]]
    where = _repeated(graph, operator, factor)
    if factor.data is None or where["outer"] != 1:
        raise UserError(f"{graph.path}: PRELU: only by constants that are repeated along the first axes, not by {factor.shape}")
    real = [in_float32(x.scale[0], over=y), in_float32(x.scale[0], factor.scale[0], over=y)]
    own = {"w_zero": zero_byte(factor), "outer": where["repeat"], "inner": where["inner"]}
    p = parameters("prelu", x, y, 0, **own)
    return [Step("prelu", p, y.index, bytes_of(factor), multipliers=[multiplier(r) for r in real], reach=255 * 255)]


def batch_matmul(graph: Graph, operator: Operator) -> list[Step]:
    """BATCH_MATMUL of two activations."""
    x, y, fused = ends(graph, operator)
    other = graph.tensors[operator.inputs[1]]
    if other.data is not None or operator.options["adjoint_x"] or x.shape[:-2] != other.shape[:-2]:
        raise UserError(f"{graph.path}: BATCH_MATMUL: only of two activations of as many batches, the first not transposed")
    columns, inner = y.shape[-1], x.shape[-1]
    steps = (inner, 1) if operator.options["adjoint_y"] else (1, columns)
    p = parameters(
        "batch_matmul", x, y, fused, other_zero=zero_byte(other), batches=math.prod(x.shape[:-2]), rows=x.shape[-2],
        inner=inner, columns=columns, step_row=steps[0], step_inner=steps[1],
    )  # fmt: skip
    real = scale_product(x, other) / float(y.scale[0])
    return [Step("batch_matmul", p, y.index, multipliers=[multiplier(real)], other=other.index, reach=inner * 255 * 255)]
