"""What a command reports: tables and lines, for a terminal, a pipe and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes:
        title: the line above it.
        columns: name -> "left" (words) or "right" (numbers).
        rows: a cell for each column.
        optional: the columns that a narrow terminal does not show; the first is the first to go.
    """

    title: str
    columns: dict[str, str]
    rows: list[list[str]]
    optional: Sequence[str] = ()

    def without(self, names: Sequence[str]) -> Table:
        """The table without some columns."""
        columns_left = [n for n, name in enumerate(self.columns) if name not in names]
        columns = {name: side for name, side in self.columns.items() if name not in names}
        return Table(self.title, columns, [[row[n] for n in columns_left] for row in self.rows], self.optional)

    def widths(self) -> list[int]:
        """Characters of each column, with its name."""
        return [max(map(len, cells)) for cells in zip(self.columns, *self.rows)]

    def plain(self) -> str:
        """The whole table in plain text: its title, then a line for each row, with two spaces between columns."""
        sides = list(zip(self.widths(), self.columns.values()))
        lines = [
            "  ".join(cell.ljust(width) if side == "left" else cell.rjust(width) for cell, (width, side) in zip(row, sides))
            for row in (list(self.columns), *self.rows)
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])


Report = list["Table | str"]
