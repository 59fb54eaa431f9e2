# The waits between a link's attempts to connect: one rule for every link.
from ..core.numbers import Rng

FIRST_MS, LONGEST_MS = 500, 30000
STEADY_MS = 10000  # a connection that ends sooner did not work


class Backoff:
    """Waits double from .5 to 30 s. Each is drawn at random from its upper half, so that the devices of a fleet spread out."""

    def __init__(self, seed: int, first_ms: int = FIRST_MS, longest_ms: int = LONGEST_MS) -> None:
        """seed: 0 <= seed < 2^28, different on every device. first_ms, longest_ms: other bounds."""
        self.rng = Rng(seed)
        self.first_ms = first_ms
        self.longest_ms = longest_ms
        self.reset()

    def reset(self) -> None:
        """Begin with the first wait again, after an attempt that worked."""
        self.wait_ms = self.first_ms

    def after_connection(self, lasted_ms: int, contested: bool) -> None:
        """Adapt to the end of a connection: to the first wait after a steady one, to the longest after a contested one.

        contested: another device of this name takes every connection.
        """
        if contested:
            self.wait_ms = self.longest_ms
        elif lasted_ms >= STEADY_MS:
            self.reset()

    def draw(self) -> int:
        """The next wait, milliseconds."""
        half = self.wait_ms >> 1
        self.wait_ms = min(2 * self.wait_ms, self.longest_ms)
        return half + (half * self.rng.draw() >> 15)
