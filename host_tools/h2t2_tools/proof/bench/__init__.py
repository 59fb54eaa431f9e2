"""`h2t2 bench`: one claim per file. One run measures both sides of a claim.

Every file has TITLE; `measure(progress, ...)`, whose result JSON can hold; `report(measured)`, which makes tables and lines for
people; and, if it has a goal, `broken(measured)`, which returns a sentence for each missed goal.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ...common.report import Report, Table

Row = dict[str, Any]
Progress = Callable[[str], None]
Cell = Callable[[Row], str]


def cell(key: str, form: str = "") -> Cell:
    """Return a function that formats one value of a row.

    Args:
        key: Key of the value.
        form: Format, as `format` takes it.

    Returns:
        A function from a row to the text of a cell: "-" if the row has no such value.
    """
    return lambda row: "-" if row.get(key) is None else format(row[key], form)


def table(title: str, rows: Iterable[Row], columns: dict[str, Cell], words: int = 1) -> Table:
    """Return a table with a line for each row. A narrow terminal hides the last columns.

    Args:
        title: Title of the table.
        rows: The rows.
        columns: Header to the cell of a row.
        words: The first columns hold words and are left-aligned; the others hold numbers.
    """
    sides = {header: "left" if n < words else "right" for n, header in enumerate(columns)}
    return Table(title, sides, [[text(row) for text in columns.values()] for row in rows], [*columns][:0:-1])


def with_goals(tables: list[Table], missed: list[str]) -> Report:
    """Append the missed goals to the tables, or the sentence that all goals were met."""
    return [*tables, *(missed or ["every goal is met"])]
