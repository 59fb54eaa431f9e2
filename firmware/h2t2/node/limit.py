# How many commands a device takes, and beginnings of updates.
from ..clock import ticks_diff, ticks_ms

BURST, EVERY_MS = 4, 15000  # commands: so many at once, and a further one each 15 s


class Limit:
    """Lets BURST commands through at once, then one each EVERY_MS."""

    def __init__(self) -> None:
        self.credit = BURST
        self.since = ticks_ms()

    def passes(self) -> bool:
        """Return whether a command may be carried out now, and count it."""
        ticks = ticks_ms()
        waited = ticks_diff(ticks, self.since)
        if waited < 0 or self.credit == BURST:  # the clock has jumped, or nothing to refill
            self.since = ticks
        elif waited >= EVERY_MS:
            self.credit = min(BURST, self.credit + waited // EVERY_MS)
            self.since = ticks
        if not self.credit:
            return False
        self.credit -= 1
        return True
