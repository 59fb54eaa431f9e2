# The hardware under a node, where it exists: the cause of the start, a watchdog, a log that survives a reset. On CPython and on
# MicroPython's unix port these functions do nothing.
import os
import sys

from ..clock import unix_now
from ..modules import IS_BOARD, forget

if 0:  # for type checkers
    from collections.abc import Callable
    from typing import Any

WOKEN, UPDATED = "deepsleep", "update"  # causes of a start: the end of a deep sleep, a restart for an update
PLATFORM, MACHINE = sys.platform, getattr(sys.implementation, "_machine", "")


def start_cause() -> str:
    """Return the cause of this start ("wdt": the watchdog), "" if the machine does not say. Call it once: it removes a mark."""
    try:
        import machine  # type: ignore[import-not-found]

        cause = machine.reset_cause()
    except (ImportError, AttributeError):
        return ""
    mark, forced = _mark(machine, 0)
    if forced:
        return mark
    from .causes import name_of

    text = name_of(machine, cause)
    if IS_BOARD:
        forget("node.causes")
    return text


def _mark(machine: "Any", value: int) -> "tuple[str, int]":
    """Exchange the mark of an RP2, whose reset_cause() attributes every start but the first to the watchdog.

    Args:
        machine: The module.
        value: For the next start, in a register of the watchdog that keeps it until the power goes: 1: WOKEN, 2: UPDATED.

    Returns:
        The cause that the program left at the last reset, and whether the program reset the chip.
    """
    if PLATFORM != "rp2":
        return "", 0
    reason = 0x400D8008 if "RP2350" in MACHINE else 0x40058008  # bit 1: the program did it
    memory = machine.mem32
    mark = memory[reason + 4]
    memory[reason + 4] = value
    return {1: WOKEN, 2: UPDATED}.get(mark, "hard"), memory[reason] & 2


def watchdog(ms: int) -> "Callable[[], object]":
    """Start a hardware watchdog of so many milliseconds; return the function that feeds it. 0 or no hardware: none."""
    if ms:
        try:
            from machine import WDT

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
    try:
        import machine

        _mark(machine, 1 if cause == WOKEN else 2)
        machine.reset()
    except (ImportError, AttributeError):
        pass


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
