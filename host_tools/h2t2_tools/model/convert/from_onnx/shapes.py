"""Nodes that move numbers or reduce axes: Reshape, Flatten, Transpose, Concat, Pad, Resize, ReduceMean, Softmax."""

from dataclasses import replace

import numpy as np

from .network import Node
from .translation import CHANNELS_LAST, FLATTENED, ONNX_ORDER, Translation, Value, channels_last_shape


def same(node: Node, into: Translation) -> None:
    """Identity, Dropout and Cast of a trained network: the same numbers."""
    into.set(node, into.value(node))


def reshape(node: Node, into: Translation) -> None:
    """Reshape, Flatten, Squeeze and Unsqueeze. Flattening (1, H, W, C) keeps .tflite's order."""
    value = into.value(node)
    shape = into.network.shapes[node.outputs[0]]
    if value.order == CHANNELS_LAST and len(shape) == 2 and shape[0] == 1:
        tensor = into.reshape(value.tensor, shape)
        height, width, channels = value.picture
        order = ONNX_ORDER if channels == 1 or height * width == 1 else FLATTENED
        into.set(node, replace(value, tensor=tensor, shape=shape, order=order))
        return
    value = into.in_onnx_order(value)
    into.set(node, replace(value, tensor=into.reshape(value.tensor, shape), shape=shape))


def transpose(node: Node, into: Translation) -> None:
    """Transpose. From channels first to channels last of a picture in .tflite's order, and back, nothing moves."""
    value = into.value(node)
    shape = into.network.shapes[node.outputs[0]]
    axes = tuple(node.attributes.get("perm") or reversed(range(len(value.shape))))
    if value.order == CHANNELS_LAST and axes == (0, 2, 3, 1):
        into.set(node, Value(value.tensor, shape, non_negative=value.non_negative))
        return
    if value.order == ONNX_ORDER and axes == (0, 3, 1, 2):
        into.set(node, replace(value, shape=shape, order=CHANNELS_LAST, picture=channels_last_shape(shape)))
        return
    value = into.in_onnx_order(value)
    into.set(node, replace(value, tensor=into.transpose(value.tensor, axes, shape), shape=shape))


def concatenate(node: Node, into: Translation) -> None:
    """Concat along any axis but the batch."""
    shape = into.network.shapes[node.outputs[0]]
    values = [into.value(node, place) for place in range(len(node.inputs))]
    axis = int(node.attributes["axis"]) % len(shape)
    last = len(shape) in (3, 4) and any(value.order == CHANNELS_LAST for value in values)
    values = [into.in_channels_last(value) if last else into.in_onnx_order(value) for value in values]
    picture = channels_last_shape(shape) if last else (0, 0, 0)
    non_negative = all(value.non_negative for value in values)
    result = Value(-1, shape, CHANNELS_LAST if last else ONNX_ORDER, picture, non_negative)
    place = _stored_axis(axis, len(shape)) if last else axis
    tensor = into.emit("CONCATENATION", [value.tensor for value in values], result.stored_shape, axis=place, fused=0)
    into.set(node, replace(result, tensor=tensor))


def pad(node: Node, into: Translation) -> None:
    """Pad with zeros."""
    if node.attributes.get("mode", "constant") != "constant":
        raise node.refuse(f"in mode {node.attributes['mode']}", "pad with zeros")
    if len(node.inputs) > 1:
        pads = into.needed_constant(node, 1, "sizes").astype(int).tolist()
        filling = into.constant(node, 2)
        number = 0.0 if filling is None else float(filling.ravel()[0])
    else:  # opset 10 and older
        pads, number = list(node.attributes["pads"]), float(node.attributes.get("value", 0.0))
    if number:
        raise node.refuse(f"with {number:g}", "pad with zeros")
    if len(node.inputs) > 3 and node.inputs[3]:
        raise node.refuse("of chosen axes", "export it with one pair of sizes per axis")
    value = into.value(node)
    shape = into.network.shapes[node.outputs[0]]
    rank = len(shape)
    sizes = [(pads[n], pads[n + rank]) for n in range(rank)]
    if value.order == CHANNELS_LAST:
        height = (0, 0) if rank == 3 else sizes[2]
        sizes = [sizes[0], height, sizes[-1], sizes[1]]
        result = replace(value, shape=shape, picture=channels_last_shape(shape))
    else:
        value = into.in_onnx_order(value)
        result = replace(value, shape=shape)
    tensor = into.emit("PAD", [value.tensor, into.array(np.array(sizes, np.int32))], result.stored_shape)
    into.set(node, replace(result, tensor=tensor))


def resize(node: Node, into: Translation) -> None:
    """Resize and Upsample of height and width: nearest or linear."""
    value = into.in_channels_last(into.value(node))
    shape = into.network.shapes[node.outputs[0]]
    mode = node.attributes.get("mode", "nearest")
    centres = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    result = replace(value, shape=shape, picture=channels_last_shape(shape))
    size = into.array(np.array(result.picture[:2], np.int32))
    options = {
        "align_corners": centres == "align_corners",
        "half_pixel_centers": centres in ("half_pixel", "pytorch_half_pixel"),
    }
    if mode == "nearest":
        if any(new % old for new, old in zip(result.picture, value.picture)):
            raise node.refuse("to a size that is not a multiple", "scale by whole numbers, or use mode='bilinear'")
        options = {"align_corners": False, "half_pixel_centers": False}
        name = "RESIZE_NEAREST_NEIGHBOR"
    elif mode == "linear":
        name = "RESIZE_BILINEAR"
    else:
        raise node.refuse(f"in mode {mode}", "use nearest or bilinear")
    tensor = into.emit(name, [value.tensor, size], result.stored_shape, **options)
    into.set(node, replace(result, tensor=tensor))


def reduce_mean(node: Node, into: Translation) -> None:
    """ReduceMean and ReduceSum over constant axes."""
    value = into.value(node)
    shape = into.network.shapes[node.outputs[0]]
    rank = len(value.shape)
    constant = into.constant(node, 1)
    axes = node.attributes.get("axes") if constant is None else constant.tolist()
    chosen = sorted(int(axis) % rank for axis in axes or range(rank))
    keep = bool(node.attributes.get("keepdims", 1))
    name = "MEAN" if node.kind == "ReduceMean" else "SUM"
    spatial = rank == 4 and chosen == [2, 3] or rank == 3 and chosen == [2]
    if value.order == CHANNELS_LAST and spatial:
        stored = (1, 1, 1, value.picture[2]) if keep else (1, value.picture[2])
        numbers = into.array(np.array([1, 2], np.int32))
        tensor = into.emit(name, [value.tensor, numbers], stored, keep_dims=keep)
        order = CHANNELS_LAST if keep else ONNX_ORDER
        into.set(node, replace(value, tensor=tensor, shape=shape, order=order, picture=(1, 1, value.picture[2])))
        return
    value = into.in_onnx_order(value)
    tensor = into.emit(name, [value.tensor, into.array(np.array(chosen, np.int32))], shape, keep_dims=keep)
    into.set(node, replace(value, tensor=tensor, shape=shape))


def softmax(node: Node, into: Translation) -> None:
    """Softmax along the last axis, or along the channels of a picture in .tflite's order."""
    value = into.value(node)
    axis = int(node.attributes.get("axis", -1)) % len(value.shape)
    if not (value.order == CHANNELS_LAST and axis == 1):
        value = into.in_onnx_order(value)
        if axis != len(value.shape) - 1:
            raise node.refuse(f"along axis {axis}", "apply it to the last axis")
    tensor = into.emit("SOFTMAX", [value.tensor], value.stored_shape, beta=1.0)
    into.set(node, replace(value, tensor=tensor, non_negative=True))


def _stored_axis(axis: int, rank: int) -> int:
    """The axis of (1, H, W, C) that is this axis of an ONNX shape."""
    return {4: (0, 3, 1, 2), 3: (0, 3, 2)}[rank][axis]
