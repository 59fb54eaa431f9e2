"""LSTM operators of a float .tflite as int8, which ai-edge-quantizer does not quantise: it sees another operator meanwhile."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..operators.recurrent import BIASES, CELL, GATES, RECURRENT, STATE
from ..tflite import Graph, Tensor, read
from ..tflite_edit import with_dense
from ..tflite_write import write

LSTM, STAND_IN = "UNIDIRECTIONAL_SEQUENCE_LSTM", "FULLY_CONNECTED"
CELL_SCALE = 2.0**-11  # of 16 bits: cells from -16 to 16, whose tanh is 1


def hidden(content: bytes) -> bytes:
    """The float .tflite with STAND_IN, by weights and bias of one gate, in place of each LSTM."""
    layers = {n: operator.inputs for n, operator in enumerate(read(content).operators) if operator.name == LSTM}
    if not layers:
        return content
    return with_dense(content, {n: [inputs[0], inputs[GATES.start], inputs[BIASES.start]] for n, inputs in layers.items()})


def restored(content: bytes, original: bytes) -> bytes:
    """The int8 .tflite of hidden(original) with LSTM of int8, whose cells have 16 bits."""
    real = read(original)
    layers = {real.tensors[o.outputs[0]].name: o for o in real.operators if o.name == LSTM}
    if not layers:
        return content
    graph = read(content)
    tensors, operators = list(graph.tensors), []
    for operator in graph.operators:
        layer = layers.get(graph.tensors[operator.outputs[0]].name)
        if layer is not None and operator.name == STAND_IN:
            operator = _quantised(graph, tensors, operator.inputs[0], operator.outputs[0], real, layer)
        operators.append(operator)
    return write(replace(graph, tensors=tuple(tensors), operators=tuple(operators)))


def _quantised(graph: Graph, tensors: list[Tensor], x: int, y: int, real: Graph, layer: Any) -> Any:
    """The int8 LSTM between two int8 tensors; it appends its constants and its state to the tensors."""
    x_scale = float(graph.tensors[x].scale[0])

    def tensor(shape: tuple[int, ...], dtype: str, scale: float | None, zero: int = 0, **own: Any) -> int:
        quantisation = (np.zeros(0), np.zeros(0, int)) if scale is None else (np.array([scale], np.float32), np.array([zero]))
        tensors.append(Tensor(len(tensors), f"lstm:{len(tensors)}", shape, dtype, own.pop("data", None), *quantisation, **own))
        return len(tensors) - 1

    inputs = [x, *[-1] * 23]
    for part in (GATES, RECURRENT):
        for n in range(part.start, part.stop):
            numbers = real.tensors[layer.inputs[n]].data
            assert numbers is not None
            step = float(np.abs(numbers).max() / 127) or 1.0
            inputs[n] = tensor(numbers.shape, "int8", step, data=np.round(numbers / step).astype(np.int8))
            if part == GATES:
                place = n - GATES.start + BIASES.start
                bias = real.tensors[layer.inputs[place]].data
                assert bias is not None
                step *= x_scale
                inputs[place] = tensor(bias.shape, "int32", step, data=np.round(bias / step).astype(np.int32))
    scale, zero = graph.tensors[y].quantisation
    shape = real.tensors[layer.inputs[STATE]].shape
    inputs[STATE] = tensor(shape, "int8", scale, zero, variable=True)
    inputs[CELL] = tensor(shape, "int16", CELL_SCALE, variable=True)
    inside = [tensor((0,), "float32", None) for _ in range(4)] + [tensor((0,), "int8", scale, zero)]
    return replace(layer, inputs=tuple(inputs), outputs=(y,), intermediates=tuple(inside))
