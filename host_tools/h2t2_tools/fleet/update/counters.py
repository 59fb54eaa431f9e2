"""Counters of packages: the time of signing, unless this machine's clock is wrong."""

import ctypes
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from h2t2.node import package

from ...common.errors import UserError
from ...common.fields import DAY_S

UNSYNCHRONISED = 5  # what Linux's adjtimex() returns where no time server keeps the clock
TIMEX_LONGS, SECONDS = 64, 9  # room for its structure, and the place of the time in it


def checked(counter: int | None, places: Iterable[Path], ahead: bool) -> int:
    """Return the counter of a package: the time, unless one is given.

    Args:
        places: Files and folders of files that it is made of. Their times are clocks, and so are the counters of packages in
            the current folder.
        ahead: Accept a counter that is far ahead of all clocks.

    Raises:
        UserError: It is more than a day ahead of all clocks. Devices that have tried it refuse all packages that follow.
    """
    counter = counter or int(time.time())
    newest = _kept_time()
    packages = set(Path().glob("*.h2u"))
    for path in {child for place in places for child in (place.iterdir() if place.is_dir() else [place])} | packages:
        with suppress(OSError):
            newest = max(newest, path.stat().st_mtime)
    for path in packages:
        with suppress(OSError, ValueError), path.open("rb") as file:
            newest = max(newest, package.Head(file.read(package.SIGNED)).counter)
    if newest and counter > newest + DAY_S and not ahead:  # a file that is not there is missed by whoever reads it
        days = int(counter - newest) // DAY_S
        raise UserError(
            f"the counter {counter} ({_day(counter)}) is {days:,} days ahead of the newest file of this package "
            f"({_day(newest)}), and devices that have tried it refuse all lower ones: set this machine's clock, or give "
            "--counter; if it is right, `h2t2 update sign --ahead`"
        )
    return counter


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _kept_time() -> float:
    """Return the time of Linux's clock if a time server keeps it, otherwise 0."""
    timex = (ctypes.c_long * TIMEX_LONGS)()
    try:
        state = ctypes.CDLL(None).adjtimex(timex)
    except (AttributeError, OSError, TypeError):  # another system
        return 0.0
    return float(timex[SECONDS]) if 0 <= state < UNSYNCHRONISED else 0.0
