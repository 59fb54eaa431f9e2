"""What a command reports: tables and lines, for a terminal and for a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """columns: name -> "left" (words, kept whole) or "right" (numbers). rows: a cell a column."""

    title: str
    columns: dict[str, str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table in Markdown, its title above it."""
        marks = [":--" if side == "left" else "--:" for side in self.columns.values()]
        lines = [f"*{self.title}*", "", *(_line(row) for row in (list(self.columns), marks, *self.rows))]
        return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


Report = list["Table | str"]


def markdown(report: Report) -> str:
    """Tables and lines as Markdown, a blank line between two parts."""
    return "\n\n".join(item.markdown() if isinstance(item, Table) else item for item in report)
