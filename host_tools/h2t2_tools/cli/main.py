"""The command line: finds the command that is meant, runs it, and turns errors into one line and an exit status.

The models of the commands are loaded when their command runs: `h2t2 --help` imports none of them.
"""

from __future__ import annotations

import logging
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING

from .. import __version__
from ..common import log, parent
from ..common.errors import Failure, UserError, describe_error, is_deliberate
from ..common.extras import missing_extra
from ..common.untrusted import printable
from .commands import BENCH, COMMANDS, Parser

if TYPE_CHECKING:
    from .options import Command

DEFECT = 70  # exit status of an error that nobody has foreseen, as in sysexits.h


def main(argv: list[str] | None = None) -> int:
    """Run a command line.

    Returns:
        The exit status: 0, 1 for a failure, 2 for wrong use, 70 for a defect, 130 after Ctrl-C.
    """
    parent.apply_environment()
    words = sys.argv[1:] if argv is None else argv
    try:
        parsed(words).run()
    except KeyboardInterrupt:
        print("h2t2: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _report(error, "--debug" in words)
    finally:
        log.stop()
    return 0


def parsed(words: list[str]) -> Command:
    """The command of a command line. UserError for one that is wrong; SystemExit after --help and --version."""
    line = [word for word in words if word != "--debug"] if words[:1] == ["--debug"] else words
    name = " ".join(line[:2]) if line[:1] == [BENCH] else "".join(line[:1])
    if name not in COMMANDS:
        _overview().parse_args(line)
        raise AssertionError("argparse accepts an unknown command")
    from .options import parser

    model, summary = command(name)
    options = vars(parser(name, model, summary).parse_args(line[len(name.split()) :]))
    options.pop("debug", None)
    return model.parsed(options)


def command(name: str) -> tuple[type[Command], str]:
    """The model of a command, and its summary."""
    place, summary = COMMANDS[name]
    module, _, model = place.partition(":")
    return getattr(import_module(f".{module}", __package__), model), summary


def _overview() -> Parser:
    """A parser that only knows the names of the commands: for `h2t2 --help` and for wrong names."""
    root = Parser(
        prog="h2t2",
        description="H2T2 Edge: learns online, with integers only, which samples an edge classifier should offload.",
        epilog="h2t2 COMMAND --help shows examples.",
    )
    root.add_argument("--version", action="version", version=f"h2t2 {__version__}")
    root.add_argument("--debug", action="store_true", help="show a traceback of every error, of wrong use too (any command)")
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    for name, (_, summary) in COMMANDS.items():
        if not name.startswith(BENCH):
            commands.add_parser(name, help=summary)
    bench = commands.add_parser(BENCH, help="Measure both sides of a claim in one run.")
    benchmarks = bench.add_subparsers(metavar="WHAT", required=True)
    for name, (_, summary) in COMMANDS.items():
        if name.startswith(BENCH):
            benchmarks.add_parser(name.removeprefix(BENCH + " "), help=summary)
    return root


def _report(error: Exception, debug: bool) -> int:
    """Print why a command ended; its exit status."""
    status, text = _classified(error)
    if status == DEFECT and log.is_active():  # a daemon: one record, traceback and all
        logging.getLogger(log.PACKAGE).critical("%s", text, exc_info=error)
        return status
    if debug or status == DEFECT:
        traceback.print_exception(error)
    print(f"h2t2: {printable(text, chr(10))}", file=sys.stderr)
    return status


def _classified(error: Exception) -> tuple[int, str]:
    """The exit status of an exception, and its message."""
    if isinstance(error, UserError):
        return 2, describe_error(error)
    if isinstance(error, (Failure, OSError)):
        return 1, str(error)
    if isinstance(error, ModuleNotFoundError):
        hint = missing_extra(error)
        if hint:
            return 2, hint
    if isinstance(error, ValueError) and is_deliberate(error):
        return 2, describe_error(error)
    return DEFECT, f"{type(error).__name__}: {error}; this is a defect of h2t2: please report it with the lines above"
