# Reads a FlatBuffer: tables, their fields, vectors, strings, each within the file. CPython only.
from __future__ import annotations

from struct import calcsize, unpack_from
from typing import Any

OUTSIDE = "an offset points outside the file (truncated?)"


class FlatFile:
    """content: bytes of the whole file. Every method raises ValueError where what it reads lies outside of them."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def number(self, at: int, code: str = "<I", size: int = 4) -> Any:
        """The number at a place; code: struct's."""
        if not 0 <= at <= len(self.content) - size:
            raise ValueError(OUTSIDE)
        return unpack_from(code, self.content, at)[0]

    def field(self, table: int, index: int) -> int:
        """Where a table's field is, or 0 for an absent one."""
        vtable = table - self.number(table, "<i")
        size = self.number(vtable, "<H", 2)
        self.number(vtable + max(size, 4) - 2, "<H", 2)
        self.number(table + self.number(vtable + 2, "<H", 2) - 1, "<B", 1)
        if 4 + 2 * index + 2 > size:
            return 0
        offset = self.number(vtable + 4 + 2 * index, "<H", 2)
        return table + offset if offset else 0

    def vector(self, at: int, size: int) -> tuple[int, int]:
        """(where its elements begin, how many) of the vector of elements of `size` bytes that a field at `at` refers to."""
        start = at + self.number(at)
        count = self.number(start)
        if count:
            self.number(start + 4 + count * size - 1, "<B", 1)
        return start + 4, count

    def outside(self, buffer: int) -> tuple[int, int]:
        """(where, how many) bytes of a buffer that lie behind the flatbuffer, as large ones may; (0, 0) of any other."""
        start, size = [self.scalar(buffer, index, "<Q", 0) for index in (1, 2)]
        if start < 2:  # how the schema says that there are none
            return 0, 0
        if size:
            self.number(start + size - 1, "<B", 1)
        return start, size

    def scalar(self, table: int, index: int, code: str, default: int = 0) -> Any:
        """A field that is a number; default: where it is absent."""
        at = self.field(table, index)
        return self.number(at, code, calcsize(code)) if at else default

    def table(self, table: int, index: int) -> int:
        """Where the table that a field refers to is, or 0."""
        at = self.field(table, index)
        return at + self.number(at) if at else 0

    def tables(self, table: int, index: int) -> list[int]:
        """Where each table of a field's vector is."""
        at = self.field(table, index)
        start, count = self.vector(at, 4) if at else (0, 0)
        return [element + self.number(element) for element in range(start, start + 4 * count, 4)]

    def numbers(self, table: int, index: int, code: str) -> tuple[Any, ...]:
        """A field's vector of numbers, as a tuple."""
        at = self.field(table, index)
        start, count = self.vector(at, calcsize(code)) if at else (0, 0)
        return unpack_from("<%d%s" % (count, code[-1]), self.content, start) if count else ()

    def text(self, table: int, index: int) -> str:
        """A field's string."""
        at = self.field(table, index)
        start, count = self.vector(at, 1) if at else (0, 0)
        return bytes(self.content[start : start + count]).decode("utf-8", "replace")
