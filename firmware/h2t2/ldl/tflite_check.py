# Checks that every offset of a .tflite stays inside the file, before the interpreter follows them: it does not, and a
# truncated model ends the process. Structure only; whether the operators run is the interpreter's to say.
from struct import unpack_from

# table -> {field: what it holds}; "*x" a vector of tables x, a number a vector of elements of so many bytes
_TABLES = {
    "model": {1: "*code", 2: "*graph", 3: 1, 4: "*buffer"},
    "code": {},
    "graph": {0: "*tensor", 1: 4, 2: 4, 3: "*operator", 4: 1},
    "tensor": {0: 4, 3: 1, 4: "quantization"},
    "quantization": {0: 4, 1: 4, 2: 4, 3: 8},
    "operator": {1: 4, 2: 4, 4: "options"},
    "options": {},
    "buffer": {0: 1},
}  # type: dict[str, dict]


class _File:
    def __init__(self, content):
        self.content = content

    def number(self, at, code="<I", size=4):
        if not 0 <= at <= len(self.content) - size:
            raise ValueError("an offset points outside the file (truncated?)")
        return unpack_from(code, self.content, at)[0]

    def field(self, table, index):
        """Where a table's field is, or 0 for an absent one."""
        vtable = table - self.number(table, "<i")
        size = self.number(vtable, "<H", 2)
        self.number(vtable + max(size, 4) - 2, "<H", 2)
        self.number(table + self.number(vtable + 2, "<H", 2) - 1, "<B", 1)
        if 4 + 2 * index + 2 > size:
            return 0
        offset = self.number(vtable + 4 + 2 * index, "<H", 2)
        return table + offset if offset else 0

    def vector(self, at, size):
        """(where its elements begin, how many) of the vector a field at `at` refers to."""
        start = at + self.number(at)
        count = self.number(start)
        if count:
            self.number(start + 4 + count * size - 1, "<B", 1)
        return start + 4, count

    def outside(self, buffer):
        """(where, how many) bytes of a buffer that lie behind the flatbuffer, as large ones may; (0, 0) of any other."""
        fields = [self.field(buffer, index) for index in (1, 2)]
        start, size = [self.number(at, "<Q", 8) if at else 0 for at in fields]
        if start < 2:  # how the schema says that there are none
            return 0, 0
        if size:
            self.number(start + size - 1, "<B", 1)
        return start, size

    def walk(self, table, kind):
        self.field(table, 0)
        if kind == "buffer":
            self.outside(table)
        for index, holds in _TABLES[kind].items():
            at = self.field(table, index)
            if not at:
                continue
            if isinstance(holds, int):
                self.vector(at, holds)
            elif holds[0] == "*":
                start, count = self.vector(at, 4)
                for element in range(start, start + 4 * count, 4):
                    self.walk(element + self.number(element), holds[1:])
            else:
                self.walk(at + self.number(at), holds)

    def count(self, table, index):
        at = self.field(table, index)
        return self.vector(at, 4)[1] if at else 0

    def indices(self, table, index, limit, what):
        at = self.field(table, index)
        if at:
            start, count = self.vector(at, 4)
            for element in range(start, start + 4 * count, 4):
                if not -1 <= self.number(element, "<i") < limit:
                    raise ValueError("%s refers to something that is not there" % what)


def check(content: bytes) -> None:
    """Raise ValueError, saying what is wrong, unless `content` (bytes) is a .tflite whose offsets and indices hold."""
    if content[4:8] != b"TFL3":
        raise ValueError("not a TensorFlow Lite model (no TFL3 identifier)")
    file = _File(content)
    model = file.number(0)
    file.walk(model, "model")
    codes = file.count(model, 1)
    buffers = file.count(model, 4)
    graphs = file.field(model, 2)
    start, count = file.vector(graphs, 4) if graphs else (0, 0)
    if not count:
        raise ValueError("a model without a graph")
    for element in range(start, start + 4 * count, 4):
        graph = element + file.number(element)
        tensors = file.count(graph, 0)
        file.indices(graph, 1, tensors, "the graph's input")
        file.indices(graph, 2, tensors, "the graph's output")
        for field, limits in ((0, None), (3, tensors)):
            at = file.field(graph, field)
            first, n = file.vector(at, 4) if at else (0, 0)
            for part in range(first, first + 4 * n, 4):
                table = part + file.number(part)
                if field == 0:
                    at = file.field(table, 2)
                    if at and file.number(at) >= buffers:
                        raise ValueError("a tensor refers to a buffer that is not there")
                else:
                    at = file.field(table, 0)
                    if (file.number(at) if at else 0) >= codes:
                        raise ValueError("an operator refers to a code that is not there")
                    file.indices(table, 1, limits, "an operator's input")
                    file.indices(table, 2, limits, "an operator's output")
