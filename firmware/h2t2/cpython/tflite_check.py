# Checks a .tflite before any interpreter opens it: an interpreter follows each offset and index, and a damaged file ends the
# process. Here is the structure, as FlatBuffers' own verifier checks it; what the numbers mean is checked in tflite_meaning.py.
from pathlib import Path

from .tflite_flat import OUTSIDE, FlatFile
from .tflite_meaning import check_meaning

IDENTIFIER = b"TFL3"
_LINES = [line.partition(":") for line in Path(__file__).with_name("tflite_schema.txt").read_text().splitlines()]
# a table's fields and a union's tables, as the file's head describes them
SCHEMA = {name: content.split() for name, _, content in _LINES if name[0] != "#"}


def check(content: bytes) -> None:
    """Raise ValueError, saying what is wrong, unless `content` is a .tflite whose structure and meaning hold."""
    if content[4:8] != IDENTIFIER:
        raise ValueError("not a TensorFlow Lite model (no TFL3 identifier)")
    file = FlatFile(content)
    _Verifier(file).table(file.number(0), "Model")
    check_meaning(file)


class _Verifier:
    """Walks every table of a file. Each is visited once; the file's size bounds how many there can be."""

    def __init__(self, file: FlatFile) -> None:
        self.file = file
        self.visited: set[tuple[int, str]] = set()
        self.remaining = len(file.content) // 2 + 16

    def table(self, at: int, kind: str) -> None:
        """A table of a kind that the schema knows, and all that it refers to."""
        if (at, kind) in self.visited:
            return
        self.visited.add((at, kind))
        self._count(1)
        self._aligned(at, 4)
        vtable = at - self.file.number(at, "<i")
        self._aligned(vtable, 2)
        if self.file.number(vtable, "<H", 2) % 2:
            raise ValueError("a table of the kind %s is damaged" % kind)
        for index, content in enumerate(SCHEMA[kind]):
            field = self.file.field(at, index)
            if field and content != "_":
                self._field(at, index, field, content)
        if kind == "Buffer":
            self.file.outside(at)

    def _field(self, table: int, index: int, at: int, content: str) -> None:
        if content.isdigit():
            self._aligned(at, int(content))
            self.file.number(at + int(content) - 1, "<B", 1)
            return
        self._aligned(at, 4)
        if content == "s":
            start, count = self._vector(at, 1)
            if self.file.number(start + count, "<B", 1):
                raise ValueError("a text without an end")
        elif content[0] == "v":
            self._vector(at, int(content[1:]))
        elif content[0] == "*":
            start, count = self._vector(at, 4)
            for element in range(start, start + 4 * count, 4):
                self.table(element + self.file.number(element), content[1:])
        elif content[0] == "?":
            kinds = SCHEMA[content]
            number = self.file.scalar(table, index - 1, "<B")
            if 0 < number <= len(kinds):  # a newer schema may have more: nothing here reads them
                self.table(at + self.file.number(at), kinds[number - 1])
        else:
            self.table(at + self.file.number(at), content)

    def _vector(self, at: int, size: int) -> tuple[int, int]:
        start, count = self.file.vector(at, size)
        self._aligned(start - 4, 4)  # FlatBuffers' verifier asks no more: int64 behind metadata may stand at 4 n
        if size == 4:
            self._count(count)
        return start, count

    def _aligned(self, at: int, size: int) -> None:
        if at % size:
            raise ValueError("a number at byte %d is not where one may be (damaged?)" % at)
        if at < 0:
            raise ValueError(OUTSIDE)

    def _count(self, number: int) -> None:
        self.remaining -= number
        if self.remaining < 0:
            raise ValueError("its tables refer to each other more often than a file of its size can")
