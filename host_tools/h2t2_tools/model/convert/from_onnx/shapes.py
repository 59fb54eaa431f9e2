"""Nodes that move numbers or reduce axes: Reshape, Flatten, Transpose, Concat, Pad, Resize, reductions, Softmax."""

from dataclasses import replace

import numpy as np

from .network import Node
from .translation import CHANNELS_LAST, FLATTENED, ONNX_ORDER, Translation, Value, channels_last_shape, ordered_constant

REDUCTIONS = {
    "ReduceMean": "MEAN", "GlobalAveragePool": "MEAN", "ReduceSum": "SUM", "ReduceMax": "REDUCE_MAX",
    "GlobalMaxPool": "REDUCE_MAX",
}  # fmt: skip


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
    """Concat along any axis but the batch. Constants are zeros around the activations, and a sum."""
    shape = into.network.shapes[node.outputs[0]]
    axis = int(node.attributes["axis"]) % len(shape)
    constants = [into.constant(node, place) for place in range(len(node.inputs))]
    values = [into.value(node, place) for place, constant in enumerate(constants) if constant is None]
    last = len(shape) in (3, 4) and any(value.order == CHANNELS_LAST for value in values)
    values = [into.in_channels_last(value) if last else into.in_onnx_order(value) for value in values]
    picture = channels_last_shape(shape) if last else (0, 0, 0)
    non_negative = len(values) == len(constants) and all(value.non_negative for value in values)
    result = Value(-1, shape, CHANNELS_LAST if last else ONNX_ORDER, picture, non_negative)
    place = _stored_axis(axis, len(shape)) if last else axis
    parts: list[np.ndarray] = []
    pads = [[0, 0] for _ in values]
    activations = iter(values)
    n = -1  # of the last activation
    for constant in constants:
        if constant is None:
            constant, n = np.zeros(next(activations).shape, np.float32), n + 1
        else:
            pads[max(n, 0)][n >= 0] += constant.shape[axis]
        parts.append(constant)
    tensors = [_padded(value.tensor, place, before, after, into) for value, (before, after) in zip(values, pads)]
    tensor = into.joined(tensors, result.stored_shape, place)
    if len(values) < len(constants):
        numbers = into.array(ordered_constant(np.concatenate(parts, axis), result))
        tensor = into.emit("ADD", [tensor, numbers], result.stored_shape, fused=0)
    into.set(node, replace(result, tensor=tensor))


def _padded(tensor: int, axis: int, before: int, after: int, into: Translation) -> int:
    """A tensor with zeros before and behind it along an axis, itself where there are none."""
    if before == after == 0:
        return tensor
    shape = list(into.shape_of(tensor))
    sizes = np.zeros((len(shape), 2), np.int32)
    sizes[axis] = before, after
    shape[axis] += before + after
    return into.emit("PAD", [tensor, into.array(sizes)], tuple(shape))


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


def reduced(node: Node, into: Translation) -> None:
    """Reductions over constant axes, and global pooling over height and width. Those of a maximum lie together."""
    value, shape = into.value(node), into.network.shapes[node.outputs[0]]
    rank = len(value.shape)
    behind_channels = list(range(2, rank))
    constant = into.constant(node, 1)
    given = node.attributes.get("axes") if constant is None else constant.tolist()
    is_global, keep = node.kind.startswith("Global"), bool(node.attributes.get("keepdims", 1))
    axes = sorted(int(axis) % rank for axis in (behind_channels if is_global else given or range(rank)))
    if node.kind == "GlobalAveragePool":
        value = into.in_channels_last(value)
    if value.order == CHANNELS_LAST and axes == behind_channels:
        axes = [1, 2]
        order = CHANNELS_LAST if keep else ONNX_ORDER
        result = replace(value, shape=shape, order=order, picture=(1, 1, value.picture[2]))
    else:
        value = into.in_onnx_order(value)
        result = replace(value, shape=shape)
    inputs, name = [value.tensor, into.array(np.array(axes, np.int32))], REDUCTIONS[node.kind]
    if name == "REDUCE_MAX":
        left = tuple(size for n, size in enumerate(value.stored_shape) if n not in axes)
        tensor = into.emit(name, inputs, left, keep_dims=False)
        into.set(node, Value(into.reshape(tensor, shape), shape, non_negative=value.non_negative))
        return
    into.set(node, replace(result, tensor=into.emit(name, inputs, result.stored_shape, keep_dims=keep)))


def slice_part(node: Node, into: Translation) -> None:
    """Slice with constant bounds."""
    value = into.value(node)
    shape = value.shape
    rank = len(shape)
    constants = [into.constant(node, place) for place in (1, 2, 3, 4)]
    if constants[0] is None or constants[1] is None:
        raise node.refuse("with bounds that the network computes", "export it with constants there")
    begins, ends = ([int(n) for n in numbers] for numbers in constants[:2] if numbers is not None)
    axes = list(range(len(begins))) if constants[2] is None else [int(n) % rank for n in constants[2]]
    steps = [1] * len(begins) if constants[3] is None else [int(n) for n in constants[3]]
    places = [range(size) for size in shape]
    for begin, end, axis, step in zip(begins, ends, axes, steps):
        places[axis] = range(shape[axis])[begin:end:step]
    into.set(node, _chosen(value, places, into))


def split(node: Node, into: Translation) -> None:
    """Split along an axis, into parts of constant sizes."""
    value = into.value(node)
    axis = int(node.attributes.get("axis", 0)) % len(value.shape)
    begin = 0
    for name in node.outputs:
        size = into.network.shapes[name][axis]
        places = [range(n) for n in value.shape]
        places[axis] = range(begin, begin + size)
        into.values[name] = _chosen(value, places, into)
        begin += size


def gather(node: Node, into: Translation) -> None:
    """Gather with constant indices along an axis: one of them, or several in any order."""
    if into.constant(node, 0) is not None:
        raise node.refuse("of a constant", "an embedding of whole numbers is no sensor's sample: give it floats")
    value = into.value(node)
    axis = int(node.attributes.get("axis", 0)) % len(value.shape)
    indices = into.needed_constant(node, 1, "indices")
    _gathered(node, value, axis, indices, into)


def gather_nd(node: Node, into: Translation) -> None:
    """GatherND with constant indices along the first axes, all but one of which have the size 1."""
    value = into.value(node)
    indices = into.needed_constant(node, 1, "indices")
    if node.attributes.get("batch_dims", 0) or indices.shape[-1] != 1:
        raise node.refuse("along several axes", "choose along one axis after the other")
    _gathered(node, value, 0, indices[..., 0], into)


def _gathered(node: Node, value: Value, axis: int, indices: np.ndarray, into: Translation) -> None:
    size, shape = value.shape[axis], into.network.shapes[node.outputs[0]]
    numbers = [int(n) % size for n in indices.ravel()]
    parts, at = [], 0
    while at < len(numbers):  # numbers that follow each other are one part
        end = at + 1
        while end < len(numbers) and numbers[end] == numbers[end - 1] + 1:
            end += 1
        places = [range(n) for n in value.shape]
        places[axis] = range(numbers[at], numbers[end - 1] + 1)
        parts.append(_chosen(value, places, into))
        at = end
    first = parts[0]
    if len(parts) > 1:
        whole = tuple(len(numbers) if n == axis else n_size for n, n_size in enumerate(value.shape))
        last = first.order == CHANNELS_LAST
        place = _stored_axis(axis, len(whole)) if last else axis
        result = replace(first, shape=whole, picture=channels_last_shape(whole) if last else (0, 0, 0))
        first = replace(result, tensor=into.joined([part.tensor for part in parts], result.stored_shape, place))
    if shape != first.shape:
        first = into.in_onnx_order(first)
        first = replace(first, tensor=into.reshape(first.tensor, shape), shape=shape)
    into.set(node, first)


def _chosen(value: Value, places: list[range], into: Translation) -> Value:
    """The numbers at these places along each axis of a value's ONNX shape."""
    shape = tuple(len(numbers) for numbers in places)
    if value.order == CHANNELS_LAST and shape[0] == 1:
        result = replace(value, shape=shape, picture=channels_last_shape(shape))
        where = [range(1)] * 4
        for axis, numbers in enumerate(places):
            where[_stored_axis(axis, len(shape))] = numbers
    else:
        value = into.in_onnx_order(value)
        result, where = replace(value, shape=shape), list(places)
    if all(numbers.step == 1 for numbers in where):
        return replace(result, tensor=into.slice(value.tensor, tuple(numbers.start for numbers in where), result.stored_shape))
    tensor = value.tensor
    for axis, numbers in enumerate(where):
        shape = into.shape_of(tensor)
        if numbers != range(shape[axis]):
            left = (*shape[:axis], len(numbers), *shape[axis + 1 :])
            tensor = into.emit("GATHER", [tensor, into.array(np.array(numbers, np.int32))], left, axis=axis)
    return replace(result, tensor=tensor)


def softmax(node: Node, into: Translation) -> None:
    """Softmax and LogSoftmax along an axis, which becomes the last one for as long as it takes."""
    value = into.value(node)
    axis = int(node.attributes.get("axis", -1)) % len(value.shape)
    if value.order == CHANNELS_LAST and axis == 1:
        axis = -1
    else:
        value = into.in_onnx_order(value)
    axes = list(range(len(value.stored_shape)))
    axes[axis], axes[-1] = axes[-1], axes[axis]
    shape = tuple(value.stored_shape[n] for n in axes)
    inputs, positive = [into.transpose(value.tensor, tuple(axes), shape)], node.kind == "Softmax"
    tensor = into.emit("SOFTMAX", inputs, shape, beta=1.0) if positive else into.emit("LOG_SOFTMAX", inputs, shape)
    tensor = into.transpose(tensor, tuple(axes), value.stored_shape)
    into.set(node, replace(value, tensor=tensor, non_negative=positive))


def _stored_axis(axis: int, rank: int) -> int:
    """The axis of (1, H, W, C) that is this axis of an ONNX shape."""
    return {4: (0, 3, 1, 2), 3: (0, 3, 2)}[rank][axis]
