"""Functions of one number, operator by operator. A board looks their outputs up in a table of 256 bytes.

To add an operator, name its float32 function in FLOAT_FUNCTIONS, then run `make pages`. Kernel, plan, bundle and page follow
from the entry. An operator with options (GELU's `approximate`) declares them in model/tflite_options.toml.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tflite import Graph, Operator, Tensor
from .step import Step, ends, parameters
from .tflite_fixed_point import in_float32, multiplier, multiply, rounded, rounding_shift


def _gelu(x: np.float32, options: dict[str, Any]) -> np.float32:
    """x times the normal distribution's share below x, or its approximation by tanh, in TFLite's order of operations.

    erfc and tanh are rounded correctly. The C library that LiteRT calls does so too, or is wrong in the last bit (glibc 2.36):
    then 2 bytes differ in 25 million, of 100,000 random pairs of scales.
    """
    if not options.get("approximate"):
        return np.float32(0.5) * x * np.float32(math.erfc(x * np.float32(-math.sqrt(0.5))))
    within = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + np.float32(math.tanh(within)))


FAR = 1e6  # beyond every int8
# operator -> (x, options) -> f(x): the real function, computed in float32 as TFLite does (whose exp overflows above 88.7)
FLOAT_FUNCTIONS: dict[str, Callable[[np.float32, dict[str, Any]], np.float32]] = {
    "GELU": _gelu,
    # of what has no logarithm or root, TFLite gives the lowest and the highest number
    "LOG": lambda x, options: np.log(x) if x > 0 else np.float32(-FAR),
    "RSQRT": lambda x, options: np.float32(1) / np.sqrt(x) if x > 0 else np.float32(FAR),
    "LOGISTIC": lambda x, options: np.float32(1) / (np.float32(1) + np.float32(math.exp(-max(float(x), -88.7)))),
    "TANH": lambda x, options: np.tanh(x),
}
# a quantised number less its zero point -> the output less its zero point, not clamped yet
IntegerFunction = Callable[[int], int]


def look_up(graph: Graph, operator: Operator) -> list[Step]:
    """One step: the table of what each input byte becomes."""
    x, y, fused = ends(graph, operator)
    if operator.name in FLOAT_FUNCTIONS:
        quantised = _from_float(operator, x, y)
    else:
        quantised = INTEGER_FUNCTIONS[operator.name](operator, x, y)
    table = bytes(min(max(quantised(q - int(x.zero[0])) + int(y.zero[0]), -128), 127) + 128 for q in range(-128, 128))
    return [Step("look_up", parameters("look_up", x, y, fused, count=x.size), y.index, table)]


def _from_float(operator: Operator, x: Tensor, y: Tensor) -> IntegerFunction:
    function = FLOAT_FUNCTIONS[operator.name]
    x_scale, reciprocal = np.float32(x.scale[0]), np.float32(1) / np.float32(y.scale[0])  # TFLite does not divide by the scale
    return lambda q: rounded(float(function(x_scale * np.float32(q), operator.options) * reciprocal))


def _leaky_relu(operator: Operator, x: Tensor, y: Tensor) -> IntegerFunction:
    positive = multiplier(in_float32(x.scale[0], over=y))
    alpha = operator.options["alpha"]
    negative = multiplier(in_float32(x.scale[0], alpha, over=y)) if alpha else (0, 0)
    return lambda q: multiply(q, *(positive if q >= 0 else negative))


def _absolute(operator: Operator, x: Tensor, y: Tensor) -> IntegerFunction:
    if x.scale[0] == y.scale[0]:
        return abs
    factor = multiplier(in_float32(x.scale[0], over=y))
    return lambda q: multiply(abs(q), *factor)


def _hard_swish(operator: Operator, x: Tensor, y: Tensor) -> IntegerFunction:
    """In the 16-bit arithmetic of TFLite's HardSwish."""
    fine_scale = np.float32(1 / 128) * np.float32(x.scale[0])
    output_m, output_exponent = _multiplier_of_16_bits(in_float32(float(fine_scale), over=y))
    relu_m, relu_exponent = _multiplier_of_16_bits(float(fine_scale / np.float32(3.0 / 32768.0)))

    def quantised(q: int) -> int:
        fine = q * 128
        output = fine * output_m + 16384 >> 15
        relu = _to_int16(fine << relu_exponent - 1) if relu_exponent > 0 else fine
        relu = relu * relu_m + 16384 >> 15
        relu = _to_int16(relu << 1) if relu_exponent > 0 else rounding_shift(relu, -relu_exponent)
        product = (relu + 32768 >> 1) * output * 2
        high = _to_int16(abs(product) // 65536 * (1 if product >= 0 else -1))
        return rounding_shift(high, -output_exponent) if output_exponent <= 0 else high << output_exponent

    return quantised


def _multiplier_of_16_bits(real: float) -> tuple[int, int]:
    m, exponent = multiplier(real)
    return (32767 if m >= 2**31 - 1 - 32768 else m + 32768 >> 16), exponent


def _to_int16(value: int) -> int:
    return min(max(value, -32768), 32767)


# operator -> its function where TFLite computes it in integers
INTEGER_FUNCTIONS: dict[str, Callable[[Operator, Tensor, Tensor], IntegerFunction]] = {
    "ABS": _absolute,
    "LEAKY_RELU": _leaky_relu,
    "HARD_SWISH": _hard_swish,
}
