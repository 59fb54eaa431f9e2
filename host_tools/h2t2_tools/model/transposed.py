"""A transposed convolution for boards: zeros between the numbers of its input, then a convolution by the turned kernel."""

from dataclasses import replace

import numpy as np

from .tflite import Graph, Operator, Tensor

KERNEL, INPUT, BIAS = 1, 2, 3  # places among the operator's inputs; the first is the output's shape
PLAIN = {"stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1, "padding": 1}


def with_convolutions(graph: Graph) -> Graph:
    """The graph with each TRANSPOSE_CONV as PAD, SLICE and CONV_2D, of the same sums: padding adds nothing."""
    if not any(operator.name == "TRANSPOSE_CONV" for operator in graph.operators):
        return graph
    into = _Rewritten(graph)
    for operator in graph.operators:
        weights = graph.tensors[operator.inputs[KERNEL]] if operator.name == "TRANSPOSE_CONV" else None
        if weights is None or weights.data is None or len(weights.shape) != 4:
            into.operators.append(operator)
        else:
            into.convolution(operator, weights)
    return replace(graph, tensors=tuple(into.tensors), operators=tuple(into.operators))


class _Rewritten:
    """The growing graph."""

    def __init__(self, graph: Graph) -> None:
        self.tensors, self.operators = list(graph.tensors), list[Operator]()

    def convolution(self, operator: Operator, weights: Tensor) -> None:
        """Append what computes a TRANSPOSE_CONV."""
        x, y = (self.tensors[n] for n in (operator.inputs[INPUT], operator.outputs[0]))
        assert weights.data is not None
        strides = operator.options["stride_h"], operator.options["stride_w"]
        tensor = self._spread(x, strides)
        pads = []
        for n, stride in zip((1, 2), strides):
            kernel, size = weights.shape[n], x.shape[n]
            before = kernel - 1 - max(0, (size - 1) * stride + kernel - y.shape[n]) // 2
            pads.append((before, y.shape[n] + kernel - 1 - size * stride - before))
        tensor = self._padded(self._cut(tensor, pads), pads)
        turned = self._append(replace(weights, data=weights.data[:, ::-1, ::-1].copy()))
        options = {**PLAIN, "fused": operator.options["fused"]}
        inputs = (tensor.index, turned.index, *operator.inputs[BIAS:])
        self.operators.append(Operator("CONV_2D", 1, inputs, operator.outputs, options))

    def _spread(self, x: Tensor, strides: tuple[int, int]) -> Tensor:
        """The picture with zeros behind each column and row, so that its numbers lie `strides` apart."""
        _, height, width, depth = x.shape
        for rows, row, stride in ((height * width, depth, strides[1]), (height, width * strides[1] * depth, strides[0])):
            if stride > 1:
                x = self._moved("RESHAPE", x, (1, rows, row))
                x = self._moved("PAD", x, (1, rows, row * stride), [(0, 0), (0, 0), (0, row * (stride - 1))])
        return self._moved("RESHAPE", x, (1, height * strides[0], width * strides[1], depth))

    def _cut(self, x: Tensor, pads: list[tuple[int, int]]) -> Tensor:
        """The picture without the rows and columns that pads below 0 take."""
        begin = [max(0, -before) for before, _ in pads]
        sizes = [size - sum(max(0, -pad) for pad in both) for size, both in zip(x.shape[1:3], pads)]
        shape = (1, *sizes, x.shape[3])
        return x if shape == x.shape else self._moved("SLICE", x, shape, [0, *begin, 0], list(shape))

    def _padded(self, x: Tensor, pads: list[tuple[int, int]]) -> Tensor:
        """The picture with zeros around it, of the pads above 0."""
        around = [(max(0, before), max(0, after)) for before, after in pads]
        shape = (1, *(size + sum(both) for size, both in zip(x.shape[1:3], around)), x.shape[3])
        return x if shape == x.shape else self._moved("PAD", x, shape, [(0, 0), *around, (0, 0)])

    def _moved(self, name: str, x: Tensor, shape: tuple[int, ...], *constants: list[tuple[int, int]] | list[int]) -> Tensor:
        """Append an operator that moves the numbers of a tensor; the tensor that it gives."""
        if x.shape == shape:
            return x
        inputs = [x.index]
        for numbers in constants:
            data = np.array(numbers, np.int32)
            inputs.append(self._append(Tensor(0, "where", data.shape, "int32", data)).index)
        y = self._append(replace(x, shape=shape))
        self.operators.append(Operator(name, 1, tuple(inputs), (y.index,), {}))
        return y

    def _append(self, tensor: Tensor) -> Tensor:
        self.tensors.append(replace(tensor, index=len(self.tensors)))
        return self.tensors[-1]
