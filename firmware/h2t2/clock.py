# Milliseconds that wrap, the same on CPython and MicroPython. Compare only with ticks_diff.
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
