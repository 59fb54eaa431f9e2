"""Operators with weights: dense layers and convolutions."""

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator
from .pooling import window
from .step import Step, bytes_of, ends, parameters, zero_byte
from .tflite_fixed_point import multiplier, scale_product


def biases(graph: Graph, operator: Operator, channels: int) -> np.ndarray:
    n = operator.inputs[2] if len(operator.inputs) > 2 else -1
    data = graph.tensors[n].data if n >= 0 else None
    return np.zeros(channels, np.int64) if data is None else data.ravel().astype(np.int64)


def fully_connected(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = ends(graph, operator)
    w = graph.tensors[operator.inputs[1]]
    outputs, inputs = w.shape
    if len(w.scale) == 1:  # one scale: the product is taken in float32
        real = [scale_product(x, w) / float(y.scale[0])] * outputs
    else:
        real = [float(x.scale[0]) * float(s) / float(y.scale[0]) for s in w.scale]
    rows, remainder = divmod(x.size, inputs)
    if remainder or y.size != rows * outputs:
        raise ValueError(f"FULLY_CONNECTED of {x.shape} by {w.shape} gives {y.shape}")
    if rows == 1:
        p = parameters("fully_connected", x, y, fused, inputs=inputs, outputs=outputs, w_zero=zero_byte(w))
        kernel = "fully_connected"
    else:  # of a sequence: the same as a convolution of one pixel over a picture of one row
        own = dict.fromkeys(("height", "out_height", "kernel_height", "kernel_width"), 1)
        own |= dict.fromkeys(("stride_y", "stride_x", "dilation_y", "dilation_x"), 1)
        own |= {"pad_y": 0, "pad_x": 0, "w_zero": zero_byte(w)}
        p = parameters("conv_2d", x, y, fused, **own, width=rows, depth=inputs, out_width=rows, channels=outputs)
        kernel = "conv_2d"
    return [Step(kernel, p, y.index, bytes_of(w), biases(graph, operator, outputs), [multiplier(r) for r in real])]


def convolution(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = ends(graph, operator)
    w = graph.tensors[operator.inputs[1]]
    depthwise = operator.name == "DEPTHWISE_CONV_2D"
    channels = y.shape[3]
    if not depthwise and w.shape[3] != x.shape[3]:
        raise UserError(
            f"{graph.path}: a grouped convolution (filters of {w.shape[3]} of {x.shape[3]} channels) is not supported"
        )
    scales = np.broadcast_to(w.scale, channels)
    own = window(operator, x, y, w.shape[1], w.shape[2])
    own |= {"dilation_y": operator.options["dilation_h"], "dilation_x": operator.options["dilation_w"]}
    own["w_zero"] = zero_byte(w)
    if depthwise:
        own["depth_multiplier"] = channels // x.shape[3]
    if operator.options.get("unsigned"):  # of a dense layer and of uint8 the product of two scales is a float32
        real = [scale_product(x, w) / float(y.scale[0])] * channels
    else:
        real = [float(x.scale[0]) * float(s) / float(y.scale[0]) for s in scales]
    kernel = "depthwise_conv_2d" if depthwise else "conv_2d"
    p = parameters(kernel, x, y, fused, **own)
    return [Step(kernel, p, y.index, bytes_of(w), biases(graph, operator, channels), [multiplier(r) for r in real])]
