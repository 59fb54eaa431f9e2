"""What a model keeps from one inference to the next: its variables, what they hold at first, and who reads and writes them."""

from dataclasses import replace

import numpy as np

from .operators import SAME_BYTES
from .operators.step import as_bytes
from .tflite import Graph, Operator

ACCESS = ("READ_VARIABLE", "ASSIGN_VARIABLE")
SET_UP = ("VAR_HANDLE", "CALL_ONCE")  # they name a variable and begin it: an inference skips them


def with_state(graph: Graph) -> tuple[Graph, dict[int, bytes]]:
    """Replace every variable by a tensor.

    A variable that nothing begins stays: a board cannot run it. A read becomes a RESHAPE, which copies nothing, where the
    variable is written only after the last use of the value.

    Returns: (the graph, tensor -> the board's bytes of it at first).
    """
    first = _initial_values(graph)
    names = {o.outputs[0]: o.options["name"] for o in graph.operators if o.name == "VAR_HANDLE"}
    tensors, operators = list(graph.tensors), []
    places: dict[str, int] = {}
    states: dict[int, bytes] = {}
    for n, operator in enumerate(graph.operators):
        name = names.get(operator.inputs[0]) if operator.name in ACCESS else None
        if operator.name in SET_UP:
            continue
        if name is None or name not in first:
            operators.append(operator)
            continue
        reads = operator.name == "READ_VARIABLE"
        held = graph.tensors[operator.outputs[0] if reads else operator.inputs[1]]
        if name not in places:
            places[name] = len(tensors)
            tensors.append(replace(held, index=len(tensors), name=name, data=None))
            states[places[name]] = as_bytes(first[name])
        if held.size != first[name].size:
            raise ValueError(f"variable {name} of {first[name].shape} is held as {held.shape}")
        ends = (places[name], held.index) if reads else (held.index, places[name])
        kind = "RESHAPE" if reads and _unwritten(graph, n) else operator.name
        operators.append(Operator(kind, 1, ends[:1], ends[1:], {}))
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators)), states


def _initial_values(graph: Graph) -> dict[str, np.ndarray]:
    """Variable -> the constant of int8 or uint8 that a CALL_ONCE assigns to it."""
    values = {}
    for call in (o for o in graph.operators if o.name == "CALL_ONCE"):
        number = call.options["graph"]
        if not 1 <= number <= len(graph.subgraphs):
            raise ValueError(f"CALL_ONCE of graph {number}: there are {1 + len(graph.subgraphs)}")
        begin = graph.subgraphs[number - 1]
        names = {o.outputs[0]: o.options["name"] for o in begin.operators if o.name == "VAR_HANDLE"}
        for operator in (o for o in begin.operators if o.name == "ASSIGN_VARIABLE"):
            value = begin.tensors[operator.inputs[1]]
            if value.data is not None and value.dtype in ("int8", "uint8") and operator.inputs[0] in names:
                values[names[operator.inputs[0]]] = value.data
    return values


def _unwritten(graph: Graph, at: int) -> bool:
    """Whether operator `at` reads a variable that is written only after the last use of the value."""
    handle, aliases = graph.operators[at].inputs[0], {graph.operators[at].outputs[0]}
    names = {o.outputs[0]: o.options["name"] for o in graph.operators if o.name == "VAR_HANDLE"}
    writes, last = [], at
    for n, operator in enumerate(graph.operators[at + 1 :], at + 1):
        if operator.name == "ASSIGN_VARIABLE" and names.get(operator.inputs[0]) == names[handle]:
            writes.append(n)
        if aliases & set(operator.inputs):
            last = n
            if operator.name in SAME_BYTES:
                aliases.update(operator.outputs)
    return not aliases & set(graph.outputs) and not any(n < last for n in writes)
