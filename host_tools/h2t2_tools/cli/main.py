"""The command line's entrance: overviews cost little, and every other command line goes to execute()."""

import sys

from . import overview
from .commands import EVERYWHERE


def main(argv: list[str] | None = None) -> int:
    """Run a command line.

    Args:
        argv: the words after `h2t2`; those of this process by default.

    Returns:
        The exit status: 0, 1 for a failure, 2 for wrong use, 70 for a defect, 130 after Ctrl-C.
    """
    words = sys.argv[1:] if argv is None else argv
    line = [word for word in words if word not in EVERYWHERE]
    if not line:
        print(overview.BARE, file=sys.stderr)
        return 2
    page = overview.page(line)
    if page is not None:
        print(page, end="")
        return 0
    from .execute import execute

    return execute(words)
