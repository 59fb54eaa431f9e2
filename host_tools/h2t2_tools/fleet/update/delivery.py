"""One package to one device: which chunk is next, what the device has answered, what became of its trial. No network here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from h2t2.node.package import MOST_DATA

from ...common.untrusted import parse_json
from ..monitoring.state import State
from .package import Package

WINDOW = 4  # chunks on their way
AGAIN_S = 3.0  # without an answer, after which it is asked how far it has come
ASKING, SENDING, DELIVERED, TRIAL = "asking", "sending", "delivered", "on trial"  # where a delivery is
KEPT, BACK, REFUSED, LOST = "kept", "back", "refused", "lost"  # how it ended
ENDED = KEPT, BACK, REFUSED, LOST


@dataclass
class Delivery:
    """patience: seconds in which it must get on. trial: seconds for its trial. step: where it is; why: in words. done: bytes
    that have arrived. brought: whether anything was to be done; else the device had it already. state: the device's, as it was
    kept."""

    package: Package
    device: str
    patience: float
    trial: float
    step: str = ASKING
    why: str = ""
    done: int = 0
    heard: float = 0.0  # when it last got on
    again: int = -1  # where it was sent a chunk a second time
    asked: float = 0.0
    sent: int = 0
    brought: bool = True
    state: State | None = None

    def begin(self, state: State | None, now: float) -> None:
        """By what a device says of itself, before anything is sent."""
        self.heard = now
        told = state.update if state else None
        counter = self.package.head.counter
        if state is None or told is None:
            self._end(
                REFUSED, "it takes no updates: its configuration has no update_key" if state else "it has never said its state"
            )
        elif counter in (told.counter, told.tried):
            self.saw(state, now)
            self.brought = self.step not in ENDED
        elif state.model != self.package.head.model:
            self._end(REFUSED, f"it asks model {state.model}, the package is of model {self.package.head.model}")
        elif told.tried > counter:
            self._end(REFUSED, f"it has tried package {told.tried} already, this one is {counter}")
        elif told.trial:
            self._end(REFUSED, f"package {told.counter} is on trial there")
        elif state.bits and self._prior_of_others(state.bits):
            self._end(REFUSED, f"it has {state.bits} score bits, the package's prior is of others: sign it with --no-prior")

    def _prior_of_others(self, bits: int) -> bool:
        prior = self.package.more["arguments"].get("prior")
        return prior is not None and len(prior) != 1 << bits

    def saw(self, state: State, now: float) -> None:
        """It has told its state."""
        told = state.update
        counter = self.package.head.counter
        if told is None or counter not in (told.counter, told.tried) or self.step in ENDED:
            return
        if self._another(state):
            self._end(REFUSED, f"it knows another package with the counter {counter}: sign this one again, with a higher one")
        elif told.counter != counter:
            self._end(BACK, told.said.removeprefix("back: "))
        elif not told.trial:
            self._end(KEPT, told.said.removeprefix("kept: "))
            self.state = state
        else:
            if self.step != TRIAL:
                self.heard = now
            self.step, self.done = TRIAL, len(self.package.content)
            self.why = f"{state.samples} of {told.trial} samples, {state.uptime_s} of {told.seconds} s"

    def _another(self, state: State) -> bool:
        """Whether a device means a package with other content by this one's counter. An older runtime does not say."""
        update = state.update
        if update is None:
            return False
        counters = (update.counter, update.id), (update.tried, update.tried_id)
        return any(n == self.package.head.counter and name not in ("", f"{self.package.id:08x}") for n, name in counters)

    def answered(self, payload: bytes, now: float) -> None:
        """It has answered something, perhaps a chunk of ours."""
        answer = _read(payload)
        if answer is None or answer["id"] != f"u{self.package.id:08x}" or self.step not in (ASKING, SENDING):
            return
        if not answer["ok"]:
            self._end(REFUSED, str(answer["why"])[:300])
            return
        self.asked = now
        there = min(answer["next"], len(self.package.content))
        if there > self.done:
            self.heard = now
        elif self.step == SENDING and self.again != there:  # a chunk is lost, and those behind it are of no use
            self.sent = self.again = there
        if self.step == ASKING:
            self.sent = there
        self.step, self.done = SENDING, there
        if self.done == len(self.package.content):
            self.step = DELIVERED

    def next(self, online: bool, now: float) -> list[bytes]:
        """What to send it now; ends a delivery whose device is silent for too long."""
        if self.step in ENDED:
            return []
        wanted = self.trial if self.step == TRIAL else self.patience
        if now - self.heard > wanted:
            what = "offline" if not online else "silent"
            self._end(
                LOST, f"{self.step}, and then {what} for {wanted:g} s" if self.step != TRIAL else f"{self.why} in {wanted:g} s"
            )
            return []
        if not online or self.step in (DELIVERED, TRIAL):
            return []
        if now - self.asked > AGAIN_S:
            self.asked, self.step = now, ASKING
            return [self.package.question()]
        made = []
        while self.step == SENDING and self.sent < min(len(self.package.content), self.done + WINDOW * MOST_DATA):
            made.append(self.package.chunk(self.sent))
            self.sent += MOST_DATA
        return made

    def _end(self, step: str, why: str) -> None:
        self.step, self.why = step, why

    def told(self) -> dict[str, Any]:
        """For `--json`."""
        return {"device": self.device, "outcome": self.step, "why": self.why, "sent": self.done}


def _read(payload: bytes) -> dict[str, Any] | None:
    """An answer to a chunk, of untrusted bytes."""
    try:
        made = parse_json(payload[:1000])
    except ValueError:
        return None
    if not isinstance(made, dict) or not isinstance(made.get("next"), int) or made["next"] < 0:
        return None
    return made if "id" in made and isinstance(made.get("ok"), bool) and "why" in made else None
