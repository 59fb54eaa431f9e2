"""The growing .tflite: its tensors and operators, and in which order the numbers of each ONNX tensor lie in it.

ONNX puts channels first, (1, C, H, W) or (1, C, W). A .tflite puts them last, (1, H, W, C). A tensor between two convolutions
stays in .tflite's order. Only a node that needs ONNX's order gets a TRANSPOSE before it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....common.errors import UserError
from ...tflite import FUSED, Graph, Operator, Tensor
from .network import Network, Node

ONNX_ORDER = "as in ONNX"
CHANNELS_LAST = "(1, H, W, C)"
FLATTENED = "(1, H W C), flattened from (1, H, W, C)"

VERSIONS = {"FULLY_CONNECTED": 1, "RESIZE_BILINEAR": 3, "RESIZE_NEAREST_NEIGHBOR": 3, "TRANSPOSE_CONV": 3}
FUSED_CODES = {name: code for code, name in FUSED.items()}
FUSABLE = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "SUB", "MUL")


@dataclass(frozen=True)
class Value:
    """An activation. tensor: its index in the .tflite; shape: its ONNX shape; order: of its numbers in the .tflite.

    picture: (H, W, C) of a tensor that is not in ONNX's order; non_negative: no number is below 0.
    """

    tensor: int
    shape: tuple[int, ...]
    order: str = ONNX_ORDER
    picture: tuple[int, int, int] = (0, 0, 0)
    non_negative: bool = False

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of its tensor in the .tflite."""
        return (1, *self.picture) if self.order == CHANNELS_LAST else self.shape


class Translation:
    """A .tflite graph under construction, and the values that ONNX names have in it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.values: dict[str, Value] = {}
        self._tensors: list[Tensor] = []
        self._operators: list[Operator] = []
        shape = network.shapes[network.input]
        self.values[network.input] = Value(self._tensor("input", shape, None), shape)

    def graph(self) -> Graph:
        """The finished graph, with its output in ONNX's order."""
        output = self.in_onnx_order(self.values[self.network.output])
        if output.tensor == 0:
            raise UserError(f"{self.network.path}: has no operation")
        ends = (0,), (output.tensor,)
        return Graph(str(self.network.path), 0, tuple(self._tensors), tuple(self._operators), *ends)

    # what a node reads

    def constant(self, node: Node, place: int) -> np.ndarray | None:
        """The constant in an input of a node, None for an omitted input or an activation."""
        name = node.inputs[place] if place < len(node.inputs) else ""
        return self.network.constants.get(name)

    def needed_constant(self, node: Node, place: int, role: str) -> np.ndarray:
        """As constant(). UserError where it is an activation or omitted; role: what the input is, in words."""
        constant = self.constant(node, place)
        if constant is None:
            raise node.refuse(f"with {role} that the network computes", "export it with constants there")
        return constant

    def value(self, node: Node, place: int = 0) -> Value:
        """The activation in an input of a node; a constant becomes a tensor in ONNX's order."""
        name = node.inputs[place]
        if name not in self.values:
            array = np.asarray(self.network.constants[name])
            return Value(self.array(array), array.shape)
        return self.values[name]

    def set(self, node: Node, value: Value) -> None:
        """Give a node's output its value."""
        self.values[node.outputs[0]] = value

    # what it becomes

    def array(self, data: np.ndarray) -> int:
        """A constant tensor: float32, or int32 for whole numbers."""
        whole = np.issubdtype(data.dtype, np.integer)
        return self._tensor("constant", data.shape, np.ascontiguousarray(data, np.int32 if whole else np.float32))

    def emit(self, name: str, inputs: list[int], shape: tuple[int, ...], **options: Any) -> int:
        """Append an operator with one float output of this shape; its tensor."""
        output = self._tensor(name.lower(), shape, None)
        self._operators.append(Operator(name, VERSIONS.get(name, 1), tuple(inputs), (output,), options))
        return output

    def apply(self, value: Value, name: str, *inputs: int | float, **options: Any) -> int:
        """Append an operator whose output has the shape of a value's tensor. Floats among the inputs become constants.

        Sums, differences and products have no activation unless the options name one.
        """
        ones = (1,) * len(value.stored_shape)  # as many axes as the tensor: the quantizer wants that
        tensors = [self.array(np.full(ones, each, np.float32)) if isinstance(each, float) else each for each in inputs]
        usual = {"fused": 0} if name in ("ADD", "SUB", "MUL") else {}
        return self.emit(name, tensors, value.stored_shape, **{**usual, **options})

    def fuse(self, node: Node, function: str) -> bool:
        """Put RELU, RELU6 or RELU_N1_TO_1 into the operator that computes a node's input, if nothing else reads that input."""
        name = node.inputs[0]
        value = self.values.get(name)
        if value is None or self.network.uses[name] != 1 or not self._operators:
            return False
        last = self._operators[-1]
        if last.outputs != (value.tensor,) or last.name not in FUSABLE or last.options.get("fused"):
            return False
        self._operators[-1] = replace(last, options={**last.options, "fused": FUSED_CODES[function]})
        self.set(node, replace(value, non_negative=function != "RELU_N1_TO_1"))
        return True

    # order

    def in_onnx_order(self, value: Value) -> Value:
        """The same numbers in ONNX's order."""
        if value.order == ONNX_ORDER:
            return value
        height, width, channels = value.picture
        tensor = value.tensor
        if value.order == FLATTENED:
            tensor = self.reshape(tensor, (1, height, width, channels))
        if channels > 1 and height * width > 1:
            tensor = self.transpose(tensor, (0, 3, 1, 2), (1, channels, height, width))
        return replace(value, tensor=self.reshape(tensor, value.shape), order=ONNX_ORDER)

    def in_channels_last(self, value: Value) -> Value:
        """The same numbers as (1, H, W, C), for an ONNX shape of (1, C, H, W) or (1, C, W)."""
        if value.order == CHANNELS_LAST:
            return value
        height, width, channels = channels_last_shape(value.shape)
        shape = (1, height, width, channels)
        tensor = value.tensor
        if channels > 1 and height * width > 1:
            tensor = self.reshape(tensor, (1, channels, height, width))
            tensor = self.transpose(tensor, (0, 2, 3, 1), shape)
        return replace(value, tensor=self.reshape(tensor, shape), order=CHANNELS_LAST, picture=(height, width, channels))

    def reshape(self, tensor: int, shape: tuple[int, ...]) -> int:
        """The tensor in another shape, itself where it has it already."""
        if self._tensors[tensor].shape == shape:
            return tensor
        return self.emit("RESHAPE", [tensor, self.array(np.array(shape, np.int32))], shape)

    def slice(self, tensor: int, begin: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """The part of a tensor that begins at `begin`, of this shape; itself where that is all of it."""
        if self._tensors[tensor].shape == shape:
            return tensor
        return self.emit("SLICE", [tensor, *(self.array(np.array(numbers, np.int32)) for numbers in (begin, shape))], shape)

    def joined(self, tensors: list[int], shape: tuple[int, ...], axis: int) -> int:
        """The tensors one behind the other along an axis; shape: of the result."""
        return tensors[0] if len(tensors) == 1 else self.emit("CONCATENATION", tensors, shape, axis=axis, fused=0)

    def shape_of(self, tensor: int) -> tuple[int, ...]:
        """The shape of a tensor of the .tflite."""
        return self._tensors[tensor].shape

    def variable(self, shape: tuple[int, ...]) -> int:
        """A tensor of state, which begins with 0."""
        index = self._tensor("state", shape, None)
        self._tensors[index] = replace(self._tensors[index], variable=True)
        return index

    def transpose(self, tensor: int, axes: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """The tensor with its axes in another order, itself where that is the same; shape: of the result."""
        if axes == tuple(sorted(axes)):
            return tensor
        return self.emit("TRANSPOSE", [tensor, self.array(np.array(axes, np.int32))], shape)

    def _tensor(self, name: str, shape: tuple[int, ...], data: np.ndarray | None) -> int:
        index = len(self._tensors)
        kind = "int32" if data is not None and data.dtype == np.int32 else "float32"
        self._tensors.append(Tensor(index, f"{name}:{index}", tuple(shape), kind, data))
        return index


def channels_last_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(H, W, C) of an ONNX shape (1, C, H, W) or (1, C, W)."""
    return (1 if len(shape) == 3 else shape[2], shape[-1], shape[1])


def channels_last_array(data: np.ndarray, rank: int) -> np.ndarray:
    """A constant that broadcasts to an ONNX shape of this rank, as it broadcasts to (1, H, W, C)."""
    data = data.reshape((1,) * (rank - data.ndim) + data.shape)
    if rank == 3:
        data = data[:, :, None, :]
    return data.transpose(0, 2, 3, 1)


def ordered_constant(data: np.ndarray, value: Value) -> np.ndarray:
    """A constant that broadcasts to a value's ONNX shape, in the order of its numbers."""
    if value.order == CHANNELS_LAST:
        return channels_last_array(data, len(value.shape))
    if value.order == FLATTENED and data.ndim and data.shape[-1] > 1:
        height, width, channels = value.picture
        return data.reshape(-1, channels, height, width).transpose(0, 2, 3, 1).reshape(data.shape)
    return data if data.ndim else data.reshape(1)
