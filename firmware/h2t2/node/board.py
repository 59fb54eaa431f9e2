# What the hardware under a node gives, where it gives it: why it started, a watchdog, the time of day, a log that outlives a
# reset. Where there is none (CPython, MicroPython's unix port), these do nothing.
import os
import sys

from ..clock import unix_now

WOKEN = "deepsleep"  # the cause of a start that ends a deep sleep
CAUSES = ("PWRON_RESET", "HARD_RESET", "WDT_RESET", "DEEPSLEEP_RESET", "SOFT_RESET", "BROWNOUT_RESET")
TRIES = 3  # of a time server


def start_cause() -> str:
    """Why the machine started last ("wdt": its watchdog), "" where it does not say."""
    try:
        import machine  # type: ignore[import-not-found]

        cause = machine.reset_cause()
    except (ImportError, AttributeError):
        return ""
    for name in CAUSES:
        if getattr(machine, name, None) == cause:
            return name[:-6].lower()
    return "code %d" % cause


def watchdog(ms: int):
    """A function that feeds a hardware watchdog of so many milliseconds, started now; it does nothing for 0 or without one."""
    if ms:
        try:
            from machine import WDT

            return WDT(timeout=ms).feed
        except (ImportError, AttributeError):
            pass
    return lambda: None


def rest() -> None:
    """Do nothing for a tenth of a second."""
    from time import sleep

    sleep(0.1)


def restart() -> None:
    """Reset a board, so that it begins with an empty heap; where there is none, nothing."""
    try:
        from machine import reset
    except (ImportError, AttributeError):
        return
    reset()


def sleeper(kind: str):
    """The machine's sleep of that kind, "light" or "deep": called with milliseconds. ValueError where it has none."""
    try:
        import machine

        return getattr(machine, kind + "sleep")
    except (ImportError, AttributeError):
        raise ValueError("sleep = %s: this machine has no %ssleep" % (kind, kind)) from None


def set_clock(server: str, feed, log) -> bool:
    """Set a board's clock from an NTP server, before a certificate is looked at. True where it is set; a failure is said."""
    try:
        import ntptime  # type: ignore[import-not-found]
    except ImportError:  # an operating system sets its own
        return unix_now() > 0
    ntptime.host = server
    for _ in range(TRIES):
        feed()
        try:
            ntptime.settime()
            return True
        except (OSError, OverflowError) as error:
            why = error
    log("the clock is not set: %s: %s" % (server, why))
    return unix_now() > 0


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
