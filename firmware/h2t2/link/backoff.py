# The waits between a link's attempts to connect: one rule for every link.
from ..core.rng import Rng

FIRST_MS, LONGEST_MS = 500, 30000


class Backoff:
    """Waits double from .5 to 30 s; each is drawn from its upper half by the core's generator, so that a fleet spreads out."""

    def __init__(self, seed):
        """seed: 0 <= seed < 2^28; different on every device."""
        self.rng = Rng(seed)
        self.reset()

    def reset(self) -> None:
        """After a connection that worked: the next wait is the first one again."""
        self.wait_ms = FIRST_MS

    def slow(self) -> None:
        """The next wait is the longest: another device of this name takes every connection away."""
        self.wait_ms = LONGEST_MS

    def draw(self) -> int:
        """The next wait, milliseconds."""
        half = self.wait_ms >> 1
        self.wait_ms = min(2 * self.wait_ms, LONGEST_MS)
        return half + (half * self.rng.draw() >> 15)
