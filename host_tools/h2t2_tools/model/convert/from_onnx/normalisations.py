"""LayerNormalization and InstanceNormalization, of which group normalisation is made: means, products, a reciprocal root."""

from dataclasses import replace

import numpy as np

from .network import Node
from .translation import CHANNELS_LAST, ONNX_ORDER, Translation, Value, ordered_constant


def layer_normalisation(node: Node, into: Translation) -> None:
    """LayerNormalization over the last axes, with constant scale and shift."""
    value = into.in_onnx_order(into.value(node))
    axis = int(node.attributes.get("axis", -1)) % len(value.shape)
    scale, shift = into.needed_constant(node, 1, "a scale"), into.constant(node, 2)
    into.set(node, _normalised(node, value, list(range(axis, len(value.shape))), scale, shift, into))


def instance_normalisation(node: Node, into: Translation) -> None:
    """InstanceNormalization: over height and width, or over time."""
    scale, shift = into.needed_constant(node, 1, "a scale"), into.needed_constant(node, 2, "a shift")
    value = into.value(node)
    value = into.in_channels_last(value) if len(value.shape) == 4 else into.in_onnx_order(value)
    along = (1, -1) + (1,) * (len(value.shape) - 2)
    axes = [1, 2] if value.order == CHANNELS_LAST else list(range(2, len(value.shape)))
    into.set(node, _normalised(node, value, axes, scale.reshape(along), shift.reshape(along), into))


def _normalised(
    node: Node, value: Value, axes: list[int], scale: np.ndarray | None, shift: np.ndarray | None, into: Translation
) -> Value:
    """(x - mean) / root(variance + epsilon) * scale + shift; axes: of its tensor, over which mean and variance are taken."""
    shape = value.stored_shape
    few = tuple(1 if n in axes else size for n, size in enumerate(shape))
    numbers = into.array(np.array(axes, np.int32))
    epsilon = into.array(np.full((1,) * len(shape), node.attributes.get("epsilon", 1e-5), np.float32))
    mean = into.emit("MEAN", [value.tensor, numbers], few, keep_dims=True)
    centred = into.emit("SUB", [value.tensor, mean], shape, fused=0)
    squares = into.emit("MUL", [centred, centred], shape, fused=0)
    variance = into.emit("ADD", [into.emit("MEAN", [squares, numbers], few, keep_dims=True), epsilon], few, fused=0)
    tensor = into.emit("MUL", [centred, into.emit("RSQRT", [variance], few)], shape, fused=0)
    return _scaled(replace(value, tensor=tensor, non_negative=False), scale, shift, into)


def _scaled(value: Value, scale: np.ndarray | None, shift: np.ndarray | None, into: Translation) -> Value:
    """The value times a constant, plus a constant; those that change nothing are left out."""
    for name, constant, nothing in (("MUL", scale, 1), ("ADD", shift, 0)):
        if constant is None or (constant == nothing).all():
            continue
        if value.order == ONNX_ORDER and constant.ndim < len(value.shape):
            constant = constant.reshape((1,) * (len(value.shape) - constant.ndim) + constant.shape)
        array = into.array(ordered_constant(constant.astype(np.float32), value))
        value = replace(value, tensor=into.emit(name, [value.tensor, array], value.stored_shape, fused=0))
    return value
