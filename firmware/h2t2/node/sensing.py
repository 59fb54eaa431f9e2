# The sensor and its schedule: when a sample is due, what a sensor that fails or takes long means for the others.
from ..clock import FAR_MS, longest, remaining, ticks_add, ticks_diff, ticks_ms

FIRST_MS, LONGEST_MS = 100, 30000  # between two tries of a sensor that fails


class Sensing:
    """sensor: called without arguments, gives (LDL input, remote tensor, tag), None for nothing now; StopIteration ends.

    every_us: microseconds between two samples, 0: as often as it gives one. Slots that nobody had time for are left out and
    counted: a sample is of the moment it was read. patient: a full window stops it (recorded streams without a schedule).
    complain(kind, what): told when it raises, after which it is asked ever more rarely until it gives something.
    Counters: `errors` (of the sensor), `skipped` (slots).
    """

    def __init__(self, sensor, *, every_us=0, patient=False, complain=None):
        if every_us < 0 or every_us > 1000000000:
            raise ValueError("every_us %r is not in 0..10^9" % every_us)
        self.sensor = sensor
        self.every_us = every_us
        self.patient = patient and not every_us
        self.complain = complain
        self.errors = self.skipped = 0
        self.ended = False
        self.since = self.due = ticks_ms()  # when the sample at hand was due, when the next one is
        self.rest_us = 0  # what `due` leaves out
        self.retry_ms = 0  # how long a sensor that failed is left alone, and until when
        self.retry_at = self.due
        self.call_ms = 0  # how long the sensor takes: the longest of late

    def start(self) -> None:
        """The first sample is due now."""
        self.due = ticks_ms()

    def wait(self) -> int:
        """Milliseconds until a sample can be had, 0: now."""
        left = remaining(self.retry_at, self.retry_ms)
        return max(left, remaining(self.due, self.every_us // 1000 + 1)) if self.every_us else left

    def take(self, slack_ms=FAR_MS):
        """(LDL input, remote tensor, tag) of the next sample, or None. Its slot is over then, whatever came of it.

        slack_ms: milliseconds until something else must be done; a sensor that would take longer is not asked yet.
        """
        if self.ended or self.wait() or slack_ms <= self.call_ms:
            return None
        began = self.since = ticks_ms()
        if self.every_us:
            self._slot(began)
        try:
            given = self.sensor()
            if given is not None:
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
        if not self.every_us:
            self.since = ticks_ms()
        return given

    def _slot(self, now):
        """Go on to the latest slot that is due, and set the next; those before it are skipped."""
        late = ticks_diff(now, self.due)
        if not 0 <= late <= LONGEST_MS:  # asleep for long, or the clock has jumped
            self.due = now
            self.rest_us = 0
            late = 0
        missed = max(0, late * 1000 - self.rest_us) // self.every_us
        self.skipped += missed
        self._on(missed)
        self.since = self.due
        self._on(1)

    def _on(self, slots):
        """Move `due` by so many slots."""
        self.rest_us += slots * self.every_us
        self.due = ticks_add(self.due, self.rest_us // 1000)
        self.rest_us %= 1000
