"""Functions of one number: a multiplier, or a table of 256 bytes; and softmax, whose exponentials are a table."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...common.errors import UserError
from ..tflite import FUSED, Graph, Operator, Tensor
from .step import Step, ends, in_float32, multiplier, parameters, rounded

FUSED_CODES = {name: code for code, name in FUSED.items()}


def rescale(graph: Graph, operator: Operator) -> list[Step]:
    """QUANTIZE, and RELU, RELU6, RELU_N1_TO_1: what an activation does when it is fused, by itself."""
    x, y, _ = ends(graph, operator)
    exact = operator.name == "QUANTIZE"  # of the others the quotient is a float32
    real = float(x.scale[0]) / float(y.scale[0]) if exact else in_float32(x.scale[0], over=y)
    p = parameters("rescale", x, y, 0 if exact else FUSED_CODES[operator.name], count=x.size)
    return [Step("rescale", p, y.index, multipliers=[multiplier(real)], reach=255)]


def function(graph: Graph, operator: Operator) -> list[Step]:
    """LOGISTIC, TANH, LEAKY_RELU, HARD_SWISH: the table of what each byte becomes."""
    x, y, fused = ends(graph, operator)
    made = _FUNCTIONS[operator.name](operator, x, y)
    table = bytes(min(max(made(q - int(x.zero[0])) + int(y.zero[0]), -128), 127) + 128 for q in range(-128, 128))
    return [Step("look_up", parameters("look_up", x, y, fused, count=x.size), y.index, table)]


Function = Callable[[int], int]  # of a byte less its zero point; the output's less its own, not yet clamped


def _logistic(operator: Operator, x: Tensor, y: Tensor) -> Function:
    def made(q: int) -> int:
        value = np.float32(x.scale[0]) * np.float32(q)
        real = np.float32(1) / (np.float32(1) + np.float32(math.exp(min(-float(value), 88.7))))  # of more, float32 knows no exp
        return rounded(float(np.float32(real / np.float32(y.scale[0]))))

    return made


def _tanh(operator: Operator, x: Tensor, y: Tensor) -> Function:
    def made(q: int) -> int:
        real = np.tanh(np.float32(x.scale[0]) * np.float32(q))
        return rounded(float(np.float32(real / np.float32(y.scale[0]))))

    return made


def _leaky_relu(operator: Operator, x: Tensor, y: Tensor) -> Function:
    above = multiplier(in_float32(x.scale[0], over=y))
    alpha = operator.options["alpha"]
    below = multiplier(in_float32(x.scale[0], alpha, over=y)) if alpha else (0, 0)
    return lambda q: times(q, *(above if q >= 0 else below))


def _hard_swish(operator: Operator, x: Tensor, y: Tensor) -> Function:
    """In the 16-bit arithmetic of TFLite's HardSwish."""
    hires = np.float32(1 / 128) * np.float32(x.scale[0])
    m_out, e_out = _of_16_bits(in_float32(float(hires), over=y))
    m_part, e_part = _of_16_bits(float(hires / np.float32(3.0 / 32768.0)))

    def made(q: int) -> int:
        high = q * 128
        out = high * m_out + 16384 >> 15
        part = high
        if e_part > 0:
            part = _fits_16(part << e_part - 1)
        part = part * m_part + 16384 >> 15
        if e_part > 0:
            part = _fits_16(part << 1)
        elif e_part < 0:
            part = rounding_shift(part, -e_part)
        part = part + 32768 >> 1
        product = part * out * 2
        whole = _fits_16(abs(product) // 65536 * (1 if product >= 0 else -1))
        return rounding_shift(whole, -e_out) if e_out <= 0 else whole << e_out

    return made


def _of_16_bits(real: float) -> tuple[int, int]:
    m, exponent = multiplier(real)
    return (32767 if m >= 2**31 - 1 - 32768 else m + 32768 >> 16), exponent


def _fits_16(value: int) -> int:
    return min(max(value, -32768), 32767)


_FUNCTIONS: dict[str, Callable[[Operator, Tensor, Tensor], Function]] = {
    "LOGISTIC": _logistic,
    "TANH": _tanh,
    "LEAKY_RELU": _leaky_relu,
    "HARD_SWISH": _hard_swish,
}


def softmax(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = ends(graph, operator)
    if x.shape[-1] > 2047:
        raise UserError(f"{graph.path}: SOFTMAX over {x.shape[-1]} classes: 2047 at most")
    beta = float(operator.options["beta"])
    real = min(beta * float(x.scale[0]) * 2**26, 2.0**31 - 1)
    m, exponent = multiplier(real, 2**31)
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


def times(x: int, m: int, exponent: int) -> int:
    """TFLite's MultiplyByQuantizedMultiplier."""
    return rounding_shift(doubling_high(x << max(exponent, 0), m), max(-exponent, 0))


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
