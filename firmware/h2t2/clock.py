# Milliseconds that wrap, the same on CPython and MicroPython: compare only with ticks_diff. Seconds, and the time of day.
try:
    from time import ticks_add as ticks_add  # type: ignore[attr-defined]
    from time import ticks_diff as ticks_diff  # type: ignore[attr-defined]
    from time import ticks_ms as ticks_ms  # type: ignore[attr-defined]
except ImportError:
    from time import monotonic_ns as monotonic_ns

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


FAR_MS = 1 << 29  # later than any deadline


def remaining(end: int, limit: int) -> int:
    """Return the milliseconds until `end`; 0 if it is past, or further than `limit`, as the clock has jumped back."""
    wait = ticks_diff(end, ticks_ms())
    return wait if 0 < wait <= limit else 0


def longest(of_late: int, began: int) -> int:
    """Return the longest duration of late, milliseconds, with a new measurement.

    It falls by an eighth each time and at most doubles, so that a clock that jumps has little effect.

    Args:
        of_late: The last result.
        began: Ticks at the beginning of the new measurement.
    """
    took: int = ticks_diff(ticks_ms(), began)
    return max(of_late - (of_late >> 3), min(took, 2 * of_late + 100))


SET = 1735689600  # the year 2025: an earlier time shows that the clock was never set


class Stopwatch:
    """Counts seconds for longer than the ticks' period; call seconds() at least once in six days."""

    def __init__(self) -> None:
        self.last = ticks_ms()
        self.total = 0

    def seconds(self) -> int:
        """Return the whole seconds since the start."""
        waited = ticks_diff(ticks_ms(), self.last)
        if waited < 0:  # the clock has jumped back
            self.last = ticks_ms()
        elif waited >= 1000:
            self.total += waited // 1000
            self.last = ticks_add(self.last, waited // 1000 * 1000)
        return self.total


def unix_now() -> int:
    """Return the seconds since 1970, or 0 while the clock is not set: boards start in 2000, an RP2 in 2021 (its main.c)."""
    from time import gmtime, time

    now = int(time()) + (946684800 if gmtime(0)[0] == 2000 else 0)
    return now if now > SET else 0
