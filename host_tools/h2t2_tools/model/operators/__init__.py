"""Which operators of a .tflite become steps of a bundle, how, and what to do about some that do not."""

from collections.abc import Callable
from dataclasses import dataclass

from h2t2.cpython import tflite_trial

from ...common import places, toml_file
from ..tflite import TREES, Graph, Operator
from . import views
from .activations import log_softmax, rescale, softmax
from .functions import FLOAT_FUNCTIONS, INTEGER_FUNCTIONS, look_up
from .pooling import largest, mean, pad, pool
from .recurrent import lstm
from .step import Step
from .trees import trees
from .two_inputs import arithmetic, batch_matmul, extreme, prelu
from .weighted import convolution, fully_connected


@dataclass(frozen=True)
class Supported:
    """How a board runs an operator.

    Attributes:
        steps: Makes the steps of one operator. UserError where a board cannot run it.
        kernel: The function that runs them on the board, "" where there are none.
        inputs: What the operator may have as inputs, in words.
        picture: It reads one picture, (1, height, width, channels): a batch of more would be read as one.
    """

    steps: Callable[[Graph, Operator], list[Step]]
    kernel: str
    inputs: str
    picture: bool = False


_PAIR = "two activations, or one and a constant; one may be repeated (broadcast) along axes that lie together"
_NUMBERS = "any shape"
_VARIABLE = "a variable that CALL_ONCE begins with constants; VAR_HANDLE and CALL_ONCE are no steps"
_SAME = "activations with the output's quantisation"

SAME_BYTES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")  # another shape, nothing to do
SUPPORTED = {
    "FULLY_CONNECTED": Supported(fully_connected, "fully_connected", "a vector, or every step of a sequence; constant weights"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Supported(lstm, "lstm", "as Keras' LSTM is converted: each sequence begins anew"),
    "CONV_2D": Supported(convolution, "conv_2d", "strides, dilation, constant weights; no groups", picture=True),
    "DEPTHWISE_CONV_2D": Supported(convolution, "depthwise_conv_2d", "strides, dilation, multiplier", picture=True),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), Supported(pool, "pool_2d", "with or without padding", picture=True)),
    **dict.fromkeys(("MEAN", "SUM"), Supported(mean, "mean", "over axes that lie together: height and width, or time")),
    "REDUCE_MAX": Supported(largest, "pool_2d", "over axes that lie together: height and width, or time"),
    **dict.fromkeys(("ADD", "SUB", "MUL"), Supported(arithmetic, "arithmetic", _PAIR)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), Supported(extreme, "extreme", f"{_PAIR}; all with the output's quantisation")),
    "PRELU": Supported(prelu, "prelu", "any shape, by constants repeated along the first axes"),
    "BATCH_MATMUL": Supported(batch_matmul, "batch_matmul", "two activations of as many batches; the second may be transposed"),
    "QUANTIZE": Supported(rescale, "rescale", "int8 or uint8 to int8 or uint8; at the input from float, which stays outside"),
    **dict.fromkeys(("RELU", "RELU6", "RELU_N1_TO_1"), Supported(rescale, "rescale", _NUMBERS)),
    **dict.fromkeys((*FLOAT_FUNCTIONS, *INTEGER_FUNCTIONS), Supported(look_up, "look_up", _NUMBERS)),
    "SOFTMAX": Supported(softmax, "softmax", "rows of 2,047 numbers at most"),
    "LOG_SOFTMAX": Supported(log_softmax, "log_softmax", "rows of 2,047 numbers at most; a score is its exponential"),
    "PAD": Supported(pad, "pad", "any axis; or two that lie together, of one picture or sequence"),
    **dict.fromkeys(("CONCATENATION", "PACK"), Supported(views.concatenate, "concatenate", _SAME)),
    "TRANSPOSE": Supported(views.transpose, "view", _SAME),
    "GATHER": Supported(views.gather, "view", f"{_SAME}, constant places that are equally far apart"),
    "REVERSE_V2": Supported(views.reverse, "view", _SAME),
    "SLICE": Supported(views.slice_view, "view", _SAME),
    "STRIDED_SLICE": Supported(views.strided_slice, "view", f"{_SAME}; without ellipsis and new axes"),
    **dict.fromkeys(("SPLIT", "SPLIT_V", "UNPACK"), Supported(views.split, "view", _SAME)),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), Supported(views.blocks, "view", _SAME, picture=True)),
    "TILE": Supported(views.tile, "view", f"{_SAME}; five axes at most"),
    "RESIZE_NEAREST_NEIGHBOR": Supported(views.nearest, "view", "by whole numbers", picture=True),
    "RESIZE_BILINEAR": Supported(views.bilinear, "resize_bilinear", "to any size; of uint8 by powers of two", picture=True),
    **dict.fromkeys(("READ_VARIABLE", "ASSIGN_VARIABLE"), Supported(views.copied, "concatenate", _VARIABLE)),
    TREES: Supported(trees, "trees", "what `h2t2 convert` makes of decision trees ([Trees](trees.md)); TFLite does not run it"),
    "TRANSPOSE_CONV": Supported(convolution, "conv_2d", "constant weights; becomes PAD and CONV_2D", picture=True),
    **dict.fromkeys(SAME_BYTES, Supported(lambda graph, operator: [], "", _NUMBERS)),
}
INSTEAD = {**toml_file.by_name(places.PACKAGE / "model/operators/instead.toml"), **tflite_trial.INSTEAD}  # by their names
