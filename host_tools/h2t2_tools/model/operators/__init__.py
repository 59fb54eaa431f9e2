"""How each operator of a .tflite becomes steps of a bundle."""

from __future__ import annotations

from collections.abc import Callable

from ..tflite import Graph, Operator
from .pairs import add, multiply
from .step import Step
from .tables import logistic, rescale, softmax
from .views import concatenate
from .weighted import convolution, fully_connected
from .windows import mean, pad, pool

SAME_BYTES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")  # another shape, nothing to do
MAKERS: dict[str, Callable[[Graph, Operator], list[Step]]] = {
    "FULLY_CONNECTED": fully_connected,
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": convolution,
    "AVERAGE_POOL_2D": pool,
    "MAX_POOL_2D": pool,
    "MEAN": mean,
    "ADD": add,
    "MUL": multiply,
    "QUANTIZE": rescale,
    "RELU": rescale,
    "RELU6": rescale,
    "PAD": pad,
    "CONCATENATION": concatenate,
    "LOGISTIC": logistic,
    "SOFTMAX": softmax,
    **dict.fromkeys(SAME_BYTES, lambda graph, operator: []),
}
