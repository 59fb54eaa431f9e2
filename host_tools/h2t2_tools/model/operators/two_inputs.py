"""Operators on two inputs, number by number: of one shape, or one of them repeated to the other's (broadcast)."""

import math

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from .step import Step, bytes_of, ends, parameters, zero_byte
from .tflite_fixed_point import in_float32, multiplier, scale_product

MODES = {"ADD": 0, "SUB": 1, "MUL": 3}  # the parameter `how` of kernels.arithmetic
REVERSED_SUB = 2  # SUB whose first input is the one that is repeated


def _operands(graph: Graph, operator: Operator) -> tuple[Tensor, Tensor, bool]:
    """(the input with the output's shape, the second input, whether they changed places). UserError where both are repeated."""
    y = graph.tensors[operator.outputs[0]]
    a, b = (graph.tensors[n] for n in operator.inputs)
    for x, second in ((a, b), (b, a)):
        if x.data is None and x.size == y.size:
            return x, second, x is b
    raise UserError(f"{graph.path}: {operator.name}: of {a.shape} and {b.shape}, both repeated: write one of them in full")


def _broadcast(graph: Graph, operator: Operator, second: Tensor) -> dict[str, int]:
    """Where the second input's numbers go in the output: outer rows of inner numbers, each repeated."""
    full = graph.tensors[operator.outputs[0]].shape  # has the most axes: the first input may have fewer than the second
    shape = (1,) * (len(full) - len(second.shape)) + second.shape
    axes = [n for n, sizes in enumerate(zip(shape, full)) if sizes[0] != sizes[1]]
    first, end = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if any(shape[n] != 1 for n in range(first, end)):
        raise UserError(f"{graph.path}: {operator.name}: {second.shape} repeated to {full} along axes that are apart")
    return {
        "constant": int(second.data is not None), "outer": math.prod(full[:first]), "repeat": math.prod(full[first:end]),
        "inner": math.prod(full[end:]),
    }  # fmt: skip


def _step(kernel: str, p: list[int], second: Tensor, y: Tensor, *, factors: list[float], reach: int = 0) -> list[Step]:
    step = Step(kernel, p, y.index, multipliers=[multiplier(factor) for factor in factors], reach=reach)
    if second.data is None:
        step.second = second.index
    else:
        step.weights = bytes_of(second)
    return [step]


def arithmetic(graph: Graph, operator: Operator) -> list[Step]:
    """ADD, SUB, MUL."""
    x, second, swapped = _operands(graph, operator)
    _, y, fused = ends(graph, operator)
    mode = REVERSED_SUB if swapped and operator.name == "SUB" else MODES[operator.name]
    if operator.name == "MUL":
        factors, reach = [in_float32(x.scale[0], second.scale[0], over=y)], 255 * 255
    else:  # two numbers in 2^20ths of twice the larger scale
        twice = 2 * max(float(x.scale[0]), float(second.scale[0]))
        factors = [twice / (2**20 * float(y.scale[0])), float(x.scale[0]) / twice, float(second.scale[0]) / twice]
        reach = 2**28
    own = {"second_zero": zero_byte(second), "operation": mode, **_broadcast(graph, operator, second)}
    return _step("arithmetic", parameters("arithmetic", x, y, fused, **own), second, y, factors=factors, reach=reach)


def extreme(graph: Graph, operator: Operator) -> list[Step]:
    """MAXIMUM, MINIMUM."""
    x, second, _ = _operands(graph, operator)
    y = graph.tensors[operator.outputs[0]]
    if {x.quantisation, second.quantisation} != {y.quantisation}:
        raise UserError(f"{graph.path}: {operator.name}: only of inputs with the output's quantisation")
    own = {"is_minimum": int(operator.name == "MINIMUM"), **_broadcast(graph, operator, second)}
    return _step("extreme", parameters("extreme", x, y, 0, **own), second, y, factors=[])


def prelu(graph: Graph, operator: Operator) -> list[Step]:
    """PRELU by constants, one for each of the last numbers."""
    x, y, _ = ends(graph, operator)
    slope = graph.tensors[operator.inputs[1]]
    where = _broadcast(graph, operator, slope)
    if slope.data is None or where["outer"] != 1:
        raise UserError(f"{graph.path}: PRELU: only by constants that are repeated along the first axes, not by {slope.shape}")
    factors = [in_float32(x.scale[0], over=y), in_float32(x.scale[0], slope.scale[0], over=y)]
    p = parameters("prelu", x, y, 0, w_zero=zero_byte(slope), outer=where["repeat"], inner=where["inner"])
    return _step("prelu", p, slope, y, factors=factors, reach=255 * 255)


def batch_matmul(graph: Graph, operator: Operator) -> list[Step]:
    """BATCH_MATMUL of two activations."""
    x, y, fused = ends(graph, operator)
    second = graph.tensors[operator.inputs[1]]
    if second.data is not None or operator.options["adjoint_x"] or x.shape[:-2] != second.shape[:-2]:
        raise UserError(f"{graph.path}: BATCH_MATMUL: only of two activations of as many batches, the first not transposed")
    columns, inner = y.shape[-1], x.shape[-1]
    steps = (inner, 1) if operator.options["adjoint_y"] else (1, columns)
    p = parameters(
        "batch_matmul", x, y, fused, second_zero=zero_byte(second), batches=math.prod(x.shape[:-2]), rows=x.shape[-2],
        inner=inner, columns=columns, step_row=steps[0], step_inner=steps[1],
    )  # fmt: skip
    factors = [scale_product(x, second) / float(y.scale[0])]
    return _step("batch_matmul", p, second, y, factors=factors, reach=inner * 255 * 255)
