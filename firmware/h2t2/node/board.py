# The hardware under a node, where it exists: the cause of the start, a watchdog, a log that survives a reset. On CPython and on
# MicroPython's unix port these functions do nothing.
import os
import sys

from ..clock import unix_now
from ..modules import call_once

if 0:  # for type checkers
    from ..annotations import Any, Callable

# causes of a start that the program before it leaves: the end of a deep sleep, an update, a radio that passes nothing
WOKEN, UPDATED, DEAF = "deepsleep", "update", "radio"
PLATFORM, MACHINE = sys.platform, getattr(sys.implementation, "_machine", "")


def start_cause() -> str:
    """Return the cause of this start ("wdt": the watchdog), "" if the machine does not say. Call it once: it removes a mark."""
    cause: str = call_once("node.causes.last")
    return cause


running_watchdog: "Any" = None


def watchdog(ms: int) -> "Callable[[], object]":
    """Start a hardware watchdog of so many milliseconds; return feed(). 0 or no hardware: none."""
    global running_watchdog
    running_watchdog = None
    if ms:
        try:
            from machine import WDT

            running_watchdog = WDT(timeout=ms)
        except (ImportError, AttributeError):
            pass
    return feed


def feed() -> None:
    """Feed the watchdog. An app whose setup() or sense() takes longer than the watchdog's limit calls it meanwhile."""
    if running_watchdog:
        running_watchdog.feed()


def ignore_ctrl_c(on: bool) -> None:
    """Ignore Ctrl-C, or no longer. Hosts send it many times, and each one interrupts what the one before has begun."""
    try:
        from micropython import kbd_intr

        kbd_intr(-1 if on else 3)
    except (ImportError, AttributeError):  # a computer
        pass


def release_watchdog() -> bool:
    """Let the program end without a reset; return whether there was a watchdog.

    An RP2's is switched off by its register (its datasheet's WATCHDOG CTRL, bit ENABLE, where bits are cleared);
    an ESP32's gets its longest limit, six days.
    """
    global running_watchdog
    if not running_watchdog:
        return False
    import machine

    if PLATFORM == "rp2":
        machine.mem32[0x400DB000 if "RP2350" in MACHINE else 0x4005B000] = 1 << 30
    else:
        machine.WDT(timeout=1 << 29)
    running_watchdog = None
    return True


def pause(ms: int) -> None:
    """Wait."""
    from time import sleep

    sleep(ms / 1000)


def restart(cause: str) -> None:
    """Reset a board, so that it begins with an empty heap. cause: WOKEN, UPDATED or DEAF, for the next start."""
    call_once("node.causes.reset", cause)


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
        for line in call_once("node.tracebacks.text", error).strip().split("\n"):
            self(line)
