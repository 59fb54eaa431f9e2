"""One worker as the fleet's broker tells of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from h2t2.link import wire

from ..rdl.telemetry import EVERY_S, WorkerState
from .waits import quantile

RECENT_S = 30.0


@dataclass
class Worker:
    """model: the number it serves. name: its own. state: the last it said of itself; heard: when, Unix seconds."""

    model: int
    name: str
    state: WorkerState | None = None
    heard: float = 0.0
    _recent: deque[tuple[float, WorkerState]] = field(default_factory=lambda: deque(maxlen=round(RECENT_S / EVERY_S) + 1))

    def take(self, state: WorkerState, now: float) -> None:
        """Its state."""
        if self._recent and state.uptime_s < self._recent[-1][1].uptime_s:
            self._recent.clear()
        self._recent.append((now, state))
        self.state, self.heard = state, now

    def per_s(self) -> float | None:
        """Requests answered well a second, of late; None before it has said so twice."""
        if len(self._recent) < 2:
            return None
        (began, first), (ended, last) = self._recent[0], self._recent[-1]
        ok = wire.STATUS[wire.OK]
        return (last.replies.get(ok, 0) - first.replies.get(ok, 0)) / (ended - began) if ended > began else None

    def waits(self, share: float) -> float | None:
        """Milliseconds within which that share of the requests of late was answered, at most; None where there were none."""
        if not self._recent:
            return None
        first, last = self._recent[0][1].waits, self._recent[-1][1].waits
        return quantile([b - a for a, b in zip(first, last)] if len(self._recent) > 1 else last, share)
