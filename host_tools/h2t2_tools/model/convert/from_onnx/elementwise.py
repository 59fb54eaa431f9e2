"""Nodes that treat each number by itself: activations, arithmetic of two tensors, PRelu, BatchNormalization."""

from dataclasses import replace

import numpy as np

from .network import Node
from .translation import CHANNELS_LAST, FLATTENED, FUSED_CODES, Translation, Value, channels_last_shape, ordered_constant

ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Max": "MAXIMUM", "Min": "SUB"}
FUNCTIONS = {"Sigmoid": "LOGISTIC", "Tanh": "TANH", "HardSwish": "HARD_SWISH"}
_BOUNDED = {(0.0, np.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}


def function(node: Node, into: Translation) -> None:
    """Sigmoid, Tanh, HardSwish."""
    value = into.value(node)
    tensor = into.emit(FUNCTIONS[node.kind], [value.tensor], value.stored_shape)
    into.set(node, replace(value, tensor=tensor, non_negative=node.kind == "Sigmoid"))


def gelu(node: Node, into: Translation) -> None:
    """Gelu, exact or approximated by tanh. onnxruntime makes it of the five nodes that PyTorch writes, from opset 20 on."""
    value = into.value(node)
    approximate = int(node.attributes.get("approximate", "none") == "tanh")
    tensor = into.emit("GELU", [value.tensor], value.stored_shape, approximate=approximate)
    into.set(node, replace(value, tensor=tensor, non_negative=False))


def leaky_relu(node: Node, into: Translation) -> None:
    """LeakyRelu."""
    _sloped(node, np.array([node.attributes.get("alpha", 0.01)], np.float32), into)


def prelu(node: Node, into: Translation) -> None:
    """PRelu with constant slopes."""
    _sloped(node, into.needed_constant(node, 1, "slopes"), into)


def _sloped(node: Node, slopes: np.ndarray, into: Translation) -> None:
    """x where it is positive, and slope x elsewhere, from operators that ai-edge-quantizer quantises."""
    value = into.value(node)
    shape, constant = value.stored_shape, into.array(ordered_constant(slopes, value))
    if slopes.min() >= 0 and slopes.max() <= 1:
        scaled = into.emit("MUL", [value.tensor, constant], shape, fused=0)
        tensor = into.emit("MAXIMUM", [value.tensor, scaled], shape)
    else:
        positive = into.emit("RELU", [value.tensor], shape)
        negative = into.emit("SUB", [value.tensor, positive], shape, fused=0)
        scaled = into.emit("MUL", [negative, constant], shape, fused=0)
        tensor = into.emit("ADD", [positive, scaled], shape, fused=0)
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
    if name == "RELU":
        tensor = into.emit(name, [tensor], shape)
    elif name:  # ai-edge-quantizer quantises it inside an operator, not alone
        tensor = into.emit("MUL", [tensor, number(1, value, into)], shape, fused=FUSED_CODES[name])
    else:
        if np.isfinite(low):
            tensor = into.emit("MAXIMUM", [tensor, number(low, value, into)], shape)
        if np.isfinite(high):
            tensor = _minimum(number(high, value, into), tensor, shape, into)
    into.set(node, replace(value, tensor=tensor, non_negative=low >= 0))


def _minimum(a: int, b: int, shape: tuple[int, ...], into: Translation) -> int:
    """The smaller of two tensors, a - max(0, a - b): ai-edge-quantizer does not quantise MINIMUM."""
    above = into.emit("SUB", [a, b], shape, fused=FUSED_CODES["RELU"])
    return into.emit("SUB", [a, above], shape, fused=0)


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
        constant = into.array(ordered_constant(np.asarray(right if left is None else left), order))
        inputs = [order.tensor, constant] if place == 0 else [constant, order.tensor]
    picture = order.picture
    if order.order == CHANNELS_LAST:
        picture = channels_last_shape(shape)
    result = Value(-1, shape, order.order, picture)
    if node.kind == "Min":
        tensor = _minimum(inputs[0], inputs[1], result.stored_shape, into)
    else:
        options = {} if node.kind == "Max" else {"fused": 0}
        tensor = into.emit(ARITHMETIC[node.kind], inputs, result.stored_shape, **options)
    into.set(node, replace(result, tensor=tensor))


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
