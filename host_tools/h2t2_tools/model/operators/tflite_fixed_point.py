"""TFLite's fixed-point arithmetic, bit for bit: quantised multipliers, and gemmlowp's products, shifts and exponentials."""

import math

import numpy as np

from ..tflite import Tensor


def multiplier(real: float, limit: int = 2**30) -> tuple[int, int]:
    """Quantise a factor as TFLite's QuantizeMultiplier does.

    Returns: (m, exponent), with real = m 2^(exponent - 31) and m of 31 bits, rounded half up.
    Raises: ValueError for a factor that the kernels cannot apply: not above 0, or not below the limit.
    """
    if not real > 0:
        raise ValueError(f"a multiplier of {real:g}: scales above 0 give one above 0")
    if not real < limit:
        raise ValueError(f"a multiplier of {real:g}: the scales are too far apart")
    fraction, exponent = math.frexp(real)
    m = math.floor(fraction * 2**31 + 0.5)
    if m == 2**31:
        m //= 2
        exponent += 1
    return (0, 0) if exponent < -31 else (m, exponent)


def in_float32(*factors: float, over: Tensor) -> float:
    """The product of scales over an output's scale. Each operation rounds to float32."""
    product = np.float32(1)
    for factor in factors:
        product = np.float32(product * np.float32(factor))
    return float(np.float32(product / np.float32(over.scale[0])))


def scale_product(a: Tensor, b: Tensor) -> float:
    """The product of two tensors' only scales, rounded to float32."""
    return float(np.float32(a.scale[0]) * np.float32(b.scale[0]))


def rounded(value: float) -> int:
    """The nearest integer; halves go away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def doubling_high(x: int, y: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul of two int32: x y / 2^31 to nearest, halves up."""
    return x * y + 2**30 >> 31


def rounding_shift(x: int, n: int) -> int:
    """gemmlowp's RoundingDivideByPOT: x / 2^n to nearest, halves away from zero."""
    return (abs(x) + (1 << n >> 1) >> n) * (1 if x >= 0 else -1)


def multiply(x: int, m: int, exponent: int) -> int:
    """TFLite's MultiplyByQuantizedMultiplier."""
    return rounding_shift(doubling_high(x << max(exponent, 0), m), max(-exponent, 0))


def exp_on_negative(a: int) -> int:
    """gemmlowp's exp_on_negative_values: e^a for a <= 0 in Q5.26, as Q0.31."""
    quarter = 1 << 24
    fraction = (a & quarter - 1) - quarter
    x = (fraction << 5) + (1 << 28)  # in Q0.31, around -1/8
    x2 = doubling_high(x, x)
    x3 = doubling_high(x2, x)
    x4 = rounding_shift(doubling_high(x2, x2), 2)
    series = rounding_shift(doubling_high(x4 + x3, 715827883) + x2, 1)
    result = 1895147668 + doubling_high(1895147668, x + series)
    remainder = fraction - a
    for exponent, factor in zip((-2, -1, 0, 1, 2, 3, 4), (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        if remainder & 1 << 26 + exponent:
            result = doubling_high(result, factor)
    return 2147483647 if a == 0 else result
