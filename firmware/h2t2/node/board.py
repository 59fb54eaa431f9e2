# The hardware under a node, where it exists: the cause of the start, a watchdog, a log that survives a reset. On CPython and on
# MicroPython's unix port these functions do nothing.
import os
import sys

from ..clock import unix_now
from ..modules import IS_BOARD, forget

if 0:  # for type checkers
    from collections.abc import Callable

WOKEN, UPDATED = "deepsleep", "update"  # causes of a start: the end of a deep sleep, a restart for an update
PLATFORM, MACHINE = sys.platform, getattr(sys.implementation, "_machine", "")


def start_cause() -> str:
    """Return the cause of this start ("wdt": the watchdog), "" if the machine does not say. Call it once: it removes a mark."""
    from .causes import last

    cause = last()
    if IS_BOARD:
        forget("node.causes")
    return cause


def watchdog(ms: int) -> "Callable[[], object]":
    """Start a hardware watchdog of so many milliseconds; return the function that feeds it. 0 or no hardware: none."""
    if ms:
        try:
            from machine import WDT  # type: ignore[import-not-found]

            return WDT(timeout=ms).feed  # type: ignore[no-any-return]
        except (ImportError, AttributeError):
            pass
    return lambda: None


def pause(ms: int) -> None:
    """Wait."""
    from time import sleep

    sleep(ms / 1000)


def restart(cause: str) -> None:
    """Reset a board, so that it begins with an empty heap. cause: UPDATED or WOKEN, for the next start."""
    from .causes import reset

    reset(cause)


class Log:
    """Prints lines, and keeps the last ones in a file, with the time.

    Args:
        path: Of the file; "": it prints only. A file that cannot be written is not tried again before the next start.
        limit: Largest number of bytes in the file, and in <path>.old.
    """

    def __init__(self, path: str = "", limit: int = 8192):
        self.path = path
        self.limit = limit

    def __call__(self, line: str) -> None:
        print("h2t2: %s" % line)
        if not self.path:
            return
        try:
            with open(self.path, "a") as file:
                file.write("%d %s\n" % (unix_now(), line[:512]))
                size = file.tell()
            if size >= self.limit:
                os.rename(self.path, self.path + ".old")
        except OSError as error:
            self.path = ""
            print("h2t2: the log is not kept: %s" % error)

    def exception(self, error: BaseException) -> None:
        """Log a traceback."""
        from .tracebacks import text

        for line in text(error).strip().split("\n"):
            self(line)
