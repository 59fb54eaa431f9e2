"""Functions of one number: a multiplier, or a table of 256 bytes; and softmax, whose exponentials are a table."""

from __future__ import annotations

import math

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator
from .step import Step, ends, multiplier, parameters


def rescale(graph: Graph, operator: Operator) -> list[Step]:
    x, y, _ = ends(graph, operator)
    real = float(x.scale[0]) / float(y.scale[0])
    p = parameters("rescale", x, y, {"RELU": 1, "RELU6": 3}.get(operator.name, 0), count=x.size)
    return [Step("rescale", p, y.index, multipliers=[multiplier(real)])]


def logistic(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = ends(graph, operator)
    table = []
    for q in range(-128, 128):
        value = np.float32(x.scale[0]) * np.float32(q - int(x.zero[0]))
        real = np.float32(1) / (np.float32(1) + np.float32(math.exp(min(-float(value), 88.7))))  # of more, float32 knows no exp
        z = float(np.float32(real / np.float32(y.scale[0])))
        table.append(min(max(int(math.copysign(math.floor(abs(z) + 0.5), z)) + int(y.zero[0]), -128), 127) + 128)
    return [Step("look_up", parameters("look_up", x, y, fused, count=x.size), y.index, bytes(table))]


def softmax(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = ends(graph, operator)
    if x.shape[-1] > 2047:
        raise UserError(f"{graph.path}: SOFTMAX over {x.shape[-1]} classes: 2047 at most")
    beta = float(operator.options["beta"])
    real = min(beta * float(x.scale[0]) * 2**26, 2.0**31 - 1)
    m, exponent = multiplier(real)
    limit = -math.floor(((1 << 5) - 1) * 2.0**26 / 2.0**exponent)
    table = []
    for difference in range(0, -256, -1):
        if difference < limit:
            table.append(0)
            continue
        table.append(exp_on_negative(doubling_high(difference << exponent, m)))
    p = parameters("softmax", x, y, fused, classes=x.shape[-1], rows=x.size // x.shape[-1])
    return [Step("softmax", p, y.index, np.array(table, "<u4").tobytes())]


def doubling_high(x: int, y: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul of two int32: x y / 2^31 to nearest, halves up."""
    return x * y + 2**30 >> 31


def rounding_shift(x: int, n: int) -> int:
    """gemmlowp's RoundingDivideByPOT: halves away from zero."""
    return (abs(x) + (1 << n >> 1) >> n) * (1 if x >= 0 else -1)


def exp_on_negative(a: int) -> int:
    """gemmlowp's exp_on_negative_values: e^a for a <= 0 in Q5.26, as Q0.31."""
    high, shift = doubling_high, rounding_shift
    quarter = 1 << 24
    mask = quarter - 1
    part = (a & mask) - quarter
    x = (part << 5) + (1 << 28)  # in Q0.31, around -1/8
    x2 = high(x, x)
    x3 = high(x2, x)
    x4 = shift(high(x2, x2), 2)
    inner = shift(high(x4 + x3, 715827883) + x2, 1)
    result = 1895147668 + high(1895147668, x + inner)
    remainder = part - a
    for exponent, factor in zip((-2, -1, 0, 1, 2, 3, 4), (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        if remainder & 1 << 26 + exponent:
            result = high(result, factor)
    return 2147483647 if a == 0 else result
