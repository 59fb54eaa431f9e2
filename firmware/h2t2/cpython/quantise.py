# Float samples as a model's int8 input, on a host: NumPy. Boards get int8 from their sensors.
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..ldl.ldl import Ldl


def quantised(x: ArrayLike, scale: float, zero_point: int) -> NDArray[np.int8]:
    """round(x / scale) + zero point, clipped to int8; any shape."""
    q = np.round(np.asarray(x, dtype=np.float32) / np.float32(scale)) + zero_point
    return np.asarray(np.clip(q, -128, 127), np.int8)


def local_input(ldl: Ldl, x: ArrayLike) -> NDArray[np.int8]:
    """A float sample as the int8 input of a local model."""
    scale, zero_point = ldl.input_quantisation()
    return quantised(x, scale, zero_point)
