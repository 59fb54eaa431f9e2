"""`h2t2 bench`: one claim per file, both of its sides measured in one run.

Every file has TITLE; `measure(progress, ...)`, whose result JSON can hold; `report(measured)`, which makes tables and lines for
people; and, where a goal must hold, `broken(measured)`, which returns a sentence for each goal that was missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...common.report import Report, Table

Row = dict[str, Any]
Progress = Callable[[str], None]
Cell = Callable[[Row], str]


def cell(key: str, form: str = "") -> Cell:
    """Format one value of a row.

    Args:
        key: the value's key in the row.
        form: as `format` takes it.

    Returns:
        A function from a row to the text of a cell: "-" where the row has no such value.
    """
    return lambda row: "-" if row.get(key) is None else format(row[key], form)


def table(title: str, rows: Iterable[Row], columns: dict[str, Cell], words: int = 1) -> Table:
    """A table with a line for each row. A narrow terminal hides the last columns.

    Args:
        columns: header -> the cell of a row.
        words: the first columns hold words and are aligned to the left, the others hold numbers.
    """
    sides = {header: "left" if n < words else "right" for n, header in enumerate(columns)}
    return Table(title, sides, [[text(row) for text in columns.values()] for row in rows], [*columns][:0:-1])


def with_goals(tables: list[Table], missed: list[str]) -> Report:
    """Tables, followed by the goals that were missed or by the sentence that all were met."""
    return [*tables, *(missed or ["every goal is met"])]
