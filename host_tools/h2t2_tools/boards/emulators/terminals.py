"""Checks for pseudo-terminals, which serve as serial lines of emulated boards."""

import os
from functools import cache


@cache
def absent() -> str | None:
    """Return why this system has no pseudo-terminals, or None."""
    try:
        ends = os.openpty()
    except OSError as error:
        return f"no pseudo-terminals here ({error.strerror}); run: sudo mount -t devpts devpts /dev/pts"
    for end in ends:
        os.close(end)
    return None
