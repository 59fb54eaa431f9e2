"""One device as its messages on the broker describe it: last state, recent rates, starts."""

from __future__ import annotations

from collections import deque
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import NamedTuple

from h2t2.link import presence

from .costs import Costs
from .excess import ANSWERS, Excess, of_states
from .histograms import stability
from .savings import Saved, costs_of, saved_so_far
from .state import State
from .words import ANSWERED, LINKS

RECENT_S = 60  # rates cover so long, if the device has published states for so long
JITTER_S = 5  # uptimes are whole seconds and messages are delayed: a smaller difference is no new start
EACH_S = 5  # between two states that are remembered for rates
STARTS_S = 3600.0  # starts are counted for so long
SPAN = 250  # samples between two histograms that are remembered
USUAL = 1000  # samples of the first histogram, with which later ones are compared


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counters of a state that rates are computed from."""

    uptime_s: int
    samples: int
    offloads: int
    unaffordable: int
    saturated: int
    sensor_errors: int
    act_errors: int
    unserved: int

    @classmethod
    def of(cls, state: State) -> Counted:
        unserved = state.fallbacks + state.unasked + state.crowded + state.unaffordable
        same = {field.name: getattr(state, field.name) for field in fields(cls) if field.name != "unserved"}
        return cls(**same, unserved=unserved)

    def since(self, before: Counted) -> Counted:
        """What was counted after an earlier state."""
        return Counted(**{name: counter - getattr(before, name) for name, counter in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Rates of the last minute or so.

    Args:
        samples: decided in that time.
        per_s: samples a second.
        offloads: share of the samples.
        fallbacks: share of the samples that the device wanted to offload and decided locally.
        unaffordable: share of the samples that came while the budget was empty; a part of `fallbacks`.
        saturated: share of the samples.
        sensor_errors, act_errors: exceptions.
    """

    samples: int
    per_s: float
    offloads: float
    fallbacks: float
    unaffordable: float
    saturated: float
    sensor_errors: int
    act_errors: int


class SlowFigures(NamedTuple):
    """Figures of a device that change slowly, computed from one of its states.

    Args:
        lately: the histogram of its last SPAN to 3 SPAN scores; None where there are fewer, or no usual histogram yet.
        stability: the population stability index between the usual histogram and lately; None where one is missing.
        costs: a sample's, since its start; None where its states do not hold the counters.
        saved: what it has saved since its start, as saved_so_far() tells it.
        excess: what its recent samples cost above the best simple choice; None where its states do not hold the counters.
            Recent samples are those since the latest remembered state with ANSWERS answers after it, or since the start.
    """

    lately: list[int] | None
    stability: float | None
    costs: Costs | None
    saved: Saved | None
    excess: Excess | None


NO_FIGURES = SlowFigures(None, None, None, None, None)


@dataclass
class Device:
    """A device. Times are Unix seconds of this machine.

    Args:
        name: in the topics.
        online: by its status; None before the first status.
        boot: the number of its start; -1 before the first message.
        since: when it started, by its uptime; before its first state, when its first message came.
        last_message: when it came; 0: none since we listen.
        last_decision: when a message last showed a new decision; 0: none since we listen.
        last_outage: when a state last said, or the one before it, that no worker answers; 0: none since we listen.
        last_step: counters that the last state with new samples added.
        unanswered: questions in a row that had no answer in time, of this start.
        starts: when the device started anew.
        usual: the histogram of its first scores.
        off_s: seconds by which its clock is ahead.
    """

    name: str
    online: bool | None = None
    boot: int = -1
    since: float = 0.0
    last_message: float = 0.0
    _: KW_ONLY
    last_decision: float = 0.0
    last_outage: float = 0.0
    last_step: Counted | None = None
    unanswered: int = 0
    state: State | None = None
    off_s: float | None = None
    starts: deque[float] = field(default_factory=lambda: deque(maxlen=64))
    usual: list[int] | None = None
    _recent: deque[Counted] = field(default_factory=lambda: deque(maxlen=RECENT_S // EACH_S + 2))
    _scores: deque[tuple[int, list[int]]] = field(default_factory=lambda: deque(maxlen=3))
    _states: deque[State] = field(default_factory=lambda: deque(maxlen=3))  # ANSWERS answers apart
    _counted: Counted | None = None  # the counters of `state`
    _figures_of: State | None = None  # the state that _figures were computed from
    _figures: SlowFigures = NO_FIGURES
    _changed_boot: int = -1  # the start in which its model changed last

    def take_status(self, payload: bytes, unix_s: float) -> None:
        """Take a retained status or last will."""
        online = payload.startswith(b"online")
        if not online and not payload.startswith(b"offline"):
            return
        self.online = online
        boot = presence.boot_of(payload)
        if online and boot >= 0:
            self._take_boot(boot, unix_s)

    def take_state(self, state: State, unix_s: float, retained: bool) -> None:
        """Take a state. retained: the broker kept it from before we listened."""
        if state.boot:
            self._take_boot(state.boot, unix_s)
        counted = Counted.of(state)
        if not retained:
            self.last_message = unix_s
            self.off_s = None if not state.time else state.time - unix_s
            self._note_decisions(state, counted, unix_s)
            if any(of.link in LINKS and of.link != ANSWERED for of in (self.state, state) if of):
                self.last_outage = unix_s
        self._date_start(state, unix_s, retained)
        if self._recent and (counted.uptime_s < self._recent[-1].uptime_s or counted.samples < self._recent[-1].samples):
            self._forget()  # it started anew, or another device has its name
        if not self._recent or counted.uptime_s - self._recent[-1].uptime_s >= EACH_S:
            self._recent.append(counted)
        if self.state and _package_counter(self.state) != _package_counter(state):
            self.usual = None  # another model has another distribution of scores
            self._scores.clear()
            # the new model runs from the next start on; the counters of this start are of the old model
            self._changed_boot = state.boot if state.boot == self.state.boot else -1
        if self.state and _prices(self.state) != _prices(state):
            self._states.clear()  # it was right at other costs
        if not self._states or state.replies - self._states[-1].replies >= ANSWERS:
            self._states.append(state)
        self.unanswered = self._count_unanswered(state)
        self.state, self._counted = state, counted
        self._histogram(state)

    def _count_unanswered(self, state: State) -> int:
        """The questions in a row without an answer in time, with those of a new state."""
        before = self.state
        if before is None or before.boot != state.boot or before.fallbacks > state.fallbacks or before.replies > state.replies:
            return 0 if state.replies else state.fallbacks
        return 0 if state.replies > before.replies else self.unanswered + state.fallbacks - before.fallbacks

    def _note_decisions(self, state: State, counted: Counted, unix_s: float) -> None:
        """Note whether it has decided samples since its last state."""
        before = self._counted if self.state and self.state.boot == state.boot and self.last_decision else None
        if before is None or counted.samples < before.samples or counted.uptime_s < before.uptime_s:
            self.last_step, self.last_decision = None, unix_s  # a new start, or its first state
        elif counted.samples > before.samples:
            self.last_step, self.last_decision = counted.since(before), unix_s

    def _date_start(self, state: State, unix_s: float, retained: bool) -> None:
        """Date this start. A retained state is old: only the device's own clock says how old."""
        published = state.time if retained and state.time and state.time < unix_s else unix_s
        since = published - state.uptime_s
        if abs(since - self.since) > JITTER_S:
            self.since = since

    def _take_boot(self, boot: int, unix_s: float) -> None:
        if boot == self.boot:
            return
        if self.boot >= 0:
            self.starts.append(unix_s)
            self._forget()
        self.boot, self.since = boot, unix_s

    def _forget(self) -> None:
        for earlier in (self._recent, self._scores, self._states):
            earlier.clear()

    def _histogram(self, state: State) -> None:
        if state.scores is None or state.boot == self._changed_boot:
            return
        count = sum(state.scores)
        if self.usual is None and count >= USUAL:
            self.usual = list(state.scores)
        if not self._scores or count - self._scores[-1][0] >= SPAN:
            self._scores.append((count, list(state.scores)))

    def slow_figures(self) -> SlowFigures:
        """The figures of a state at most EACH_S old."""
        state, before = self.state, self._figures_of
        if state is None:
            return NO_FIGURES
        same = before is not None and before.boot == state.boot and _prices(before) == _prices(state)
        fresh = same and before is not None and before.uptime_s < state.uptime_s < before.uptime_s + EACH_S
        if before is not state and not fresh:
            lately = self._lately()
            index = stability(self.usual, lately) if self.usual and lately and len(self.usual) == len(lately) else None
            told = SlowFigures(lately, index, costs_of(state), saved_so_far(state), self._excess())
            self._figures_of, self._figures = state, told
        return self._figures

    def _lately(self) -> list[int] | None:
        if self.usual is None or self.state is None or self.state.scores is None or not self._scores:
            return None
        scores = self.state.scores
        for _, before in self._scores:
            gained = [a - b for a, b in zip(scores, before)]
            if len(before) == len(scores) and sum(gained) >= SPAN and min(gained) >= 0:
                return gained
        return None

    def restarts(self, unix_s: float) -> int:
        """The number of starts within the last hour, without the first that we saw."""
        return sum(unix_s - at <= STARTS_S for at in self.starts) if self.starts else 0

    def rates(self) -> Rates | None:
        """Its recent rates, by its own clock; None before two states."""
        end = self._counted
        if self.state is None or end is None or not self._recent:
            return None
        began = self._recent[0]
        for counted in reversed(self._recent):
            if end.uptime_s - counted.uptime_s >= RECENT_S:
                began = counted
                break
        seconds, samples = end.uptime_s - began.uptime_s, end.samples - began.samples
        if seconds < EACH_S or samples < 0:
            return None
        gained = end.since(began)
        decided = max(1, samples)
        return Rates(
            samples=samples,
            per_s=samples / seconds,
            offloads=gained.offloads / decided,
            fallbacks=gained.unserved / decided,
            unaffordable=gained.unaffordable / decided,
            saturated=gained.saturated / decided,
            sensor_errors=gained.sensor_errors,
            act_errors=gained.act_errors,
        )

    def _excess(self) -> Excess | None:
        if self.state is None:
            return None
        long_ago = (state for state in reversed(self._states) if self.state.replies - state.replies >= ANSWERS)
        return of_states(next(long_ago, None), self.state)


def _prices(state: State) -> tuple[int | None, ...]:
    """The costs in force there."""
    return state.beta, state.delta_fp, state.delta_fn


def _package_counter(state: State) -> int:
    """Of the update package in force there; 0: none."""
    return state.update.counter if state.update else 0
