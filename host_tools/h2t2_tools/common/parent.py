"""Processes that end with the process that started them, however that ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

PARENT = "H2T2_PARENT"  # in the environment of such a process: the number of its parent
LOOK_S = 1.0  # between two looks for the parent, where the system sends no signal


def child_environment() -> dict[str, str]:
    """The environment of a process that ends with this one. Start it in the main thread, or in one that lives as long."""
    return {**os.environ, PARENT: str(os.getpid())}


def apply_environment() -> None:
    """Have this process get SIGTERM when its parent ends, if its environment says so. Its own children do not inherit this."""
    number = int(os.environ.pop(PARENT, "0"))
    if not number:
        return
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: Linux sends the signal
    except (OSError, AttributeError):
        threading.Thread(target=_watch, args=(number,), name="parent", daemon=True).start()
    if os.getppid() != number:  # it has ended meanwhile
        sys.exit(143)


def _watch(number: int) -> None:
    while os.getppid() == number:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
