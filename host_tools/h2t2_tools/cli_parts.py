"""What the command-line modules share: how a command is declared, what its reports look like."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Any], summary: str, *examples: str
) -> argparse.ArgumentParser:
    """Declare a command, with examples under its help."""
    epilog = "examples:\n" + "\n".join("  " + line for line in examples)
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run)
    return parser


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON; - for standard output")


def positive(text: str) -> int:
    """An argument that must be 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def write_json(path: str | None, content: Any) -> None:
    """Write a report where --json asks for it; "-" is standard output."""
    if path == "-":
        print(json.dumps(content, indent=1))
    elif path:
        Path(path).write_text(json.dumps(content, indent=1) + "\n")


@contextmanager
def progress() -> Iterator[Any]:
    """A rich progress bar on standard error, quiet where that is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        yield bar


def table(title: str, header: dict[str, str], rows: list[list[str]]) -> None:
    """Print a table; header: column names, each "left" (kept whole) or "right"."""
    from rich.console import Console
    from rich.table import Table

    made = Table(title=title)
    for name, side in header.items():
        made.add_column(name, justify="left" if side == "left" else "right", no_wrap=side == "left")
    for row in rows:
        made.add_row(*row)
    console = Console()
    Console(width=None if console.is_terminal else 120).print(made)
