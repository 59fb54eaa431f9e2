# The waits between a link's attempts to connect: one rule for every link.
from ..core.rng import Rng

FIRST_MS, LONGEST_MS = 500, 30000
STEADY_MS = 10000  # a connection that ends sooner did not work


class Backoff:
    """Waits double from .5 to 30 s; each is drawn from its upper half by the core's generator, so that a fleet spreads out."""

    def __init__(self, seed, first_ms=FIRST_MS, longest_ms=LONGEST_MS):
        """seed: 0 <= seed < 2^28; different on every device. first_ms, longest_ms: other bounds than those."""
        self.rng = Rng(seed)
        self.first_ms = first_ms
        self.longest_ms = longest_ms
        self.reset()

    def reset(self) -> None:
        """After an attempt that worked: the next wait is the first one again."""
        self.wait_ms = self.first_ms

    def ended(self, lasted_ms, taken) -> None:
        """A connection has ended after so long. taken: another device of this name took it, as it takes every one.

        After a steady connection the next wait is the first one again; after one that was taken it is the longest.
        """
        if taken:
            self.wait_ms = self.longest_ms
        elif lasted_ms >= STEADY_MS:
            self.reset()

    def draw(self) -> int:
        """The next wait, milliseconds."""
        half = self.wait_ms >> 1
        self.wait_ms = min(2 * self.wait_ms, self.longest_ms)
        return half + (half * self.rng.draw() >> 15)
