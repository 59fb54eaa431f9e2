"""LSTM layers, with 8 bits outside and 16 inside."""

import math

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from .step import Step, bytes_of, parameters
from .tflite_fixed_point import multiplier

# places among the operator's inputs
GATES, RECURRENT, BIASES, STATE, CELL = slice(1, 5), slice(5, 9), slice(12, 16), 18, 19
ABSENT = (9, 10, 11, 16, 17, 20, 21, 22, 23)  # peepholes, projection, normalisation: other forms of LSTM have them
HIDDEN = 4  # among the intermediates: the output before a projection
TANH = 4


def lstm(graph: Graph, operator: Operator) -> list[Step]:
    """UNIDIRECTIONAL_SEQUENCE_LSTM as Keras' LSTM is converted (TFLite's lstm_eval, 8x8_16)."""
    inputs = [*operator.inputs, *[-1] * (24 - len(operator.inputs))]
    x, y = graph.tensors[inputs[0]], graph.tensors[operator.outputs[0]]
    state, cell = graph.tensors[inputs[STATE]], graph.tensors[inputs[CELL]]
    named = [*inputs[GATES], *inputs[RECURRENT], *inputs[BIASES]]
    if any(inputs[n] >= 0 for n in ABSENT) or min(named) < 0 or operator.options["fused"] != TANH:
        raise UserError(
            f"{graph.path}: {operator.name}: only as Keras' LSTM: no peephole, projection or normalisation, by tanh"
        )
    weights, biases = [graph.tensors[n] for n in named[:8]], [graph.tensors[n].data for n in named[8:]]
    power = math.log2(float(cell.scale[0]))
    if any(t.data is None for t in weights) or power != round(power) or not -15 <= power <= -11:
        raise UserError(
            f"{graph.path}: {operator.name}: only of constant weights, its cells within 16 (a cell clip of 16 or less)"
        )
    cells, width = weights[0].shape
    times = x.size // width
    if y.size != times * cells or (float(y.scale[0]), int(y.zero[0])) != (float(state.scale[0]), int(state.zero[0])):
        raise UserError(f"{graph.path}: {operator.name}: only of one sequence, its output quantised as its state")
    clip = min(int(operator.options["cell_clip"] / float(cell.scale[0])), 32767)
    p = parameters("lstm", x, y, 0, times=times, inputs=width, cells=cells, cell=0, bits=15 + round(power), clip=clip)
    scales = [_gate_factor(w, x if n < 4 else state) for n, w in enumerate(weights)]
    hidden = graph.tensors[operator.intermediates[HIDDEN]]
    scales.append(float(np.float32(2.0**-15 / float(hidden.scale[0]) * 2.0**-15)))
    step = Step("lstm", p, y.index, b"".join(bytes_of(w) for w in weights), scratch=("cell", cell.index))
    step.bias = np.concatenate([np.zeros(cells, np.int64) if b is None else b.ravel().astype(np.int64) for b in biases])
    step.multipliers = [multiplier(scale) for scale in scales]
    if not -30 <= step.multipliers[-1][1] <= 0:
        raise UserError(f"{graph.path}: {operator.name}: its output in steps of {y.scale[0]:g}, of what is -1 to 1")
    gates = np.split(np.abs(step.bias), 4)
    added = [int(bias.max()) for bias in gates] + [0] * 4
    step.reach = [255 * int(np.abs(_numbers(w)).sum(axis=1).max()) + bias for w, bias in zip(weights, added)] + [0]
    return [step]


def _numbers(weights: Tensor) -> np.ndarray:
    assert weights.data is not None
    return weights.data.astype(np.int64)


def _gate_factor(weights: Tensor, x: Tensor) -> float:
    """The factor from a sum of products to a gate's Q3.12; TFLite computes it in float32."""
    return float(np.float32(weights.scale[0]) * np.float32(x.scale[0]) / np.float32(2.0**-12))
