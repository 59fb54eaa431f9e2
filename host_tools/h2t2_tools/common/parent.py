"""Processes that end with the one that has started them, however that ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

PARENT = "H2T2_PARENT"  # in the environment of such a process: the number of the other


def child_environment() -> dict[str, str]:
    """The environment for one that is to end with this process. It must be started by this one's main thread, or by one that
    lives as long."""
    return {**os.environ, PARENT: str(os.getpid())}


def apply_environment() -> None:
    """For a process that has just started: end with the other where it is told to; those it starts itself are not."""
    other = os.environ.pop(PARENT, "")
    if other:
        end_with_parent()
        if os.getppid() != int(other):  # it has ended meanwhile
            sys.exit(143)


def end_with_parent() -> None:
    """Linux sends this process SIGTERM as soon as its parent is gone; elsewhere nothing does."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
