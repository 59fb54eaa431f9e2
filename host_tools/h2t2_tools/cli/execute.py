"""Runs a command: finds its model, and turns errors into one line and an exit status."""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ..common import end_with_parent, log, trust
from ..common.errors import Failure, UserError, describe_error
from ..common.extras import missing_extra
from ..common.untrusted import printable
from .commands import COMMANDS, EVERYWHERE
from .usage_errors import unknown

if TYPE_CHECKING:
    from .options import Command

DEFECT = 70  # exit status of an error that nobody has foreseen, as in sysexits.h
UNREAD = 141  # exit status when nobody reads the output any more (`h2t2 ... | head -1`), as of a process that SIGPIPE ends


def execute(words: list[str]) -> int:
    """Run the command of a command line, and return its exit status."""
    if trust.OPTION in words:
        os.environ[trust.GIVEN] = "1"
    return guarded(lambda: parsed(words).run(), "--debug" in words)


def guarded(action: Callable[[], None], debug: bool) -> int:
    """Run a command, and return the exit status. An error becomes one line; debug: with its traceback."""
    end_with_parent.apply_environment()
    _end_on_sigterm()
    try:
        action()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("h2t2: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _is_output_unread():
            return UNREAD
        return _report(error, debug)
    finally:
        log.stop()
    return 0


def _end_on_sigterm() -> None:
    """Let SIGTERM end the command as an error does, so that it ends what it has started. A second one ends it at once."""

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def parsed(words: list[str]) -> Command:
    """Read a command line into its command.

    Raises:
        UserError: the command line is wrong.
        SystemExit: after `--help`.
    """
    line = words[next((n for n, word in enumerate(words) if word not in EVERYWHERE), 0) :]
    name = next((name for name in (" ".join(line[:2]), "".join(line[:1])) if name in COMMANDS), "")
    if not name:
        raise unknown(line)
    from .options import parse, summary

    model = command(name)
    return model.parsed(parse(f"h2t2 {name}", summary(name, model), model, line[len(name.split()) :]))


def command(name: str) -> type[Command]:
    """The model of a command."""
    module, _, model = COMMANDS[name][0].partition(":")
    loaded: type[Command] = getattr(import_module(f".{module}", __package__), model)
    return loaded


def _is_output_unread() -> bool:
    """Return whether nobody reads stdout any more. Then what Python writes at the exit goes nowhere."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _report(error: Exception, debug: bool) -> int:
    """Print why a command ended, and return its exit status."""
    status, text = _classified(error)
    if status == DEFECT and log.is_active():  # a daemon logs one record with the traceback
        logging.getLogger(log.PACKAGE).critical("%s", text, exc_info=error)
        return status
    if debug or status == DEFECT:
        import traceback

        traceback.print_exception(error)
    print(f"h2t2: {printable(text, chr(10))}", file=sys.stderr)
    return status


def _classified(error: Exception) -> tuple[int, str]:
    """The exit status of an exception, and its message."""
    if isinstance(error, UserError):
        return 2, describe_error(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return 1, f"{error.filename}: {error.strerror}"
    if isinstance(error, (Failure, OSError)):
        return 1, str(error)
    if isinstance(error, ModuleNotFoundError):
        hint = missing_extra(error)
        if hint:
            return 2, hint
    return DEFECT, f"{type(error).__name__}: {error}; this is a defect of h2t2: please report it with the lines above"
