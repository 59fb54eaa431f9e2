"""The command line: every command of `h2t2`, and what it says when something is wrong."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback

from .. import __version__
from ..common import log, parent
from ..common.errors import Failure, UserError, describe_error, is_deliberate
from ..common.extras import missing_extra
from ..common.untrusted import printable
from . import bench, boards, fleet, lab, model, proof, samples, update, watch

DEFECT = 70  # exit status of what nobody has foreseen, as sysexits.h has it


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="h2t2",
        description="H2T2 Edge: learns online, with integers only, which samples an edge classifier should offload.",
        epilog="h2t2 COMMAND --help shows examples.",
    )
    root.add_argument("--version", action="version", version=f"h2t2 {__version__}")
    root.add_argument("--debug", action="store_true", help="show a traceback of every error, of wrong use too (any command)")
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    for group in (proof, fleet, watch, samples, update, boards, model, lab, bench):
        group.add(commands)
    return root


def main(argv: list[str] | None = None) -> int:
    """Run a command line; the exit status: 0, 1 for a failure, 2 for wrong use, 70 for a defect, 130 after Ctrl-C."""
    parent.apply_environment()
    args = parser().parse_args(argv)
    try:
        args.run(args)
    except KeyboardInterrupt:
        print("h2t2: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _ended(error, args.debug)
    finally:
        log.stop()
    return 0


def _ended(error: Exception, debug: bool) -> int:
    """Say why a command ended; its exit status."""
    status, words = _told(error)
    if status == DEFECT and log.is_active():  # a daemon: one record, traceback and all
        logging.getLogger(log.PACKAGE).critical("%s", words, exc_info=error)
        return status
    if debug or status == DEFECT:
        traceback.print_exception(error)
    print(f"h2t2: {printable(words, chr(10))}", file=sys.stderr)
    return status


def _told(error: Exception) -> tuple[int, str]:
    """(exit status, what is said) of an exception."""
    if isinstance(error, UserError):
        return 2, describe_error(error)
    if isinstance(error, (Failure, OSError)):
        return 1, str(error)
    if isinstance(error, ModuleNotFoundError):
        reason = missing_extra(error)
        if reason:
            return 2, reason
    if isinstance(error, ValueError) and is_deliberate(error):
        return 2, describe_error(error)
    return DEFECT, f"{type(error).__name__}: {error}; this is a defect of h2t2: please report it with the lines above"
