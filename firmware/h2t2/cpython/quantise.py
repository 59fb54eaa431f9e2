# Float samples as a model's int8 input, on a host: NumPy. Boards get int8 from their sensors.
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..ldl.ldl import Ldl


def quantised(x: ArrayLike, scale: float, zero_point: int) -> NDArray[np.int8]:
    """round(x / scale) + zero point, clipped to int8; any shape."""
    q = np.round(np.asarray(x, dtype=np.float32) / np.float32(scale)) + zero_point
    return np.asarray(np.clip(q, -128, 127), np.int8)


LOG_QUANTISATION = 1 / 16, 127  # scale and zero point that TFLite gives every LOG_SOFTMAX, and nothing else has


def scores_of(q: ArrayLike, scale: float, zero_point: int) -> NDArray[np.float64]:
    """The scores in [0, 1] of int8 outputs: the real numbers, or the exponentials of what LOG_SOFTMAX gives."""
    real = scale * (np.asarray(q, np.int32) - zero_point)
    return np.asarray(np.clip(np.exp(real) if (scale, zero_point) == LOG_QUANTISATION else real, 0.0, 1.0))


def score_table(scale: float, zero_point: int) -> bytes:
    """floor(256 f), at most 255, of the score f of every int8 output: 256 bytes."""
    scores = scores_of(np.arange(-128, 128), scale, zero_point)
    return bytes(np.minimum(np.floor(scores * 256), 255).astype(np.uint8))


def local_input(ldl: Ldl, x: ArrayLike) -> NDArray[np.int8]:
    """A float sample as the int8 input of a local model."""
    scale, zero_point = ldl.input_quantisation()
    return quantised(x, scale, zero_point)
