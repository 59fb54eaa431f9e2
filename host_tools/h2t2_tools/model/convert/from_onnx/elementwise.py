"""Nodes that treat each number by itself: activations, arithmetic of two tensors, PRelu, BatchNormalization."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from .network import Node
from .translation import CHANNELS_LAST, FLATTENED, FUSED_CODES, Translation, Value, channels_last_shape, ordered_constant

ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Max": "MAXIMUM", "Min": "MINIMUM"}
SMALLEST = 1e-12  # whose root is taken
Emit = Callable[..., int]  # (operator, tensors or numbers, options) -> the tensor of its output
_BOUNDED = {(0.0, np.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}


def _softplus(emit: Emit, x: int) -> int:
    """log(1 + e^x) as max(0, x) - log(logistic(|x|)), whose parts stay small."""
    positive = emit("RELU", x)
    return emit("SUB", positive, emit("LOG", emit("LOGISTIC", emit("ABS", x))))


def _elu(emit: Emit, x: int, node: Node) -> int:
    """Elu and Selu: gamma x where x is positive, and gamma alpha (e^x - 1) elsewhere.

    1 + e^t is the square of the reciprocal root of logistic(-t), for t = min(0, x).
    """
    alpha, gamma = (1.6732632, 1.0507010) if node.kind == "Selu" else (1.0, 1.0)
    alpha, gamma = node.number("alpha", alpha), node.number("gamma", gamma)
    positive = emit("RELU", x)
    root = emit("RSQRT", emit("LOGISTIC", emit("SUB", positive, x)))
    negative = emit("ADD", emit("MUL", root, root), -2.0)
    if alpha * gamma != 1:
        negative = emit("MUL", negative, alpha * gamma)
    if gamma != 1:
        positive = emit("MUL", positive, gamma)
    return emit("ADD", positive, negative)


def _hard_sigmoid(emit: Emit, x: int, node: Node) -> int:
    """max(0, min(1, alpha x + beta)), as a RELU6 between a sum and a product."""
    scaled = emit("MUL", x, 6 * node.number("alpha", 0.2))
    return emit("MUL", emit("ADD", scaled, 6 * node.number("beta", 0.5), fused=FUSED_CODES["RELU6"]), 1 / 6)


# kind of node -> what makes its output of the tensor x
FUNCTIONS: dict[str, Callable[[Emit, int, Node], int]] = {
    "Sigmoid": lambda emit, x, node: emit("LOGISTIC", x),
    "Tanh": lambda emit, x, node: emit("TANH", x),
    "HardSwish": lambda emit, x, node: emit("HARD_SWISH", x),
    "Abs": lambda emit, x, node: emit("ABS", x),
    "Log": lambda emit, x, node: emit("LOG", x),
    "Rsqrt": lambda emit, x, node: emit("RSQRT", x),  # which network.py makes of two nodes
    "Sqrt": lambda emit, x, node: emit("MUL", x, emit("RSQRT", emit("MAXIMUM", x, SMALLEST))),  # finite at 0
    "Neg": lambda emit, x, node: emit("MUL", x, -1.0),
    "LeakyRelu": lambda emit, x, node: emit("LEAKY_RELU", x, alpha=node.number("alpha", 0.01)),
    "Softplus": lambda emit, x, node: _softplus(emit, x),
    "Mish": lambda emit, x, node: emit("MUL", x, emit("TANH", _softplus(emit, x))),
    # onnxruntime makes Gelu of the five nodes that PyTorch writes, from opset 20 on
    "Gelu": lambda emit, x, node: emit("GELU", x, approximate=int(node.attributes.get("approximate", "none") == "tanh")),
    "HardSigmoid": _hard_sigmoid,
    **dict.fromkeys(("Elu", "Selu"), _elu),
}
NON_NEGATIVE = ("Sigmoid", "Abs", "Rsqrt", "Sqrt", "Softplus", "HardSigmoid")


def function(node: Node, into: Translation) -> None:
    """A function of each number, of FUNCTIONS."""
    value = into.value(node)
    tensor = FUNCTIONS[node.kind](partial(into.apply, value), value.tensor, node)
    into.set(node, replace(value, tensor=tensor, non_negative=node.kind in NON_NEGATIVE))


def power(node: Node, into: Translation) -> None:
    """Pow with the exponent 2."""
    if (into.needed_constant(node, 1, "an exponent") != 2).any():
        raise node.refuse("with an exponent other than 2", "write it as products")
    value = into.value(node)
    into.set(node, replace(value, tensor=into.apply(value, "MUL", value.tensor, value.tensor), non_negative=True))


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
    tensor = into.apply(value, name, value.tensor) if name else value.tensor
    for operator, bound in () if name else (("MAXIMUM", low), ("MINIMUM", high)):
        tensor = into.apply(value, operator, tensor, bound) if np.isfinite(bound) else tensor
    into.set(node, replace(value, tensor=tensor, non_negative=low >= 0))


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


def _same_order(a: Value, b: Value, into: Translation) -> tuple[Value, Value]:
    """Both values in one order: channels last if both have channels and one is in that order already."""
    if a.order == b.order and (a.order != FLATTENED or a.picture == b.picture):
        return a, b
    if len(a.shape) == len(b.shape) and len(a.shape) in (3, 4) and CHANNELS_LAST in (a.order, b.order):
        return into.in_channels_last(a), into.in_channels_last(b)
    return into.in_onnx_order(a), into.in_onnx_order(b)
