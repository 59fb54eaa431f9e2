# A user's program whose measurements fill a window: it measures one by one or in blocks, and gaps restart the window.
from ..clock import ticks_diff, ticks_ms
from .sensing import PARTIAL, PENDING

if 0:  # for type checkers
    from ..annotations import Any
    from .window import Window

GAP = "gap"  # what sense() returns when measurements were missed since its last call


class WindowedSensor:
    """Calls a program's sense(); a call returns the features of the next window, None for nothing now, PENDING, or
    PARTIAL.

    A gap restarts the window: sense() returns GAP or raises, or the time since it last returned measurements exceeds the
    program's `gap_ms`. The measurements that arrive after such a time are dropped, as the gap may lie among them.
    A window with a missing measurement restarts as well; the call returns the exception that says so.

    Args:
        program: The user's module.
        window: A Window.

    Attributes:
        measured: What sense() returned last.
    """

    def __init__(self, program: "Any", window: "Window"):
        self.sense = program.sense
        self.gap_ms = getattr(program, "gap_ms", 0)
        self.window = window
        self.measured = None  # type: Any
        self.measured_at = -1  # ticks

    def __call__(self) -> "Any":
        window = self.window
        values = self._take()  # the last block may complete several windows
        if values is not None:
            return values
        try:
            measured = self.sense()
            if measured is None or measured is PENDING:
                return measured
            if self._is_late() or isinstance(measured, str) and measured == GAP:
                window.restart()
                return PARTIAL
            window.add(measured)
        except StopIteration:
            raise
        except Exception:
            window.restart()
            raise
        self.measured = measured
        values = self._take()
        return PARTIAL if values is None else values

    def _take(self) -> "Any":
        """Return the features of the next full window, None without one, or the exception for one that has no features."""
        try:
            return self.window.take()
        except Exception as error:
            self.window.restart()
            return ValueError("a measurement of the window is missing or no number") if isinstance(error, TypeError) else error

    def _is_late(self) -> bool:
        """Note the time; return whether the program cannot have buffered all measurements since it last returned some."""
        last = self.measured_at
        self.measured_at = ticks_ms()
        return self.gap_ms > 0 and last >= 0 and not 0 <= ticks_diff(self.measured_at, last) <= self.gap_ms

    def missed(self) -> None:
        """Restart the window, as a scheduled call was skipped; a program that states gap_ms buffers its measurements."""
        if not self.gap_ms:
            self.window.restart()
