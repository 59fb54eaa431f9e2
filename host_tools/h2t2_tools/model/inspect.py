"""`h2t2 inspect`: what a .tflite holds, what it would take on a board, and what stands against it."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.quantise import LOG_QUANTISATION

from ..common.errors import UserError
from .bundle import write
from .footprint import on_a_board
from .plan import WEIGHTED, NotForBoards, features_tensor, plan, trimmed
from .tflite import Graph, Operator, Tensor, load

RECURRENT = ("UNIDIRECTIONAL_SEQUENCE_LSTM",)


def inspect(path: Path) -> dict[str, Any]:
    """The report; `board` holds what a board needs, or None where `problems` say why there can be no bundle."""
    graph = load(path)
    problems: list[str] = []
    board = None
    try:
        board = on_a_board(write(plan(graph)))
    except NotForBoards as error:
        problems = error.reasons
    except UserError as error:
        problems = [str(error).removeprefix(f"{path}: ")]
    features = features_tensor(graph)
    weights = {n for o in graph.operators if o.name in (*WEIGHTED, *RECURRENT) for n in o.inputs[1:]}
    constants = [tensor for tensor in graph.tensors if tensor.data is not None]
    return {
        "model": str(path),
        "file_bytes": graph.file_bytes,
        "operators": [
            {"name": name, "version": version, "count": count}
            for (name, version), count in Counter((o.label, o.version) for o in graph.operators).items()
        ],
        "tensors": [_end(tensor) for tensor in graph.tensors],
        "parameters": sum(t.size for t in constants if t.index in weights),
        "constant_bytes": sum(t.bytes for t in constants),
        "multiply_accumulates": sum(_macs(graph, o) for o in graph.operators),
        "inputs": [_end(graph.tensors[n]) for n in graph.inputs],
        "outputs": [_end(graph.tensors[n]) for n in graph.outputs],
        "board": board,
        "problems": problems,
        "policy": [_feeds(graph.tensors[n]) for n in trimmed(graph).outputs if n != features],
        "features": graph.tensors[features].size if features >= 0 else 0,
    }


def _macs(graph: Graph, operator: Operator) -> int:
    """Multiply-accumulates of an operator that has weights; 0 of any other."""
    if operator.name in RECURRENT:
        x, weights = (graph.tensors[n] for n in operator.inputs[:2])
        cells, inputs = weights.shape
        return x.size // inputs * 4 * cells * (inputs + cells)
    if operator.name not in WEIGHTED:
        return 0
    weights, output = graph.tensors[operator.inputs[1]], graph.tensors[operator.outputs[0]]
    if operator.name == "FULLY_CONNECTED":
        return weights.size * (output.size // weights.shape[0])
    taps = weights.shape[1] * weights.shape[2]
    return output.size * taps * (weights.shape[3] if operator.name == "CONV_2D" else 1)


def _end(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "scale": [float(s) for s in tensor.scale],
        "zero_point": [int(z) for z in tensor.zero],
    }


def _feeds(tensor: Tensor) -> str:
    """Whether an output can be the policy's score, and if not why."""
    if tensor.dtype not in ("int8", "uint8") or len(tensor.scale) != 1:
        return f"no: {tensor.name} is {tensor.dtype}; the policy reads 8 bits (convert with full integer quantisation)"
    scale, zero = float(tensor.scale[0]), int(tensor.zero[0])
    zero -= 128 * (tensor.dtype == "uint8")
    if (scale, zero) == LOG_QUANTISATION:
        return f"yes: {tensor.size} class scores, the exponentials of log-probabilities"
    low, high = scale * (-128 - zero), scale * (127 - zero)
    if low < -0.02 or high > 1.05 or high < 0.9:
        return f"no: it spans {low:.3g} to {high:.3g}, a score spans 0 to 1 (end the model with softmax or logistic)"
    count = int(np.prod(tensor.shape))
    exact = "" if abs(scale - 1 / 256) < 1e-9 and zero == -128 else f" (scale {scale:.6g}, zero point {zero})"
    return f"yes: {count} class score{'s' if count > 1 else ''} in [0, 1]{exact}"
