"""Pseudo-terminals, which an emulated board's serial line is: whether this system has them."""

from __future__ import annotations

import os
from functools import cache


@cache
def absent() -> str | None:
    """Why there can be none, or None."""
    try:
        ends = os.openpty()
    except OSError as error:
        return f"no pseudo-terminals here ({error.strerror}); run: sudo mount -t devpts devpts /dev/pts"
    for end in ends:
        os.close(end)
    return None
