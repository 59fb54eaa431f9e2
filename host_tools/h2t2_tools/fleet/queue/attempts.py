"""Which sample of a queue is asked about when: one that failed waits, longer each time, while others are asked."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from ...common.durations import Clock

MAX_ATTEMPTS = 8  # failures of a sample by its own fault, then it is dropped
FIRST_S, LONGEST_S = 5.0, 600.0  # for which a sample waits after its first failure, which doubles; and at most


@dataclass(frozen=True)
class _Failure:
    """The last failure of a sample. count: how many there were; due: when it may be asked about again; own: its own fault."""

    count: int
    due: float
    own: bool


class Attempts:
    """When the samples of a queue may be asked about again, by their numbers.

    A failure is a sample's own fault where the server had answered about others just before. During an outage none is: the
    outage's end makes all samples due that it has delayed.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[int, _Failure] = {}

    def fail(self, number: int, *, own: bool) -> None:
        """Note a failure of a sample."""
        last = self._failures.pop(number, None)
        count = last.count + 1 if last else 1
        self._failures[number] = _Failure(count, self._clock() + min(FIRST_S * 2 ** min(count - 1, 20), LONGEST_S), own)

    def has_failed(self, number: int) -> bool:
        """Whether a sample has failed since the start, or since the end of the outage in which it did."""
        return number in self._failures

    def end_outage(self) -> None:
        """The server answers."""
        self._failures = {number: failure for number, failure in self._failures.items() if failure.own}

    def forget(self, number: int) -> None:
        """A sample left the queue."""
        self._failures.pop(number, None)

    def waiting(self) -> Collection[int]:
        """The samples that are not due."""
        clock_s = self._clock()
        return {number for number, failure in self._failures.items() if failure.due > clock_s}
