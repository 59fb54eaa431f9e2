"""One device as the fleet's broker tells of it: its last state, what it did of late, when it started."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from h2t2.link import wire

from .costs import Costs, of_counters
from .state import State

RECENT_S = 60  # rates are taken over so long, where there were states that long ago
JITTER_S = 5  # uptimes are whole seconds and messages take their time: a start is not dated anew for less
EACH_S = 5  # between two that are remembered for that: a device's memory here stays small
STARTS_S = 3600.0  # starts are remembered for so long
SPAN = 250  # samples between two histograms that are remembered
USUAL = 1000  # samples that make the histogram which later ones are held against


class Counted(NamedTuple):
    """What of a state rates are made of."""

    uptime_s: int
    samples: int
    offloads: int
    without: int
    saturated: int
    sensor_errors: int
    act_errors: int

    @classmethod
    def of(cls, state: State) -> Counted:
        without = state.fallbacks + state.unasked + state.crowded + state.unaffordable
        known = (state.uptime_s, state.samples, state.offloads, without, state.saturated)
        return cls(*known, state.sensor_errors, state.act_errors)


@dataclass(frozen=True)
class Rates:
    """Of the last minute or so. per_s: samples a second; offloads, fallbacks, saturated: shares of its samples; fallbacks are
    all that were decided without asking or being answered, as one could not. sensor_errors, act_errors: exceptions."""

    samples: int
    per_s: float
    offloads: float
    fallbacks: float
    saturated: float
    sensor_errors: int
    act_errors: int


@dataclass
class Device:
    """name: in the topics. online: as its status says; None before one came. since: when this start of it was, Unix seconds, by
    the uptime that it tells; before it has told one, when we first saw it. heard: when it last said anything, 0: never since we
    listen. decided: when it was last seen to have decided a sample, 0: not since we listen. step: what the last state that
    told of new samples added. starts: when it began anew, as seen from here. usual: the histogram of its first scores. off_s:
    how far its clock is off, by its last state."""

    name: str
    online: bool | None = None
    boot: int = -1
    since: float = 0.0
    heard: float = 0.0
    decided: float = 0.0
    step: Counted | None = None
    state: State | None = None
    off_s: float | None = None
    starts: deque[float] = field(default_factory=lambda: deque(maxlen=64))
    usual: list[int] | None = None
    _recent: deque[Counted] = field(default_factory=lambda: deque(maxlen=RECENT_S // EACH_S + 2))
    _scores: deque[tuple[int, list[int]]] = field(default_factory=lambda: deque(maxlen=3))
    _left: int = -1  # the start in which its model changed last

    def take_status(self, payload: bytes, now: float) -> None:
        """Its retained status, or last will."""
        online = payload.startswith(b"online")
        if not online and not payload.startswith(b"offline"):
            return
        self.online = online
        boot = wire.boot_of(payload)
        if online and boot >= 0:
            self._started(boot, now)

    def take_state(self, state: State, now: float, retained: bool) -> None:
        """Its state; retained: from before we listened."""
        if state.boot:
            self._started(state.boot, now)
        counted = Counted.of(state)
        if not retained:
            self.heard = now
            self.off_s = None if not state.time else state.time - now
            self._decides(state, counted, now)
        self._dates(state, now, retained)
        if self._recent and (counted.uptime_s < self._recent[-1].uptime_s or counted.samples < self._recent[-1].samples):
            self._recent.clear()  # it began anew, or another bears its name
            self._scores.clear()
        if not self._recent or counted.uptime_s - self._recent[-1].uptime_s >= EACH_S:
            self._recent.append(counted)
        if self.state and _counter(self.state) != _counter(state):
            self.usual = None  # another model's scores are spread in another way
            self._scores.clear()
            # it runs from the next start on: what this one has counted is of the model before
            self._left = state.boot if state.boot == self.state.boot else -1
        self.state = state
        self._histogram(state)

    def _decides(self, state: State, counted: Counted, now: float) -> None:
        """Notice whether it has decided anything since its last state."""
        before = Counted.of(self.state) if self.state and self.state.boot == state.boot and self.decided else None
        if before is None or counted.samples < before.samples or counted.uptime_s < before.uptime_s:
            self.step, self.decided = None, now  # a new start, or the first that we hear
        elif counted.samples > before.samples:
            self.step, self.decided = Counted(*(a - b for a, b in zip(counted, before))), now

    def _dates(self, state: State, now: float, retained: bool) -> None:
        """When this start of it was. A retained state is of some time ago: it tells where the device's clock is set."""
        told = state.time if retained and state.time and state.time < now else now
        since = told - state.uptime_s
        if abs(since - self.since) > JITTER_S:
            self.since = since

    def _started(self, boot: int, now: float) -> None:
        if boot == self.boot:
            return
        if self.boot >= 0:
            self.starts.append(now)
            self._recent.clear()
            self._scores.clear()
        self.boot, self.since = boot, now

    def _histogram(self, state: State) -> None:
        if state.scores is None or state.boot == self._left:
            return
        seen = sum(state.scores)
        if self.usual is None and seen >= USUAL:
            self.usual = list(state.scores)
        if not self._scores or seen - self._scores[-1][0] >= SPAN:
            self._scores.append((seen, list(state.scores)))

    @property
    def lately(self) -> list[int] | None:
        """The histogram of its last SPAN to 3 SPAN scores, None where there were fewer, or what is usual is not known yet."""
        if self.usual is None or self.state is None or self.state.scores is None or not self._scores:
            return None
        now = self.state.scores
        for _, before in self._scores:
            made = [a - b for a, b in zip(now, before)]
            if len(before) == len(now) and sum(made) >= SPAN and min(made) >= 0:
                return made
        return None

    def restarts(self, now: float) -> int:
        """Starts of the last hour, but the first that was seen."""
        return sum(now - at <= STARTS_S for at in self.starts)

    def rates(self) -> Rates | None:
        """What it did of late, by its own clock; None where too little is known."""
        if self.state is None or not self._recent:
            return None
        end = Counted.of(self.state)
        long_ago = (counted for counted in reversed(self._recent) if end.uptime_s - counted.uptime_s >= RECENT_S)
        began = next(long_ago, self._recent[0])
        seconds, samples = end.uptime_s - began.uptime_s, end.samples - began.samples
        if seconds < EACH_S or samples < 0:
            return None
        gained = Counted(*(a - b for a, b in zip(end, began)))
        shares = (gained.offloads / max(1, samples), gained.without / max(1, samples), gained.saturated / max(1, samples))
        return Rates(samples, samples / seconds, *shares, gained.sensor_errors, gained.act_errors)

    def costs(self) -> Costs | None:
        """A sample, since its start."""
        state = self.state
        if state is None or not state.scores or not state.answered or not state.local_cost or state.beta is None:
            return None
        return of_counters(state.scores, state.answered, state.local_cost, state.paid, state.beta)


def _counter(state: State) -> int:
    """Of the update package that is in force there, 0: none."""
    return state.update.counter if state.update else 0
