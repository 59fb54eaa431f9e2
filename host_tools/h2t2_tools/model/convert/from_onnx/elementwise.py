"""Nodes that treat each number by itself: activations, arithmetic of two tensors, PRelu, BatchNormalization."""

import math
from dataclasses import replace

import numpy as np

from .network import Node
from .translation import CHANNELS_LAST, FLATTENED, Translation, Value, channels_last_shape, ordered_constant

ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Max": "MAXIMUM", "Min": "MINIMUM"}
FUNCTIONS = {"Sigmoid": "LOGISTIC", "Tanh": "TANH", "HardSwish": "HARD_SWISH", "Abs": "ABS", "Log": "LOG", "Rsqrt": "RSQRT"}
SMALLEST = 1e-12  # whose root is taken
_BOUNDED = {(0.0, np.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}


def function(node: Node, into: Translation) -> None:
    """Sigmoid, Tanh, HardSwish, Abs, Log, and the reciprocal root that network.py makes of two nodes."""
    value = into.value(node)
    tensor = into.emit(FUNCTIONS[node.kind], [value.tensor], value.stored_shape)
    into.set(node, replace(value, tensor=tensor, non_negative=node.kind in ("Sigmoid", "Abs", "Rsqrt")))


def gelu(node: Node, into: Translation) -> None:
    """Gelu, exact or approximated by tanh. onnxruntime makes it of the five nodes that PyTorch writes, from opset 20 on."""
    value = into.value(node)
    approximate = int(node.attributes.get("approximate", "none") == "tanh")
    tensor = into.emit("GELU", [value.tensor], value.stored_shape, approximate=approximate)
    into.set(node, replace(value, tensor=tensor, non_negative=False))


def softplus(node: Node, into: Translation) -> None:
    """Softplus: log(1 + e^x)."""
    value = into.value(node)
    into.set(node, replace(value, tensor=_softplus(value, into), non_negative=True))


def mish(node: Node, into: Translation) -> None:
    """Mish: x tanh(softplus(x))."""
    value = into.value(node)
    gate = into.emit("TANH", [_softplus(value, into)], value.stored_shape)
    tensor = into.emit("MUL", [value.tensor, gate], value.stored_shape, fused=0)
    into.set(node, replace(value, tensor=tensor, non_negative=False))


def _softplus(value: Value, into: Translation) -> int:
    """max(0, x) - log(logistic(|x|)), whose parts stay small."""
    shape = value.stored_shape
    positive = into.emit("RELU", [value.tensor], shape)
    gate = into.emit("LOGISTIC", [into.emit("ABS", [value.tensor], shape)], shape)
    return into.emit("SUB", [positive, into.emit("LOG", [gate], shape)], shape, fused=0)


def elu(node: Node, into: Translation) -> None:
    """Elu and Selu: gamma x where x is positive, and gamma alpha (e^x - 1) elsewhere.

    1 + e^t is the square of the reciprocal root of logistic(-t), for t = min(0, x).
    """
    alpha, gamma = (1.6732632, 1.0507010) if node.kind == "Selu" else (1.0, 1.0)
    alpha, gamma = float(node.attributes.get("alpha", alpha)), float(node.attributes.get("gamma", gamma))
    value = into.value(node)
    shape = value.stored_shape

    def pair(name: str, a: int, b: int) -> int:
        return into.emit(name, [a, b], shape, fused=0)

    positive = into.emit("RELU", [value.tensor], shape)
    gate = into.emit("LOGISTIC", [pair("SUB", positive, value.tensor)], shape)
    root = into.emit("RSQRT", [gate], shape)
    negative = pair("ADD", pair("MUL", root, root), number(-2, value, into))
    if alpha * gamma != 1:
        negative = pair("MUL", negative, number(alpha * gamma, value, into))
    if gamma != 1:
        positive = pair("MUL", positive, number(gamma, value, into))
    into.set(node, replace(value, tensor=pair("ADD", positive, negative), non_negative=False))


def negate(node: Node, into: Translation) -> None:
    """Neg."""
    value = into.value(node)
    tensor = into.emit("MUL", [value.tensor, number(-1, value, into)], value.stored_shape, fused=0)
    into.set(node, replace(value, tensor=tensor, non_negative=False))


def power(node: Node, into: Translation) -> None:
    """Pow with the exponent 2."""
    if (into.needed_constant(node, 1, "an exponent") != 2).any():
        raise node.refuse("with an exponent other than 2", "write it as products")
    value = into.value(node)
    tensor = into.emit("MUL", [value.tensor, value.tensor], value.stored_shape, fused=0)
    into.set(node, replace(value, tensor=tensor, non_negative=True))


def root(node: Node, into: Translation) -> None:
    """Sqrt: x by the reciprocal root of x, which is finite at 0."""
    value = into.value(node)
    shape = value.stored_shape
    reciprocal = into.emit("RSQRT", [into.emit("MAXIMUM", [value.tensor, number(SMALLEST, value, into)], shape)], shape)
    into.set(node, replace(value, tensor=into.emit("MUL", [value.tensor, reciprocal], shape, fused=0), non_negative=True))


def leaky_relu(node: Node, into: Translation) -> None:
    """LeakyRelu."""
    value = into.value(node)
    tensor = into.emit("LEAKY_RELU", [value.tensor], value.stored_shape, alpha=float(node.attributes.get("alpha", 0.01)))
    into.set(node, replace(value, tensor=tensor, non_negative=False))


def prelu(node: Node, into: Translation) -> None:
    """PRelu with constant slopes."""
    value = into.value(node)
    slopes = ordered_constant(into.needed_constant(node, 1, "slopes"), value)
    slopes = slopes.reshape((1,) * (len(value.stored_shape) - slopes.ndim) + slopes.shape)[0]
    tensor = into.emit("PRELU", [value.tensor, into.array(slopes)], value.stored_shape)
    into.set(node, replace(value, tensor=tensor, non_negative=False))


def relu(node: Node, into: Translation) -> None:
    """Relu."""
    _bound(node, into, 0.0, np.inf)


def clip(node: Node, into: Translation) -> None:
    """Clip, with constant bounds as inputs (opset 11 and newer) or attributes."""
    bounds = []
    for place, name, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        if place < len(node.inputs) and node.inputs[place]:
            bounds.append(float(into.needed_constant(node, place, "a bound").ravel()[0]))
        else:
            bounds.append(float(node.attributes.get(name, default)))
    _bound(node, into, *bounds)


def _bound(node: Node, into: Translation, low: float, high: float) -> None:
    name = _BOUNDED.get((low, high))
    if name and into.fuse(node, name):
        return
    value = into.value(node)
    tensor, shape = value.tensor, value.stored_shape
    if name:
        tensor = into.emit(name, [tensor], shape)
    else:
        if np.isfinite(low):
            tensor = into.emit("MAXIMUM", [tensor, number(low, value, into)], shape)
        if np.isfinite(high):
            tensor = into.emit("MINIMUM", [tensor, number(high, value, into)], shape)
    into.set(node, replace(value, tensor=tensor, non_negative=low >= 0))


def hard_sigmoid(node: Node, into: Translation) -> None:
    """HardSigmoid: max(0, min(1, alpha x + beta)), as a RELU6 between a sum and a product."""
    alpha, beta = float(node.attributes.get("alpha", 0.2)), float(node.attributes.get("beta", 0.5))
    value = into.value(node)
    shape = value.stored_shape
    tensor = into.emit("MUL", [value.tensor, number(6 * alpha, value, into)], shape, fused=0)
    tensor = into.emit("ADD", [tensor, number(6 * beta, value, into)], shape, fused=3)
    tensor = into.emit("MUL", [tensor, number(1 / 6, value, into)], shape, fused=0)
    into.set(node, replace(value, tensor=tensor, non_negative=True))


def arithmetic(node: Node, into: Translation) -> None:
    """Add, Sub, Mul, Max and Min of two tensors, one of which may be a constant."""
    if len(node.inputs) != 2:
        raise node.refuse(f"of {len(node.inputs)} tensors", "export it as operations of two tensors")
    left, right = into.constant(node, 0), into.constant(node, 1)
    shape = into.network.shapes[node.outputs[0]]
    if left is not None and right is not None:
        raise node.refuse("of two constants", "export it with folded constants")
    if left is None and right is None:
        a, b = _same_order(into.value(node, 0), into.value(node, 1), into)
        inputs, order = [a.tensor, b.tensor], a
    else:
        place = 0 if left is None else 1
        order = into.value(node, place)
        if len(shape) > len(order.shape):
            order = into.in_onnx_order(order)
        if np.prod(order.shape) < np.prod(shape):
            order = _repeated(node, order, into)
        constant = into.array(_full(ordered_constant(np.asarray(right if left is None else left), order), len(shape)))
        inputs = [order.tensor, constant] if place == 0 else [constant, order.tensor]
    picture = order.picture
    if order.order == CHANNELS_LAST:
        picture = channels_last_shape(shape)
    result = Value(-1, shape, order.order, picture)
    options = {} if node.kind in ("Max", "Min") else {"fused": 0}
    tensor = into.emit(ARITHMETIC[node.kind], inputs, result.stored_shape, **options)
    into.set(node, replace(result, tensor=tensor))


def _repeated(node: Node, value: Value, into: Translation) -> Value:
    """An activation with the output's shape, in ONNX's order: boards repeat constants, and no activation to a constant."""
    value, shape = into.in_onnx_order(value), into.network.shapes[node.outputs[0]]
    sizes = (1,) * (len(shape) - len(value.shape)) + value.shape
    axes = [n for n in range(len(shape)) if sizes[n] != shape[n]]
    first, end = axes[0], axes[-1] + 1
    outer, times, inner = (math.prod(part) for part in (shape[:first], shape[first:end], shape[end:]))
    if math.prod(sizes[first:end]) != 1:
        raise node.refuse(f"of {value.shape} repeated to {shape} along axes that are apart", "repeat it in two steps")
    tensor = into.emit(
        "RESIZE_NEAREST_NEIGHBOR",
        [into.reshape(value.tensor, (1, outer, 1, inner)), into.array(np.array((outer, times), np.int32))],
        (1, outer, times, inner), align_corners=False, half_pixel_centers=False,
    )  # fmt: skip
    return replace(value, tensor=into.reshape(tensor, shape), shape=shape)


def _full(constant: np.ndarray, rank: int) -> np.ndarray:
    """A constant with as many axes as an activation, where it has fewer: the quantizer wants that."""
    return constant.reshape((1,) * (rank - constant.ndim) + constant.shape)


def divide(node: Node, into: Translation) -> None:
    """Div by a constant: a product with its reciprocal."""
    divisor = into.needed_constant(node, 1, "a divisor")
    value = into.value(node)
    constant = into.array(ordered_constant((1 / divisor).astype(np.float32), value))
    into.set(node, replace(value, tensor=into.emit("MUL", [value.tensor, constant], value.stored_shape, fused=0)))


def batch_normalisation(node: Node, into: Translation) -> None:
    """BatchNormalization that follows no convolution: a product and a sum per channel."""
    scale, shift, mean, variance = (into.needed_constant(node, place, "a statistic") for place in (1, 2, 3, 4))
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    offset = shift - mean * factor
    value = into.value(node)
    shape = (1, -1) + (1,) * (len(value.shape) - 2)
    for operator, numbers in (("MUL", factor), ("ADD", offset)):
        constant = into.array(ordered_constant(numbers.reshape(shape).astype(np.float32), value))
        tensor = into.emit(operator, [value.tensor, constant], value.stored_shape, fused=0)
        value = replace(value, tensor=tensor, non_negative=False)
    into.set(node, value)


def number(constant: float, value: Value, into: Translation) -> int:
    """A tensor of one number, of as many axes as a value's tensor: the quantizer wants that."""
    return into.array(np.full((1,) * len(value.stored_shape), constant, np.float32))


def _same_order(a: Value, b: Value, into: Translation) -> tuple[Value, Value]:
    """Both values in one order: channels last if both have channels and one is in that order already."""
    if a.order == b.order and (a.order != FLATTENED or a.picture == b.picture):
        return a, b
    if len(a.shape) == len(b.shape) and len(a.shape) in (3, 4) and CHANNELS_LAST in (a.order, b.order):
        return into.in_channels_last(a), into.in_channels_last(b)
    return into.in_onnx_order(a), into.in_onnx_order(b)
