"""One worker as its messages on the broker describe it."""

from collections import deque
from dataclasses import dataclass, field

from h2t2.link import wire
from h2t2.link.statuses import STATUS

from ..rdl.telemetry import EVERY_S, WorkerState
from .waits import quantile

RECENT_S = 30.0


@dataclass
class Worker:
    """A worker.

    Args:
        model: the number of the model that it serves.
        name: in the topics.
        state: its last one.
        heard: when that came, Unix seconds.
    """

    model: int
    name: str
    state: WorkerState | None = None
    last_message: float = 0.0
    _recent: deque[tuple[float, WorkerState]] = field(default_factory=lambda: deque(maxlen=round(RECENT_S / EVERY_S) + 1))

    def take(self, state: WorkerState, unix_s: float) -> None:
        """Take a state."""
        if self._recent and state.uptime_s < self._recent[-1][1].uptime_s:
            self._recent.clear()
        self._recent.append((unix_s, state))
        self.state, self.last_message = state, unix_s

    def per_s(self) -> float | None:
        """Requests answered a second, recently; None before its second state."""
        if len(self._recent) < 2:
            return None
        (began, first), (ended, last) = self._recent[0], self._recent[-1]
        ok = STATUS[wire.OK]
        return (last.replies.get(ok, 0) - first.replies.get(ok, 0)) / (ended - began) if ended > began else None

    def waits(self, share: float) -> float | None:
        """Milliseconds within which the worker answered that share of the recent requests; None where there were none."""
        if not self._recent:
            return None
        first, last = self._recent[0][1].waits, self._recent[-1][1].waits
        return quantile([b - a for a, b in zip(first, last)] if len(self._recent) > 1 else last, share)
