"""Parts of a page that a command writes: they stand between a mark of the command and the end mark."""

from collections.abc import Iterable, Sequence

from h2t2_tools.common.report import Report, Table

END = "<!-- end -->"


def markdown(report: Report) -> str:
    """Tables and lines as Markdown, with a blank line between two of them."""
    return "\n\n".join(_titled(item) if isinstance(item, Table) else item for item in report)


def _titled(table: Table) -> str:
    """A table in Markdown, its title above it."""
    marks = [":--" if side == "left" else "--:" for side in table.columns.values()]
    rows = [[cell.replace("|", "\\|") for cell in row] for row in (list(table.columns), marks, *table.rows)]
    return f"*{table.title}*\n\n{_grid(rows)}"


def _grid(rows: Iterable[Iterable[str]]) -> str:
    """Rows of cells as the lines of a table in Markdown; the second row holds the marks of the columns."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def markdown_table(header: Sequence[str], rows: Iterable[Iterable[str]], mark: str = "---") -> str:
    """A table in Markdown. mark: of the columns after the first."""
    return _grid([header, ["---", *[mark] * (len(header) - 1)], *rows])


def between(text: str, begin: str, content: str) -> str:
    """Return a text with other content between a mark and the end mark; without the mark as it was."""
    head, mark, tail = text.partition(begin)
    return f"{head}{mark}\n{content}\n{END}{tail.partition(END)[2]}" if mark else text


def inside(text: str, begin: str) -> str:
    """Return what stands between a mark and the end mark; "" without the mark."""
    return text.partition(begin)[2].partition(END)[0].strip()
