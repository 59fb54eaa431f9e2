# Checks what a .tflite means: that indices refer to something, that shapes, constants, scales and options are possible, and
# that each common operator (tflite_rules.py) has the right tensors. The structure must hold (tflite_check.py).
from __future__ import annotations

from .tflite_flat import FlatFile
from .tflite_parts import Operator, Tensor
from .tflite_rules import GRAPHS, RULES, check_operator


def check_meaning(file: FlatFile) -> None:
    """Raise ValueError, saying where and what, unless the numbers of a FlatFile whose structure holds make a model."""
    model = file.number(0)
    version = file.scalar(model, 0, "<I")
    if version != 3:
        raise ValueError("schema version %d: only 3 is known" % version)
    codes = [max(file.scalar(table, 0, "<b"), file.scalar(table, 3, "<i")) for table in file.tables(model, 1)]
    buffers = file.tables(model, 4)
    graphs = file.tables(model, 2)
    if not graphs:
        raise ValueError("a model without a graph")
    sizes = [len(file.tables(graph, 0)) for graph in graphs]
    _end([_graph(file, graph, codes, buffers, len(graphs)) for graph in graphs])
    for signature in file.tables(model, 7):
        number = file.scalar(signature, 4, "<I")
        if number >= len(graphs):
            raise ValueError("a signature refers to a graph that is not there")
        for end in file.tables(signature, 0) + file.tables(signature, 1):
            if file.scalar(end, 1, "<I") >= sizes[number]:
                raise ValueError("a signature refers to a tensor that is not there")
    for entry in file.tables(model, 6):
        if file.scalar(entry, 1, "<I") >= len(buffers):
            raise ValueError("its metadata refer to a buffer that is not there")


def _end(calls: list[set[int]]) -> None:
    """ValueError where graphs call each other in a circle; calls: of each the set of those it calls."""
    waiting = dict(enumerate(calls))
    while waiting:
        ending = [number for number, others in waiting.items() if not others & set(waiting)]
        if not ending:
            raise ValueError("its graphs call each other in a circle")
        for number in ending:
            del waiting[number]


def _graph(file: FlatFile, table: int, codes: list[int], buffers: list[int], graphs: int) -> set[int]:
    """Check one graph; the numbers of the graphs that it calls."""
    calls: set[int] = set()
    tensors = [Tensor(file, each, buffers) for each in file.tables(table, 0)]
    inputs, outputs = file.numbers(table, 1, "<i"), file.numbers(table, 2, "<i")
    for indices, words in ((inputs, "input"), (outputs, "output")):
        for n in indices:
            if not 0 <= n < len(tensors):
                raise ValueError("the graph's %s refers to a tensor that is not there" % words)
    if any(tensors[n].constant or tensors[n].variable for n in inputs):
        raise ValueError("the graph's input is a constant or a variable")
    computed = {n for n, tensor in enumerate(tensors) if tensor.constant or tensor.variable or not tensor.size}
    computed.update(inputs)
    for place, each in enumerate(file.tables(table, 3)):
        operator = None
        try:
            operator = Operator(file, each, tensors, codes, RULES)
            _order(operator, tensors, computed, set(inputs))
            for slot in GRAPHS.get(operator.code, ()):
                calls.add(operator.option(slot))
            if calls and not 0 <= min(calls) <= max(calls) < graphs:
                raise ValueError("it calls a graph that is not there")
            check_operator(operator)
        except ValueError as error:
            name = ", " + operator.name if operator else ""
            raise ValueError("operator %d%s: %s" % (place, name, error)) from None
    for n in outputs:
        if n not in computed:
            raise ValueError("the graph's output %s is never computed" % tensors[n].name)
    return calls


def _order(operator: Operator, tensors: list[Tensor], computed: set[int], inputs: set[int]) -> None:
    """Each tensor is computed before it is read, once, and no operator writes to a constant or to the graph's input."""
    for n in operator.indices[0]:
        if n >= 0 and n not in computed and operator.rule:  # an accelerator's own operator has memory of its own
            raise ValueError("its input %s is not computed before" % tensors[n].name)
    for n in operator.indices[1]:
        if n < 0:
            raise ValueError("an output is left out")
        if tensors[n].constant or tensors[n].variable or n in inputs or (n in computed and tensors[n].size):
            raise ValueError("its output %s is a constant, an input, or computed before" % tensors[n].name)
        computed.add(n)


def with_axes_inside(content: bytes) -> bytes:
    """The model with the axis of scales along which a bias has none as 0: older converters wrote its filter's, and newer
    interpreters refuse that. The structure must hold."""
    file = FlatFile(content)
    places = []
    for graph in file.tables(file.number(0), 2):
        for tensor in file.tables(graph, 0):
            quantisation = file.table(tensor, 4)
            at = file.field(quantisation, 6) if quantisation else 0
            if at and len(file.numbers(tensor, 0, "<i")) == 1 and file.number(at, "<i") > 0:
                places.append(at)
    if not places:
        return content
    changed = bytearray(content)
    for at in places:
        changed[at : at + 4] = bytes(4)
    return bytes(changed)
