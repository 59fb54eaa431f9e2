"""QUANTIZE, and activations that are a multiplier and two bounds; SOFTMAX and LOG_SOFTMAX, whose exponentials are a table."""

import math

import numpy as np

from h2t2.cpython.quantise import LOG_QUANTISATION

from ...common.errors import UserError
from ..tflite import FUSED, Graph, Operator
from .step import Step, ends, parameters
from .tflite_fixed_point import doubling_high, exp_on_negative, in_float32, multiplier

FUSED_CODES = {name: code for code, name in FUSED.items()}


def rescale(graph: Graph, operator: Operator) -> list[Step]:
    """QUANTIZE, RELU, RELU6 and RELU_N1_TO_1."""
    x, y, _ = ends(graph, operator)
    if operator.name == "QUANTIZE":
        real, fused = float(x.scale[0]) / float(y.scale[0]), 0
    else:
        real, fused = in_float32(x.scale[0], over=y), FUSED_CODES[operator.name]
    p = parameters("rescale", x, y, fused, count=x.size)
    return [Step("rescale", p, y.index, multipliers=[multiplier(real)], reach=255)]


def softmax(graph: Graph, operator: Operator) -> list[Step]:
    """SOFTMAX along the last axis."""
    x, y, fused = ends(graph, operator)
    exponentials = [exponential for _, exponential in _differences(graph, operator, float(operator.options["beta"]))]
    p = parameters("softmax", x, y, fused, classes=x.shape[-1], rows=x.size // x.shape[-1])
    return [Step("softmax", p, y.index, np.array(exponentials, "<u4").tobytes())]


def log_softmax(graph: Graph, operator: Operator) -> list[Step]:
    """LOG_SOFTMAX along the last axis."""
    x, y, fused = ends(graph, operator)
    if y.quantisation != LOG_QUANTISATION:
        raise UserError(
            f"{graph.path}: LOG_SOFTMAX: scale and zero point of its output are {y.quantisation}, want 1/16 and 127"
        )
    table = [
        (exponential + 2048 >> 12, min(-difference, 2**30 - 1))
        for difference, exponential in _differences(graph, operator, 1.0)
    ]
    p = parameters("log_softmax", x, y, fused, classes=x.shape[-1], rows=x.size // x.shape[-1])
    return [Step("log_softmax", p, y.index, np.array(table, "<u4").tobytes())]


def _differences(graph: Graph, operator: Operator, beta: float) -> list[tuple[int, int]]:
    """(difference times beta as Q5.26, its exponential as Q0.31) of 0, -1, ... -255 steps of the input."""
    x = graph.tensors[operator.inputs[0]]
    if x.shape[-1] > 2047:
        raise UserError(f"{graph.path}: {operator.name} over {x.shape[-1]} classes: 2047 at most")
    m, exponent = multiplier(min(beta * float(x.scale[0]) * 2**26, 2.0**31 - 1), 2**31)
    lowest = -math.floor(((1 << 5) - 1) * 2.0**26 / 2.0**exponent)  # of lower differences the exponential counts as 0
    scaled = {difference: doubling_high(difference << exponent, m) for difference in range(0, -256, -1)}
    return [(value, exp_on_negative(value) if difference >= lowest else 0) for difference, value in scaled.items()]
