"""Shows reports: as JSON, tables, Markdown and progress bars."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.report import Report, Table
from ..common.untrusted import printable

BAR_WIDTH = 20  # characters of a progress bar
BORDERS = 3  # characters between the texts of two columns


def write_json(path: str | None, content: Any) -> None:
    """Write a report as JSON.

    Args:
        path: the file of --json; "-": standard output; None: nowhere.
        content: the report.
    """
    if path == "-":
        print(json.dumps(content, indent=1))
    elif path:
        Path(path).write_text(json.dumps(content, indent=1) + "\n")


@dataclass(frozen=True)
class Working:
    """A task on a progress bar of rich; without rich it shows nothing."""

    bar: Any
    task: Any

    def update(self, **changes: Any) -> None:
        """Show changes, which rich's Progress.update() names."""
        if self.bar:
            self.bar.update(self.task, **changes)

    def describe(self, text: str) -> None:
        """Show the present step."""
        self.update(description=text)

    def count(self, completed: int, total: int) -> None:
        """Show the progress."""
        self.update(completed=completed, total=total)


@contextmanager
def working(title: str, total: float | None = None) -> Iterator[Working]:
    """Show a progress bar of one task on standard error, if that is a terminal and rich is installed.

    Numbers come first: a narrow terminal cuts the description, then the bar.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.table import Column
    except ImportError:
        yield Working(None, None)
        return
    console = Console(stderr=True)
    columns = (
        TaskProgressColumn(table_column=Column(no_wrap=True, min_width=4)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
        BarColumn(BAR_WIDTH),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        yield Working(bar, bar.add_task(title, total=total))


def show(report: Report) -> None:
    """Print tables and lines. A terminal gets drawn tables that fit; a pipe gets plain text with every column.

    A terminal never obeys the texts of devices.
    """
    for content in report:
        if isinstance(content, str):
            print(printable(content, "\n"))
        elif sys.stdout.isatty():
            from rich.console import Console

            console = Console()
            console.print(renderable(content, console.width))
        else:
            print(_escaped(content).plain())


def show_markdown(text: str) -> None:
    """Print Markdown: a terminal gets it drawn, a pipe as it is."""
    if not sys.stdout.isatty():
        print(text.strip())
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def show_next(purposes: dict[str, list[str]]) -> None:
    """Print commands to run next, each on a line of its own, so that it can be copied.

    Args:
        purposes: what a command is for -> its words, which are quoted as shells need it.
    """
    for purpose, words in purposes.items():
        print(f"next, {purpose}:\n  {shlex.join(words)}")


def renderable(content: Table | str, width: int) -> Any:
    """A table or a line as rich prints it. Its text is no markup, and it cannot command a terminal.

    Args:
        content: the table, which loses optional columns until it fits, and says which; or the line.
        width: columns of the terminal.
    """
    from rich.table import Table as Rich
    from rich.text import Text

    if isinstance(content, str):
        return Text(printable(content, "\n"))
    table, hidden = fitted(_escaped(content), width)
    note = f"without {', '.join(hidden)}: --json - or a pipe shows all columns" if hidden else None
    drawing = Rich(title=Text(table.title), caption=note and Text(note))
    for name, side in table.columns.items():
        drawing.add_column(Text(name), justify="left" if side == "left" else "right", overflow="fold")
    for row in table.rows:
        drawing.add_row(*map(Text, row))
    return drawing


def fitted(table: Table, width: int) -> tuple[Table, list[str]]:
    """A table without the optional columns that do not fit, and their names."""
    hidden: list[str] = []
    for name in table.optional:
        narrower = table.without(hidden)
        if sum(narrower.widths()) + BORDERS * len(narrower.columns) + 1 <= width:
            break
        hidden += [name] if name in narrower.columns else []
    return table.without(hidden), hidden


def _escaped(table: Table) -> Table:
    """A table whose texts no terminal obeys."""
    columns = {printable(name): side for name, side in table.columns.items()}
    rows = [[printable(cell) for cell in row] for row in table.rows]
    return Table(printable(table.title), columns, rows, table.optional)
