# Checks what a .tflite means: that indices refer to something, that shapes, constants, scales and options are possible, and
# that each common operator (tflite_rules.py) has the right tensors. The structure must hold (tflite_check.py).
from __future__ import annotations

from math import isfinite
from typing import Any

from .tflite_flat import FlatFile
from .tflite_rules import GRAPHS, RULES, check_operator, type_name

# type -> bits of a number, and struct's code of those that rules read; what has no entry is of no fixed size
BITS = {
    0: 32,
    1: 16,
    2: 32,
    3: 8,
    4: 64,
    6: 8,
    7: 16,
    8: 64,
    9: 8,
    10: 64,
    11: 128,
    12: 64,
    15: 32,
    16: 16,
    17: 4,
    18: 16,
    19: 2,
}
BITS.update({20: 4, 21: 8, 22: 8})
READ = {2: "i", 4: "q"}
TYPES = 23
RANGES = {3: (0, 255), 7: (-32768, 32767), 9: (-128, 127)}  # of zero points
AXES = 8
LARGEST = 2**31  # bytes of a tensor


class Tensor:
    """shape: as stored; sizes: the same, None along an axis whose size the model leaves open; open: whether it leaves any.

    values: the numbers of a small constant of int32 or int64.
    """

    def __init__(self, file: FlatFile, table: int, buffers: list[int]) -> None:
        self.name = file.text(table, 3) or "?"
        self.type = file.scalar(table, 1, "<b")
        self.variable = bool(file.scalar(table, 5, "<b"))
        self.shape = file.numbers(table, 0, "<i")
        signature = file.numbers(table, 7, "<i")
        if len(signature) != len(self.shape):
            signature = self.shape
        self.sizes = [None if min(pair) < 0 else pair[0] for pair in zip(self.shape, signature)]
        self.open = None in self.sizes
        self.values: list[int] | None = None
        number = file.scalar(table, 2, "<I")
        if number >= len(buffers):
            raise ValueError("tensor %s refers to a buffer that is not there" % self.name)
        self.constant = self._data(file, file.table(table, 6), buffers[number])
        self.scales: Any = ()
        self.zeros: Any = ()
        quantisation = file.table(table, 4)
        if quantisation:
            self._quantisation(file, quantisation)

    def _data(self, file: FlatFile, sparsity: int, buffer: int) -> bool:
        """Whether it is a constant. ValueError where its bytes do not fill its shape."""
        if not 0 <= self.type < TYPES or len(self.shape) > AXES or min(self.shape, default=0) < -1:
            raise ValueError("tensor %s: %s, shape %s" % (self.name, type_name(self), list(self.shape)))
        size = 1
        for n in self.shape:
            size *= max(n, 1)
        self.size = 0 if 0 in self.shape else size
        bits = BITS.get(self.type, 0)
        if size * bits > 8 * LARGEST:
            raise ValueError("tensor %s: shape %s is too large" % (self.name, list(self.shape)))
        start, count = file.outside(buffer)
        if not count:
            at = file.field(buffer, 0)
            start, count = file.vector(at, 1) if at else (0, 0)
        if not count:
            return False
        if bits and not sparsity and count != (self.size * bits + 7) // 8:
            words = "tensor %s: %d bytes of data do not fill the shape %s" % (self.name, count, list(self.shape))
            raise ValueError("%s of %s" % (words, type_name(self)))
        if self.type in READ and self.size <= 64:
            code = READ[self.type]
            self.values = [file.number(start + n * bits // 8, "<" + code, bits // 8) for n in range(self.size)]
        return True

    def _quantisation(self, file: FlatFile, table: int) -> None:
        self.scales, self.zeros = file.numbers(table, 2, "<f"), file.numbers(table, 3, "<q")
        axis = file.scalar(table, 6, "<i")
        if len(self.zeros) not in (0, 1, len(self.scales)):
            raise ValueError("tensor %s has %d scales and %d zero points" % (self.name, len(self.scales), len(self.zeros)))
        for scale in self.scales:
            if not isfinite(scale) or scale < 0:
                raise ValueError("tensor %s has a scale of %r" % (self.name, scale))
        low, high = RANGES.get(self.type, (-(2**31), 2**31 - 1))
        if self.scales and (min(self.zeros, default=0) < low or max(self.zeros, default=0) > high):
            raise ValueError("tensor %s has a zero point outside %d..%d" % (self.name, low, high))
        if len(self.scales) > 1 and not self.open:
            if len(self.shape) == 1:
                axis = 0  # of a bias older converters write its filter's
            if not 0 <= axis < len(self.shape) or self.shape[axis] != len(self.scales):
                words = "tensor %s has %d scales along axis %d of" % (self.name, len(self.scales), axis)
                raise ValueError("%s %s" % (words, list(self.shape)))


class Operator:
    """inputs, outputs: the tensors, None for one left out; option(): a field of its options."""

    def __init__(self, file: FlatFile, table: int, tensors: list[Tensor], codes: list[int]) -> None:
        number = file.scalar(table, 0, "<I")
        if number >= len(codes):
            raise ValueError("an operator refers to a code that is not there")
        self.code = codes[number]
        self.rule = RULES.get(self.code)
        self.name = self.rule.name if self.rule else "code %d" % self.code
        self.indices = [file.numbers(table, field, "<i") for field in (1, 2, 8)]
        for indices, words in zip(self.indices, ("input", "output", "intermediate")):
            for n in indices:
                if not -1 <= n < len(tensors):
                    raise ValueError("an %s refers to a tensor that is not there" % words)
        ends = [[tensors[n] if n >= 0 else None for n in indices] for indices in self.indices[:2]]
        self.inputs: list[Any] = ends[0]
        self.outputs: list[Any] = ends[1]
        self.kind = file.scalar(table, 3, "<B")
        self._file = file
        options = self.rule.options if self.rule else 0
        self._options = file.table(table, 4) if options in (0, self.kind) else 0  # TFLite ignores those of another kind

    def option(self, slot: int, code: str = "<i", default: int = 0) -> Any:
        """A field of its options; default: where it is absent, or they are."""
        return self._file.scalar(self._options, slot, code, default) if self._options else default


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
            operator = Operator(file, each, tensors, codes)
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
