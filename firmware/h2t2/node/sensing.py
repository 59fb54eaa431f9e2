# The sensor and its schedule: when a sample is due, and how a sensor that fails or takes long affects later samples.
from ..clock import FAR_MS, longest, remaining, ticks_add, ticks_diff, ticks_ms
from ..modules import IS_BOARD

if 0:  # for type checkers
    from ..annotations import Any, Callable

FIRST_MS, LONGEST_MS = 100, 30000  # between two tries of a sensor that fails
PARTIAL = "partial"  # what a sensor returns that has measured, and needs more measurements for a sample
PENDING = "pending"  # what a sensor returns whose sample is on its way: it is called again in the same slot
DAY_MS = 86400000
TURN_MS = 5  # longest time that measurements without a schedule keep the loop from everything else


class Sensing:
    """Calls a sensor on schedule.

    Args:
        sensor: Called without arguments; it returns (LDL input, remote tensor, tag) as Node.step() takes them, PARTIAL,
            PENDING, or None for nothing now, and raises StopIteration at its end. After another exception it is called ever
            more rarely, until one call returns something.
        every_us: Microseconds between two samples, up to 10^9. A slot that nobody had time for is skipped, as a sample belongs
            to the moment of its reading.
        every_ms: The same of longer schedules, milliseconds up to a day. Both 0: as often as the sensor returns a sample.
        patient: Whether a full window stops the sensor (recorded streams without a schedule).
        complain: Called with a kind of trouble and its reason.
        missed: Called when slots were skipped, or None.

    Attributes:
        errors: Exceptions of the sensor, and of those that stand in place of an input or a tensor (Service counts these).
        skipped: Slots.
        pending: Whether the sensor returned PENDING.
        since, due: When the present sample was due, and when the next one is.
    """

    def __init__(
        self,
        sensor: "Callable[[], Any]",
        *,
        every_us: int = 0,
        every_ms: int = 0,
        patient: bool = False,
        complain: "Callable[[str, Exception], object]" = print,
        missed: "Callable[[], object] | None" = None,
    ):
        if not IS_BOARD and not 0 <= every_us <= 1000000000:  # on a board entries.py checks the configuration
            raise ValueError("every_us %r is not in 0..10^9" % every_us)
        if not IS_BOARD and not 0 <= every_ms <= DAY_MS:
            raise ValueError("every_ms %r is not in 0..%d" % (every_ms, DAY_MS))
        self.sensor = sensor
        self.every_us = every_us
        self.every_ms = every_ms
        self.scheduled = every_us > 0 or every_ms > 0
        self.patient = patient and not self.scheduled
        self.complain = complain
        self.missed = missed
        self.errors = self.skipped = 0
        self.ended = self.pending = False
        self.since = self.due = ticks_ms()
        self.fraction_us = 0  # of `due`
        self.retry_ms = 0  # pause after a failure
        self.retry_at = self.due  # its end
        self.call_ms = 0  # time that the sensor takes: the longest of late

    def wait_ms(self) -> int:
        """Return the time until the sensor may be called; 0: now."""
        if self.pending:
            return 0
        wait = remaining(self.retry_at, self.retry_ms)
        return max(wait, remaining(self.due, self.every_ms + self.every_us // 1000 + 1)) if self.scheduled else wait

    def take(self, slack_ms: int = FAR_MS) -> "Any":
        """Return (LDL input, remote tensor, tag) of the next sample, PARTIAL, or None. Its slot ends in any case.

        Without a schedule, the sensor is called until it returns a sample or None, for TURN_MS at most.

        slack_ms: Time until something else must be done; a sensor that would take longer is not called yet.
        """
        if self.ended or self.wait_ms() or slack_ms <= self.call_ms:
            return None
        began = ticks_ms()
        if not self.pending:
            self.since = began
            if self.scheduled:
                self._slot(began)
        self.pending = False
        try:
            sample = self.sensor()
            while sample is PARTIAL and not self.scheduled and 0 <= ticks_diff(ticks_ms(), began) < TURN_MS:
                sample = self.sensor()
            if sample is PENDING:
                self.pending = True
                return None
            if sample is not None:
                self.retry_ms = 0
        except StopIteration:
            self.ended = True
            return None
        except Exception as error:
            self.errors += 1
            self.retry_ms = min(2 * self.retry_ms, LONGEST_MS) if self.retry_ms else FIRST_MS
            self.retry_at = ticks_add(ticks_ms(), self.retry_ms)
            self.complain("sensor", error)
            return None
        self.call_ms = longest(self.call_ms, began)
        if not self.scheduled:
            self.since = ticks_ms()
        return sample

    def _slot(self, ticks: int) -> None:
        """Begin the latest slot that is due, skip those before it, and set the next."""
        late = ticks_diff(ticks, self.due)
        jumped = not 0 <= late <= LONGEST_MS  # asleep for long, or the clock has jumped
        if jumped:
            self.due = ticks
            self.fraction_us = 0
            late = 0
        skipped = 0 if self.every_ms else max(0, late * 1000 - self.fraction_us) // self.every_us
        if (jumped or skipped) and self.missed:
            self.missed()
        self.skipped += skipped
        self._advance(skipped)
        self.since = self.due
        self._advance(1)

    def _advance(self, slots: int) -> None:
        """Move `due` by so many slots."""
        self.fraction_us += slots * self.every_us
        self.due = ticks_add(self.due, self.fraction_us // 1000 + slots * self.every_ms)
        self.fraction_us %= 1000
