"""Nodes with weights, and pooling: Conv, Gemm, MatMul, MaxPool, AveragePool."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .network import Node
from .translation import CHANNELS_LAST, FLATTENED, Translation, Value, channels_last_shape

SAME, VALID = 0, 1


@dataclass(frozen=True)
class Window:
    """Kernel, strides and dilations as (height, width); pads as ((top, bottom), (left, right))."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[tuple[int, int], tuple[int, int]]


def convolution(node: Node, into: Translation) -> None:
    """Conv: one group, several, or one group per input channel (depthwise)."""
    weights = into.needed_constant(node, 1, "weights")
    bias = into.constant(node, 2)
    value = into.in_channels_last(into.value(node))
    height, width, channels = value.picture
    if weights.ndim not in (3, 4):
        raise node.refuse(f"over {weights.ndim - 2} dimensions", "export convolutions over one or two dimensions")
    if weights.ndim == 3:
        weights = weights[:, :, None, :]
    outputs, groups = weights.shape[0], int(node.attributes.get("group", 1))
    window = _window(node, value, weights.shape[2:])
    options = {"stride_h": window.strides[0], "stride_w": window.strides[1], "fused": 0}
    options |= {"dilation_h": window.dilations[0], "dilation_w": window.dilations[1]}
    if 1 < groups == channels and weights.shape[1] == 1:
        name, kernel = "DEPTHWISE_CONV_2D", weights.transpose(1, 2, 3, 0)
        options["multiplier"] = outputs // channels
    else:
        name, kernel = "CONV_2D", weights.transpose(0, 2, 3, 1)
    tensor, options["padding"] = _padded(value, window, into)
    shape = (1, *_output_size(window, height, width), outputs)
    numbers = np.zeros(outputs, np.float32) if bias is None else bias
    if name == "CONV_2D" and groups > 1:
        tensor = _grouped(tensor, kernel, numbers, groups, shape, options, into)
    else:
        tensor = into.emit(name, [tensor, into.array(kernel), into.array(numbers)], shape, **options)
    into.set(node, Value(tensor, into.network.shapes[node.outputs[0]], CHANNELS_LAST, shape[1:]))


def _grouped(
    tensor: int,
    kernel: np.ndarray,
    bias: np.ndarray,
    groups: int,
    shape: tuple[int, ...],
    options: dict[str, Any],
    into: Translation,
) -> int:
    """A convolution of each group of channels, and their outputs one behind the other."""
    read, made, outputs = into.shape_of(tensor), [], shape[3] // groups
    for n in range(groups):
        size = (*read[:3], read[3] // groups)
        part = into.slice(tensor, (0, 0, 0, n * size[3]), size)
        own = slice(n * outputs, (n + 1) * outputs)
        inputs = [part, into.array(kernel[own]), into.array(bias[own])]
        made.append(into.emit("CONV_2D", inputs, (*shape[:3], outputs), **options))
    return into.joined(made, shape, 3)


def transposed_convolution(node: Node, into: Translation) -> None:
    """ConvTranspose: a TRANSPOSE_CONV of all that the kernel reaches, and the part of it without the node's pads."""
    weights = into.needed_constant(node, 1, "weights")  # (inputs, outputs of a group, height, width)
    bias = into.constant(node, 2)
    value = into.in_channels_last(into.value(node))
    if weights.ndim == 3:
        weights = weights[:, :, None, :]
    window = _window(node, value, weights.shape[2:])
    if (
        max(window.dilations) > 1
        or int(node.attributes.get("group", 1)) > 1
        or node.attributes.get("auto_pad", "NOTSET") != "NOTSET"
    ):
        raise node.refuse("with dilation, groups or auto_pad", "export it with dilation 1, one group and explicit pads")
    shape = into.network.shapes[node.outputs[0]]
    size = channels_last_shape(shape)
    cut = [pads[0] for pads in window.pads]
    reached = zip(value.picture, window.strides, window.kernel, cut, size)
    whole = (1, *(max((n - 1) * stride + kernel, before + out) for n, stride, kernel, before, out in reached), size[2])
    kernel = weights.transpose(1, 2, 3, 0)
    numbers = np.zeros(len(kernel), np.float32) if bias is None else bias
    inputs = [into.array(np.array(whole, np.int32)), into.array(kernel), value.tensor, into.array(numbers)]
    options = {"stride_h": window.strides[0], "stride_w": window.strides[1], "padding": VALID, "fused": 0}
    tensor = into.slice(into.emit("TRANSPOSE_CONV", inputs, whole, **options), (0, *cut, 0), (1, *size))
    into.set(node, Value(tensor, shape, CHANNELS_LAST, size))


def pool(node: Node, into: Translation) -> None:
    """MaxPool and AveragePool."""
    value = into.in_channels_last(into.value(node))
    height, width, channels = value.picture
    window = _window(node, value, tuple(node.attributes["kernel_shape"]))
    if max(window.dilations) > 1:
        raise node.refuse("with dilation", "export it with dilation 1")
    largest = node.kind == "MaxPool"
    counted = not largest and bool(node.attributes.get("count_include_pad", 0)) and any(map(sum, window.pads))
    if node.attributes.get("ceil_mode", 0):
        if counted:
            raise node.refuse("with padding and ceil_mode", "use no padding, or ceil_mode=False")
        window = _with_last_window(window, height, width)
    if any(map(sum, window.pads)) and not _is_same(window, height, width):
        if largest and not value.non_negative:
            return _largest_of_any_sign(node, value, window, into)
        if not largest and not counted:
            raise node.refuse(
                "with padding that does not count", "use count_include_pad=True, or no padding and ceil_mode=False"
            )
    _pooled(node, value, window, into, *_padded(value, window, into, counted=counted))


def _pooled(node: Node, value: Value, window: Window, into: Translation, tensor: int, padding: int) -> None:
    """Emit the operator of pool() on a tensor that is padded already, or with TFLite's padding."""
    height, width, channels = value.picture
    shape = (1, *_output_size(window, height, width), channels)
    options = {"stride_h": window.strides[0], "stride_w": window.strides[1], "fused": 0, "padding": padding}
    options |= {"filter_h": window.kernel[0], "filter_w": window.kernel[1]}
    tensor = into.emit("MAX_POOL_2D" if node.kind == "MaxPool" else "AVERAGE_POOL_2D", [tensor], shape, **options)
    result = into.network.shapes[node.outputs[0]]
    into.set(node, Value(tensor, result, CHANNELS_LAST, shape[1:], value.non_negative))


def _largest_of_any_sign(node: Node, value: Value, window: Window, into: Translation) -> None:
    """MaxPool of numbers that may be negative: around them their first and last ones, of which each window there holds one."""
    tensor = value.tensor
    for axis, (before, after) in enumerate(window.pads, 1):
        shape = into.shape_of(tensor)
        edge = (*shape[:axis], 1, *shape[axis + 1 :])
        first, last = (into.slice(tensor, tuple(n * (k == axis) for k in range(4)), edge) for n in (0, shape[axis] - 1))
        whole = (*shape[:axis], before + shape[axis] + after, *shape[axis + 1 :])
        tensor = into.joined([first] * before + [tensor] + [last] * after, whole, axis)
    _pooled(node, value, window, into, tensor, VALID)


def _with_last_window(window: Window, height: int, width: int) -> Window:
    """The window of ceil_mode: the last one may reach beyond the padded picture, and begins within its numbers."""
    pads = []
    for size, (before, after), kernel, stride in zip((height, width), window.pads, window.kernel, window.strides):
        last = -(-(size + before + after - kernel) // stride) * stride
        last -= stride * (last >= size + before)
        pads.append((before, max(after, last + kernel - size - before)))
    return replace(window, pads=(pads[0], pads[1]))


def gemm(node: Node, into: Translation) -> None:
    """Gemm with constant weights: alpha A B + beta C."""
    if node.attributes.get("transA", 0):
        raise node.refuse("with a transposed input", "export it without transA")
    weights = into.needed_constant(node, 1, "weights") * np.float32(node.attributes.get("alpha", 1.0))
    if not node.attributes.get("transB", 0):
        weights = weights.T
    bias = into.constant(node, 2)
    if bias is None:
        bias = np.zeros(len(weights), np.float32)
    scaled = bias * np.float32(node.attributes.get("beta", 1.0))
    _dense(node, into, weights, np.broadcast_to(scaled.reshape(-1), (len(weights),)))


def matmul(node: Node, into: Translation) -> None:
    """MatMul with constant weights behind the activation, or of two activations of three dimensions."""
    weights = into.constant(node, 1)
    if weights is not None and weights.ndim == 2:
        _dense(node, into, weights.T, np.zeros(weights.shape[1], np.float32))
        return
    if weights is not None or into.constant(node, 0) is not None:
        raise node.refuse("with constants on the left or of several matrices", "put the weights on the right, as Linear does")
    a, b = (into.in_onnx_order(into.value(node, place)) for place in (0, 1))
    shape = into.network.shapes[node.outputs[0]]
    tensor = into.emit("BATCH_MATMUL", [a.tensor, b.tensor], shape, adjoint_x=False, adjoint_y=False)
    into.set(node, Value(tensor, shape))


def _dense(node: Node, into: Translation, weights: np.ndarray, bias: np.ndarray) -> None:
    """FULLY_CONNECTED; weights: (outputs, inputs). Flattened inputs keep their order, and the columns of the weights move."""
    value = into.value(node)
    if value.order == FLATTENED:
        height, width, channels = value.picture
        columns = weights.reshape(len(weights), channels, height, width).transpose(0, 2, 3, 1)
        weights = columns.reshape(len(weights), -1)
    else:
        value = into.in_onnx_order(value)
    shape = into.network.shapes[node.outputs[0]]
    inputs = [value.tensor, into.array(weights), into.array(bias)]
    tensor = into.emit("FULLY_CONNECTED", inputs, shape, fused=0, keep_num_dims=len(shape) > 2)
    into.set(node, Value(tensor, shape))


def _window(node: Node, value: Value, kernel: tuple[int, ...]) -> Window:
    """The window of a node; one over one dimension has height 1."""
    rank = len(kernel) if len(value.shape) == 4 else 1
    height, width, _ = value.picture

    def both(name: str) -> tuple[int, int]:
        numbers = tuple(node.attributes.get(name) or [1] * rank)
        return (numbers[0], numbers[1]) if len(numbers) == 2 else (1, numbers[0])

    kernel_size = (kernel[0], kernel[1]) if len(kernel) == 2 else (1, kernel[0])
    strides, dilations = both("strides"), both("dilations")
    pads = list(node.attributes.get("pads") or [0] * 2 * rank)
    if rank == 1:
        pads = [0, pads[0], 0, pads[1]]
    paddings = ((pads[0], pads[2]), (pads[1], pads[3]))
    kind = node.attributes.get("auto_pad", "NOTSET")
    if kind == "VALID":
        paddings = ((0, 0), (0, 0))
    elif kind == "SAME_UPPER":
        window = Window(kernel_size, strides, dilations, ((0, 0), (0, 0)))
        paddings = _same_pads(window, height, width)
    elif kind == "SAME_LOWER":
        raise node.refuse("with auto_pad SAME_LOWER", "export it with explicit pads")
    return Window(kernel_size, strides, dilations, paddings)


def _same_pads(window: Window, height: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """TFLite's SAME padding: the output has size / stride numbers, rounded up; the larger half lies behind."""
    pads = []
    for size, kernel, stride, dilation in zip((height, width), window.kernel, window.strides, window.dilations):
        total = max(0, (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size)
        pads.append((total // 2, total - total // 2))
    return pads[0], pads[1]


def _is_same(window: Window, height: int, width: int) -> bool:
    return window.pads == _same_pads(window, height, width)


def _padded(value: Value, window: Window, into: Translation, counted: bool = False) -> tuple[int, int]:
    """(tensor, TFLite's padding): SAME or VALID where that is what the node means, otherwise a PAD before VALID.

    counted: the zeros count in an average, which SAME does not do.
    """
    height, width, channels = value.picture
    if not any(sum(pair) for pair in window.pads):
        return value.tensor, VALID
    if _is_same(window, height, width) and not counted:
        return value.tensor, SAME
    (top, bottom), (left, right) = window.pads
    pads = into.array(np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
    shape = (1, height + top + bottom, width + left + right, channels)
    return into.emit("PAD", [value.tensor, pads], shape), VALID


def _output_size(window: Window, height: int, width: int) -> tuple[int, int]:
    sizes = [
        (size + sum(pads) - (kernel - 1) * dilation - 1) // stride + 1
        for size, pads, kernel, stride, dilation in zip(
            (height, width), window.pads, window.kernel, window.strides, window.dilations
        )
    ]
    return sizes[0], sizes[1]
