"""Ends processes together with the process that started them, however that one ends."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

PARENT = "H2T2_PARENT"  # this environment variable holds the number of the parent
LOOK_S = 1.0  # seconds between two looks for the parent, where the system sends no signal


def child_environment() -> dict[str, str]:
    """The environment of a process that shall end with this one.

    Start the process in the main thread: Linux sends the signal when the starting thread ends.
    """
    return {**os.environ, PARENT: str(os.getpid())}


def await_end(process: subprocess.Popen[Any], seconds: float) -> None:
    """Wait for the end of a child process that was told to end, and kill it after some seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def apply_environment() -> None:
    """Let this process get SIGTERM when its parent ends, if its environment asks for it. Children do not inherit this."""
    number = int(os.environ.pop(PARENT, "0"))
    if not number:
        return
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: Linux sends the signal
    except (OSError, AttributeError):
        threading.Thread(target=_watch, args=(number,), name="parent", daemon=True).start()
    if os.getppid() != number:  # the parent ended before the call above
        sys.exit(143)


def _watch(number: int) -> None:
    while os.getppid() == number:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
