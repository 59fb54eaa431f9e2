# What the hardware under a node gives, where it gives it: why it started, a watchdog, a log that outlives a reset. Where there
# is none (CPython, MicroPython's unix port), these do nothing.
import gc
import os
import sys

from ..clock import unix_now

WOKEN, UPDATED = "deepsleep", "update"  # causes of a start: the end of a deep sleep, a restart for an update
CAUSES = ("PWRON_RESET", "HARD_RESET", "WDT_RESET", "DEEPSLEEP_RESET", "SOFT_RESET", "BROWNOUT_RESET")
PLATFORM, MACHINE = sys.platform, getattr(sys.implementation, "_machine", "")
RARELY = 8192  # bytes that are allocated between two collections: more would leave less of the heap in one piece


def start_cause() -> str:
    """Why the machine started last ("wdt": its watchdog), "" where it does not say. Ask once: a mark is read and removed."""
    try:
        import machine  # type: ignore[import-not-found]

        cause = machine.reset_cause()
    except (ImportError, AttributeError):
        return ""
    mark, forced = _mark(machine, 0)
    if forced:
        return mark
    for name in CAUSES:
        if getattr(machine, name, None) == cause:
            return name[:-6].lower()
    return "code %d" % cause


def _mark(machine, value):
    """(cause that the program left at the reset before, whether it was the program that reset the chip), of an RP2, whose
    reset_cause() tells every start but the first as its watchdog's. value: left for the next start, in a register of the
    watchdog that only loses it with the power: 1: WOKEN, 2: UPDATED."""
    if PLATFORM != "rp2":
        return "", False
    reason = 0x400D8008 if "RP2350" in MACHINE else 0x40058008  # bit 1: the program did it
    memory = machine.mem32
    mark = memory[reason + 4]
    memory[reason + 4] = value
    return {1: WOKEN, 2: UPDATED}.get(mark, "hard"), memory[reason] & 2


def watchdog(ms: int):
    """A function that feeds a hardware watchdog of so many milliseconds, started now; it does nothing for 0 or without one."""
    if ms:
        try:
            from machine import WDT

            return WDT(timeout=ms).feed
        except (ImportError, AttributeError):
            pass
    return lambda: None


def settled() -> None:
    """A node is put together: from now on a board collects garbage more rarely."""
    gc.collect()
    if hasattr(gc, "threshold"):
        gc.threshold(RARELY)


def rest(ms: int) -> None:
    """Do nothing for so many milliseconds."""
    from time import sleep

    sleep(ms / 1000)


def restart(cause: str) -> None:
    """Reset a board, so that it begins with an empty heap; where there is none, nothing. cause: UPDATED or WOKEN, for the start
    to come."""
    try:
        import machine

        _mark(machine, 1 if cause == WOKEN else 2)
        machine.reset()
    except (ImportError, AttributeError):
        pass


class Log:
    """Prints lines, and keeps the last ones in a file, with the time: at most `most` bytes there and as many in <path>.old.

    path "": prints only. A file that cannot be written is left alone until the next start.
    """

    def __init__(self, path: str = "", most: int = 8192):
        self.path = path
        self.most = most

    def __call__(self, line: str) -> None:
        print("h2t2: %s" % line)
        if not self.path:
            return
        try:
            with open(self.path, "a") as file:
                file.write("%d %s\n" % (unix_now(), line[:512]))
                size = file.tell()
            if size >= self.most:
                os.rename(self.path, self.path + ".old")
        except OSError as error:
            self.path = ""
            print("h2t2: the log is not kept: %s" % error)

    def exception(self, error) -> None:
        """A traceback."""
        if hasattr(sys, "print_exception"):  # MicroPython
            import io

            buffer = io.StringIO()
            sys.print_exception(error, buffer)
            told = buffer.getvalue()
        else:
            from traceback import format_exception

            told = "".join(format_exception(error))
        for line in told.strip().split("\n"):
            self(line)
