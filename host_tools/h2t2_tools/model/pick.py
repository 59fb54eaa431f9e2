"""`h2t2 inspect --pick`: one input and one output of a .tflite, since a device has one sample and one decision."""

from pathlib import Path
from typing import Any

import numpy as np

from ..common.errors import UserError
from .tflite import Graph, Tensor, load
from .tflite_edit import with_ends


def pick(
    path: Path, source: str | None, output: str | None, fixed: dict[str, float], *, logits: bool = False
) -> tuple[bytes, dict[str, Any]]:
    """Reduce a model to one input and one output.

    Args:
        path: The .tflite.
        source: The input's name, or its number among the inputs; None where there is one.
        output: The same of the output.
        fixed: Constants for the other inputs in the model's own units, by name or number (0).
        logits: The output has logits, of which a sigmoid makes scores.

    Returns:
        (the reduced model, the report).

    Raises:
        UserError: A name is unknown or missing, the output does not depend on the input, or the file is no model.
    """
    graph = load(path)
    x = _select(graph, graph.inputs, source, "input")
    y = _select(graph, graph.outputs, output, "output")
    values = {_select(graph, graph.inputs, name, "input").index: value for name, value in fixed.items()}
    if x.index in values:
        raise UserError(f"{path}: input {x.name} is the sample: it cannot be fixed as well")
    operators = needed_operators(graph, y.index)
    used = {t for n in operators for t in graph.operators[n].inputs}
    if x.index not in used:
        raise UserError(f"{path}: output {y.name} does not depend on input {x.name}")
    if logits and y.dtype != "float32":
        raise UserError(f"{path}: output {y.name} is {y.dtype}: --logits is for float models")
    constants = {n: _constant(graph.tensors[n], values.get(n, 0.0)) for n in graph.inputs if n != x.index and n in used}
    report = {
        "model": str(path),
        "input": x.name,
        "output": y.name,
        "fixed": {graph.tensors[n].name: values.get(n, 0.0) for n in constants},
        "operators": len(operators),
        "operators_left_out": len(graph.operators) - len(operators),
    }
    return with_ends(path.read_bytes(), x.index, y.index, constants, operators, logits), report


def ends(graph: Graph, tensors: tuple[int, ...]) -> str:
    """Inputs or outputs with their numbers, names and shapes."""
    return ", ".join(f"{n}: {graph.tensors[t].name} {list(graph.tensors[t].shape)}" for n, t in enumerate(tensors))


def _select(graph: Graph, tensors: tuple[int, ...], name: str | None, option: str) -> Tensor:
    if name is None:
        if len(tensors) == 1:
            return graph.tensors[tensors[0]]
        raise UserError(f"{graph.path}: {len(tensors)} {option}s: say which, --{option} NAME ({ends(graph, tensors)})")
    for n, tensor in enumerate(tensors):
        if name in (str(n), graph.tensors[tensor].name):
            return graph.tensors[tensor]
    raise UserError(f"{graph.path}: no {option} {name}; there are {ends(graph, tensors)}")


def _constant(tensor: Tensor, value: float) -> np.ndarray:
    """A tensor whose every number stands for this value."""
    dtype = np.dtype(tensor.dtype if tensor.dtype not in ("resource", "unknown") else "int8")
    if dtype.kind in "iu" and len(tensor.scale):
        limits = np.iinfo(dtype)
        value = min(max(round(value / float(tensor.scale[0])) + int(tensor.zero[0]), limits.min), limits.max)
    return np.full(tensor.shape, value, dtype)


def needed_operators(graph: Graph, output: int) -> list[int]:
    """Numbers of the operators that the output needs, and of those that assign a variable."""
    needed: set[int] = {n for n, o in enumerate(graph.operators) if not o.outputs}
    tensors = {output} | {t for n in needed for t in graph.operators[n].inputs}
    for n in reversed(range(len(graph.operators))):
        if n in needed or tensors & set(graph.operators[n].outputs):
            needed.add(n)
            tensors |= set(graph.operators[n].inputs)
    return sorted(needed)
