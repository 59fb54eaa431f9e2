"""The command line: every command of `h2t2`, and what it says when something is wrong."""

from __future__ import annotations

import argparse
import sys

from .. import __version__
from ..common import parent
from ..common.errors import Failure, UserError, plain
from ..common.extras import missing
from . import bench, boards, fleet, lab, model, proof, samples, update, watch


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="h2t2",
        description="H2T2 Edge: learns online, with integers only, which samples an edge classifier should offload.",
        epilog="h2t2 COMMAND --help shows examples.",
    )
    root.add_argument("--version", action="version", version=f"h2t2 {__version__}")
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    for group in (proof, fleet, watch, samples, update, boards, model, lab, bench):
        group.add(commands)
    return root


def main(argv: list[str] | None = None) -> int:
    """Run a command line; the exit status: 0, 1 for a failure, 2 for wrong use, 130 after Ctrl-C."""
    parent.obey()
    args = parser().parse_args(argv)
    try:
        args.run(args)
    except (UserError, ValueError) as error:
        print(f"h2t2: {plain(error)}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        reason = missing(error)
        if not reason:
            raise
        print(f"h2t2: {reason}", file=sys.stderr)
        return 2
    except (Failure, OSError) as error:
        print(f"h2t2: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("h2t2: interrupted", file=sys.stderr)
        return 130
    return 0
