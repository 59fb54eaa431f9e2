"""QUANTIZE and the activations that are a multiplier and two bounds; and SOFTMAX, whose exponentials are a table."""

from __future__ import annotations

import math

import numpy as np

from ...common.errors import UserError
from ..tflite import FUSED, Graph, Operator
from .fixed_point import doubling_high, exp_on_negative, in_float32, multiplier
from .step import Step, ends, parameters

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
    classes = x.shape[-1]
    if classes > 2047:
        raise UserError(f"{graph.path}: SOFTMAX over {classes} classes: 2047 at most")
    real = min(float(operator.options["beta"]) * float(x.scale[0]) * 2**26, 2.0**31 - 1)
    m, exponent = multiplier(real, 2**31)
    lowest = -math.floor(((1 << 5) - 1) * 2.0**26 / 2.0**exponent)  # of lower differences the exponential counts as 0
    exponentials = [
        exp_on_negative(doubling_high(difference << exponent, m)) if difference >= lowest else 0
        for difference in range(0, -256, -1)
    ]
    p = parameters("softmax", x, y, fused, classes=classes, rows=x.size // classes)
    return [Step("softmax", p, y.index, np.array(exponentials, "<u4").tobytes())]
