"""How each operator of a .tflite becomes steps of a bundle."""

from __future__ import annotations

from collections.abc import Callable

from ..tflite import Graph, Operator
from .pairs import arithmetic, batch_matmul, extreme, prelu
from .step import Step
from .tables import function, rescale, softmax
from .views import bilinear, blocks, concatenate, nearest, part, split, strided_slice, tile, transpose
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
    **dict.fromkeys(("ADD", "SUB", "MUL"), arithmetic),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), extreme),
    "PRELU": prelu,
    "BATCH_MATMUL": batch_matmul,
    "QUANTIZE": rescale,
    "RELU": rescale,
    "RELU6": rescale,
    "PAD": pad,
    **dict.fromkeys(("CONCATENATION", "PACK"), concatenate),
    **dict.fromkeys(("LOGISTIC", "TANH", "LEAKY_RELU", "HARD_SWISH", "RELU_N1_TO_1"), function),
    "TRANSPOSE": transpose,
    "SLICE": part,
    "STRIDED_SLICE": strided_slice,
    **dict.fromkeys(("SPLIT", "SPLIT_V", "UNPACK"), split),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), blocks),
    "TILE": tile,
    "RESIZE_NEAREST_NEIGHBOR": nearest,
    "RESIZE_BILINEAR": bilinear,
    "SOFTMAX": softmax,
    **dict.fromkeys(SAME_BYTES, lambda graph, operator: []),
}
