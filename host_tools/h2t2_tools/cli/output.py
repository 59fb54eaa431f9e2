"""How reports are shown: JSON, progress bars, tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.report import Report, Table
from ..common.untrusted import printable


def write_json(path: str | None, content: Any) -> None:
    """Write a report where --json asks for it; "-" is standard output."""
    if path == "-":
        print(json.dumps(content, indent=1))
    elif path:
        Path(path).write_text(json.dumps(content, indent=1) + "\n")


class _NoBar:
    """A progress bar that shows nothing."""

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def update(self, *_: Any, **__: Any) -> None: ...

    def advance(self, *_: Any, **__: Any) -> None: ...


@contextmanager
def progress() -> Iterator[Any]:
    """A rich progress bar on standard error, quiet where that is no terminal or rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _NoBar()
        return
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        yield bar


@dataclass(frozen=True)
class Working:
    """One task on a progress bar."""

    bar: Any
    task: Any

    def describe(self, text: str) -> None:
        """Show what is done now."""
        self.bar.update(self.task, description=text)

    def count(self, completed: int, total: int) -> None:
        """Show how much is done."""
        self.bar.update(self.task, completed=completed, total=total)


@contextmanager
def working(title: str) -> Iterator[Working]:
    """A progress bar of one task."""
    with progress() as bar:
        yield Working(bar, bar.add_task(title, total=None))


def show(report: Report) -> None:
    """Print tables and lines. What devices have said in them is shown, never obeyed."""
    for line in report:
        if isinstance(line, str):
            print(printable(line, "\n"))
        else:
            _print(line)


def _print(table: Table) -> None:
    from rich.console import Console

    console = Console()
    Console(width=None if console.is_terminal else 120).print(renderable(table))


def renderable(content: Table | str) -> Any:
    """A table or a line as rich prints it. Its text is no markup, and it cannot command a terminal."""
    from rich.table import Table as Rich
    from rich.text import Text

    if isinstance(content, str):
        return Text(printable(content, "\n"))
    table = Rich(title=Text(printable(content.title)))
    for name, side in content.columns.items():
        table.add_column(Text(printable(name)), justify="left" if side == "left" else "right", no_wrap=side == "left")
    for row in content.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
