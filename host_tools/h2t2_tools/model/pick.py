"""`h2t2 pick`: of a .tflite with several inputs or outputs one of each, since a device has one sample and one decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..common.errors import UserError
from .tflite import Graph, Tensor, load
from .tflite_write import with_ends


def pick(path: Path, source: str | None, output: str | None, fixed: dict[str, float]) -> tuple[bytes, dict[str, Any]]:
    """(the model with that input and that output alone, what was done).

    source, output: a tensor's name, or its number among the inputs or outputs; None where there is one. fixed: what the other
    inputs are for good, in the model's own units, by name or number; 0 where nothing is said. UserError for a name that is not
    there, one that must be given, an output that the input does not reach, or a file that is no model.
    """
    graph = load(path)
    x = _chosen(graph, graph.inputs, source, "input")
    y = _chosen(graph, graph.outputs, output, "output")
    values = {_chosen(graph, graph.inputs, name, "input").index: value for name, value in fixed.items()}
    if x.index in values:
        raise UserError(f"{path}: input {x.name} is the sample: it cannot be fixed as well")
    rest = {n: _constant(graph.tensors[n], values.get(n, 0.0)) for n in graph.inputs if n != x.index}
    wanted = _needed(graph, y.index)
    if not any(x.index in graph.operators[n].inputs for n in wanted):
        raise UserError(f"{path}: output {y.name} does not depend on input {x.name}")
    used = {t for n in wanted for t in graph.operators[n].inputs}
    report = {
        "model": str(path),
        "input": x.name,
        "output": y.name,
        "fixed": {graph.tensors[n].name: values.get(n, 0.0) for n in rest if n in used},
        "operators": len(wanted),
        "operators_left_out": len(graph.operators) - len(wanted),
    }
    return with_ends(path.read_bytes(), x.index, y.index, {n: data for n, data in rest.items() if n in used}, wanted), report


def ends(graph: Graph, tensors: tuple[int, ...]) -> str:
    """Inputs or outputs in words, to choose from."""
    return ", ".join(f"{n}: {graph.tensors[t].name} {list(graph.tensors[t].shape)}" for n, t in enumerate(tensors))


def _chosen(graph: Graph, among: tuple[int, ...], name: str | None, what: str) -> Tensor:
    if name is None:
        if len(among) == 1:
            return graph.tensors[among[0]]
        raise UserError(f"{graph.path}: {len(among)} {what}s: say which, --{what} NAME ({ends(graph, among)})")
    for n, tensor in enumerate(among):
        if name in (str(n), graph.tensors[tensor].name):
            return graph.tensors[tensor]
    raise UserError(f"{graph.path}: no {what} {name}; there are {ends(graph, among)}")


def _constant(tensor: Tensor, value: float) -> np.ndarray:
    """An input that is one real number for good, as the tensor holds it."""
    dtype = np.dtype(tensor.dtype if tensor.dtype not in ("resource", "unknown") else "int8")
    if dtype.kind in "iu" and len(tensor.scale):
        limits = np.iinfo(dtype)
        value = min(max(round(value / float(tensor.scale[0])) + int(tensor.zero[0]), limits.min), limits.max)
    return np.full(tensor.shape, value, dtype)


def _needed(graph: Graph, output: int) -> list[int]:
    """Numbers of the operators that the output needs; with them whatever begins or changes a variable."""
    wanted: set[int] = {n for n, o in enumerate(graph.operators) if not o.outputs}
    tensors = {output} | {t for n in wanted for t in graph.operators[n].inputs}
    for n in reversed(range(len(graph.operators))):
        if n in wanted or tensors & set(graph.operators[n].outputs):
            wanted.add(n)
            tensors |= set(graph.operators[n].inputs)
    return sorted(wanted)
