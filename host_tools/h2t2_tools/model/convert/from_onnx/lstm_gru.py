"""LSTM and GRU over a sequence: an LSTM is one operator, a GRU as many steps as the sequence has."""

import numpy as np

from ...operators.recurrent import TANH
from .network import Node
from .translation import Translation, Value

REMEDY = "export one sequence of fixed length, from a state of 0, as nn.LSTM and nn.GRU do by default"


def recurrent(node: Node, into: Translation) -> None:
    """LSTM and GRU, in one direction or both."""
    layer = {"LSTM": _lstm, "GRU": _gru}[node.kind]
    x = into.in_onnx_order(into.value(node))
    times, batch, inputs = x.shape
    _check(node, into, batch)
    cells, direction = int(node.attributes["hidden_size"]), node.attributes.get("direction", "forward")
    sequence = into.reshape(x.tensor, (1, times, inputs))
    weights = [into.needed_constant(node, place, "weights") for place in (1, 2)]
    bias = into.constant(node, 3)
    both = [weights[0], weights[1], np.zeros((len(weights[0]), 2 * weights[0].shape[1])) if bias is None else bias]
    read_whole, read_last = (name != "" and into.network.uses[name] > 0 for name in (*node.outputs[:2], "")[:2])
    outputs, last = [], []
    for n in range(len(weights[0])):
        backwards = direction == "reverse" or n == 1
        read = _reversed(sequence, (1, times, inputs), into) if backwards else sequence
        output = layer(node, into, read, *(numbers[n].astype(np.float32) for numbers in both))
        if read_last:
            last.append(into.slice(output, (0, times - 1, 0), (1, 1, cells)))
        if read_whole:
            outputs.append(_reversed(output, (1, times, cells), into) if backwards else output)
    if outputs:
        shape = times, len(outputs), 1, cells
        whole = into.joined(outputs, (1, times, len(outputs) * cells), 2)
        into.values[node.outputs[0]] = Value(into.reshape(whole, shape), shape)
    if last:
        final = len(last), 1, cells
        into.values[node.outputs[1]] = Value(into.reshape(into.joined(last, (1, len(last), cells), 1), final), final)


def _check(node: Node, into: Translation, batch: int) -> None:
    """Raise the error of a node that is no plain layer."""
    states = [into.network.constants.get(name) for name in (*node.inputs[4:], *[""])[:4] if name]
    used = {name for each in into.network.nodes for name in each.inputs} | {into.network.output}
    if batch != 1 or any(state is None or state.any() for state in states) or set(node.outputs[2:]) & used - {""}:
        raise node.refuse("with a batch, a first state or the state of its cells", REMEDY)
    if node.attributes.get("layout", 0) or "clip" in node.attributes or "activations" in node.attributes:
        raise node.refuse("with options", REMEDY)


def _reversed(tensor: int, shape: tuple[int, ...], into: Translation) -> int:
    """The steps from the last to the first."""
    return into.emit("GATHER", [tensor, into.array(np.arange(shape[1])[::-1].astype(np.int32))], shape, axis=1)


def _lstm(node: Node, into: Translation, x: int, w: np.ndarray, r: np.ndarray, bias: np.ndarray) -> int:
    """One operator. ONNX orders the gates as input, output, forget, cell; .tflite as input, forget, cell, output."""
    cells = r.shape[1]
    gates = [slice(n * cells, (n + 1) * cells) for n in (0, 2, 3, 1)]
    added = bias[: 4 * cells] + bias[4 * cells :]
    tensors = [into.array(numbers[gate]) for numbers in (w, r) for gate in gates]
    biases = [into.array(added[gate]) for gate in gates]
    states = [into.variable((1, cells)) for _ in range(2)]
    inputs = [x, *tensors, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
    times = into.shape_of(x)[1]
    return into.emit("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (1, times, cells), fused=TANH, cell_clip=0.0, time_major=False)


def _gru(node: Node, into: Translation, x: int, w: np.ndarray, r: np.ndarray, bias: np.ndarray) -> int:
    """A GRU step by step. ONNX orders the gates as update, reset, hidden."""
    if not node.attributes.get("linear_before_reset", 0):
        raise node.refuse("that resets before it multiplies", "export nn.GRU, which resets behind")
    cells, times = r.shape[1], into.shape_of(x)[1]
    gates, hidden = slice(0, 2 * cells), slice(2 * cells, 3 * cells)
    of_x, of_h = bias[: 3 * cells], bias[3 * cells :]

    def dense(tensor: int, weights: int, added: int, rows: int, outputs: int) -> int:
        shape = (1, rows, outputs) if rows > 1 else (1, outputs)
        return into.emit("FULLY_CONNECTED", [tensor, weights, added], shape, fused=0, keep_num_dims=rows > 1)

    def pair(name: str, a: int, b: int, size: int = cells) -> int:
        return into.emit(name, [a, b], (1, size), fused=0)

    forward = [dense(x, into.array(w[part]), into.array(of_x[part] + (of_h[part] if part is gates else 0)), times, size)
               for part, size in ((gates, 2 * cells), (hidden, cells))]  # fmt: skip
    constants = [
        into.array(r[gates]),
        into.array(r[hidden]),
        into.array(of_h[hidden]),
        into.array(np.zeros(2 * cells, np.float32)),
    ]
    h, outputs = -1, []
    for t in range(times):
        rows = [
            into.reshape(into.slice(tensor, (0, t, 0), (1, 1, size)), (1, size))
            for tensor, size in zip(forward, (2 * cells, cells))
        ]
        added = rows[0] if h < 0 else pair("ADD", rows[0], dense(h, constants[0], constants[3], 1, 2 * cells), 2 * cells)
        both = into.emit("LOGISTIC", [added], (1, 2 * cells))
        update, reset = (into.slice(both, (0, at), (1, cells)) for at in (0, cells))
        of_state = into.array(of_h[hidden][None]) if h < 0 else dense(h, constants[1], constants[2], 1, cells)
        new = into.emit("TANH", [pair("ADD", rows[1], pair("MUL", reset, of_state))], (1, cells))
        kept = pair("MUL", update, new) if h < 0 else pair("MUL", update, pair("SUB", h, new))
        h = pair("SUB", new, kept) if h < 0 else pair("ADD", new, kept)
        outputs.append(into.reshape(h, (1, 1, cells)))
    return into.joined(outputs, (1, times, cells), 1)
