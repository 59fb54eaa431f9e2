# Milliseconds that wrap, the same on CPython and MicroPython: compare only with ticks_diff. Seconds, and the time of day.
try:
    from time import ticks_add, ticks_diff, ticks_ms  # type: ignore[attr-defined]
except ImportError:
    from time import monotonic_ns

    _PERIOD = 1 << 30

    def ticks_ms() -> int:
        """Milliseconds since some moment, modulo 2^30."""
        return monotonic_ns() // 1000000 % _PERIOD

    def ticks_add(ticks: int, delta: int) -> int:
        """ticks moved by delta milliseconds, |delta| < 2^29."""
        return (ticks + delta) % _PERIOD

    def ticks_diff(a: int, b: int) -> int:
        """Milliseconds from b to a, in [-2^29, 2^29), right across the wrap."""
        return (a - b + _PERIOD // 2) % _PERIOD - _PERIOD // 2


FAR_MS = 1 << 29  # further than any end: nothing hurries


def remaining(end: int, most: int) -> int:
    """Milliseconds until `end`, set at most `most` before it; 0 when it is past, or the clock has jumped back meanwhile."""
    left = ticks_diff(end, ticks_ms())
    return left if 0 < left <= most else 0


def longest(of_late: int, began: int) -> int:
    """What something takes, milliseconds: the longest of late, with a new measurement that began then.

    It falls by an eighth each time, and at most doubles: a clock that jumps must not make it last ten minutes.
    """
    return max(of_late - (of_late >> 3), min(ticks_diff(ticks_ms(), began), 2 * of_late + 100))


SET = 1735689600  # 2025: a clock that says less was never set


class Stopwatch:
    """Whole seconds since it was made, for longer than the ticks' period; asked at least once in six days."""

    def __init__(self):
        self.last = ticks_ms()
        self.total = 0

    def seconds(self) -> int:
        waited = ticks_diff(ticks_ms(), self.last)
        if waited < 0:  # the clock has jumped back
            self.last = ticks_ms()
        elif waited >= 1000:
            self.total += waited // 1000
            self.last = ticks_add(self.last, waited // 1000 * 1000)
        return self.total


def unix_now() -> int:
    """Seconds since 1970, or 0 while the clock is not set: a board starts in 2000 or 2021."""
    from time import gmtime, time

    now = int(time()) + (946684800 if gmtime(0)[0] == 2000 else 0)
    return now if now > SET else 0
