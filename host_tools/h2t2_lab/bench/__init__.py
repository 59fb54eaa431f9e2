"""`h2t2-lab bench`: one claim per file. One run measures both sides of a claim.

Every file has TITLE and the functions that command_line.py describes: measure(), report() and, if it has a goal, broken().
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from h2t2_tools.common.fields import DAY_S, Duration
from h2t2_tools.common.report import Report, Table

Row = dict[str, Any]
Progress = Callable[[str], None]
Cell = Callable[[Row], str]
Time = Annotated[Duration, Field(gt=0, le=DAY_S)]


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


@dataclass(frozen=True)
class Goal:
    """A limit of what was measured.

    Attributes:
        subject: Whose limit it is, in words.
        measured: The number.
        limit: The largest number that meets the goal.
        unit: Of both, in words.
    """

    subject: str
    measured: float
    limit: int
    unit: str

    @property
    def met(self) -> bool:
        return self.measured <= self.limit

    def __str__(self) -> str:
        verdict = f"{'met' if self.met else 'missed'} ({self.measured:,.0f})"
        return f"goal {self.subject}: at most {self.limit:,} {self.unit}: {verdict}"


def missed(goals: Iterable[Goal]) -> list[str]:
    """Return a sentence for each goal that is missed."""
    return [str(goal) for goal in goals if not goal.met]


def with_goals(tables: list[Table], sentences: list[str]) -> Report:
    """Append the missed goals to the tables, or the sentence that all goals were met."""
    return [*tables, *(sentences or ["every goal is met"])]
