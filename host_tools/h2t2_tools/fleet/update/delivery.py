"""The delivery of one package to one device: which chunk is next, how the trial ends. No network here."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from h2t2.node.package import MOST_DATA

from ..command import parse_answer
from ..monitoring.state import State, Update
from .signed_package import Package

WINDOW = 4  # chunks without an answer
AGAIN_S = 3.0  # without an answer; then the device is asked for its offset
ASKING, SENDING, DELIVERED, TRIAL = "asking", "sending", "delivered", "on trial"  # phases of a delivery
INSTALLED, ROLLED_BACK, REFUSED, LOST = "kept", "back", "refused", "lost"  # outcomes, which end it
ENDED = INSTALLED, ROLLED_BACK, REFUSED, LOST


@dataclass
class Delivery:
    """A delivery. Times are those of one monotonic clock, in seconds.

    Args:
        package, device: what is delivered, and to whom.
        patience: seconds without progress after which it is lost.
        trial: seconds for the trial.
        phase: its phase or outcome.
        reason: the reason, in words.
        received_bytes: bytes that the device has received.
        last_progress: when the device last made progress.
        resent_offset: the offset from which chunks were sent a second time; -1: none.
        trial_end: when the trial ends at the earliest, as far as samples and seconds tell.
        last_question: when the device was last asked for its offset.
        sent_bytes: bytes that were sent.
        is_transferred: False where the device had the package already.
        state: the state with which the device kept the package.
    """

    package: Package
    device: str
    patience: float
    trial: float
    _: KW_ONLY
    phase: str = ASKING
    reason: str = ""
    received_bytes: int = 0
    last_progress: float = 0.0
    resent_offset: int = -1
    trial_end: float = 0.0
    last_question: float = 0.0
    sent_bytes: int = 0
    is_transferred: bool = True
    state: State | None = None

    def check_before(self, state: State | None, clock_s: float) -> None:
        """Check the device's state before anything is sent: refuse, or find the package there."""
        self.last_progress = clock_s
        if state is None or state.update is None:
            no_key = "it takes no updates: its configuration has no update_key"
            self._end(REFUSED, no_key if state else "it has never published a state")
        elif self._has(state.update):
            self.take_state(state, clock_s)
            self.is_transferred = self.phase not in ENDED
        elif obstacle := self._obstacle(state, state.update):
            self._end(REFUSED, obstacle)

    def _has(self, update: Update) -> bool:
        """Whether a device has tried the package."""
        return self.package.head.counter in (self._in_force(update)[0], update.tried)

    def _obstacle(self, state: State, update: Update) -> str:
        """Why a device would refuse the package; "": it would not."""
        head = self.package.head
        if state.model != head.model and not head.runtime:
            return f"it asks model {state.model}, the package is of model {head.model}"
        if update.tried > head.counter:
            remedy = "sign again; was that one's clock wrong? docs/updates.md, A wrong clock"
            return f"it has tried package {update.tried} already, this one is {head.counter}: {remedy}"
        if update.trial:
            return f"package {update.tried} is on trial there"
        if state.bits and self._prior_does_not_fit(state.bits):
            return f"it has {state.bits} score bits, the package's prior has another number: sign it with --no-prior"
        return ""

    def _in_force(self, update: Update) -> tuple[int, str]:
        return update.in_force(self.package.head.runtime)

    def _prior_does_not_fit(self, bits: int) -> bool:
        prior = self.package.details.get("arguments", {}).get("prior")
        return prior is not None and len(prior) != 1 << bits

    def take_state(self, state: State, clock_s: float) -> None:
        """Take a state of the device: the trial is under way, or ends."""
        update = state.update
        counter = self.package.head.counter
        if update is None or not self._has(update) or self.phase in ENDED:
            return
        if self._is_another_package(state):
            self._end(REFUSED, f"it knows another package with the counter {counter}: sign this one again, with a higher one")
        elif self._in_force(update)[0] != counter:
            self._end(ROLLED_BACK, update.said.removeprefix("back: "))
        elif not update.trial:
            self._end(INSTALLED, update.said.removeprefix("kept: "))
            self.state = state
        else:
            if self.phase != TRIAL:
                self.last_progress = clock_s
            self.phase, self.received_bytes = TRIAL, len(self.package.content)
            samples_s = (update.trial - state.samples) * state.uptime_s / state.samples if state.samples else 0.0
            self.trial_end = clock_s + max(update.seconds - state.uptime_s, samples_s)
            self.reason = f"{state.samples} of {update.trial} samples, {state.uptime_s} of {update.seconds} s"

    def _is_another_package(self, state: State) -> bool:
        """Whether the device has a package of this counter with other content. An older runtime does not publish the id."""
        update = state.update
        if update is None:
            return False
        counters = self._in_force(update), (update.tried, update.tried_id)
        return any(n == self.package.head.counter and name not in ("", f"{self.package.id:08x}") for n, name in counters)

    def take_answer(self, payload: bytes, clock_s: float) -> None:
        """Take an answer of the device, perhaps to a chunk of this package."""
        answer = parse_answer(payload[:1000], f"u{self.package.id:08x}")
        offset = answer["next"] if answer and isinstance(answer.get("next"), int) else -1
        if answer is None or offset < 0 or self.phase not in (ASKING, SENDING):
            return
        if not answer["ok"]:
            self._end(REFUSED, str(answer["why"])[:300])
            return
        self.last_question = clock_s
        offset = min(offset, len(self.package.content))
        if offset > self.received_bytes:
            self.last_progress = clock_s
        elif self.phase == SENDING and self.resent_offset != offset:  # a chunk is lost, and the device ignores those behind it
            self.sent_bytes = self.resent_offset = offset
        if self.phase == ASKING:
            self.sent_bytes = offset
        self.phase, self.received_bytes = SENDING, offset
        if self.received_bytes == len(self.package.content):
            self.phase = DELIVERED

    def next_payloads(self, online: bool, clock_s: float) -> list[bytes]:
        """The payloads to send now. A delivery without progress for too long ends as lost."""
        if self.phase in ENDED:
            return []
        limit = self.trial if self.phase == TRIAL else self.patience
        if clock_s - self.last_progress > limit:
            unheard = f"{self.phase}, and then {'silent' if online else 'offline'} for {limit:g} s"
            self._end(LOST, f"{self.reason} in {limit:g} s" if self.phase == TRIAL else unheard)
            return []
        if not online or self.phase in (DELIVERED, TRIAL):
            return []
        if clock_s - self.last_question > AGAIN_S:
            self.last_question, self.phase = clock_s, ASKING
            return [self.package.question()]
        chunks = []
        end = min(len(self.package.content), self.received_bytes + WINDOW * MOST_DATA)
        while self.phase == SENDING and self.sent_bytes < end:
            chunks.append(self.package.chunk(self.sent_bytes))
            self.sent_bytes += MOST_DATA
        return chunks

    def lose(self, reason: str) -> None:
        """End the delivery as lost, unless it has ended. reason: in words."""
        if self.phase not in ENDED:
            self._end(LOST, reason)

    def _end(self, phase: str, reason: str) -> None:
        self.phase, self.reason = phase, reason

    def to_json(self) -> dict[str, Any]:
        """The delivery in the report of --json."""
        return {"device": self.device, "outcome": self.phase, "why": self.reason, "sent": self.received_bytes}


class KeyDelivery(Delivery):
    """The delivery of a key, which has no trial."""

    def _has(self, update: Update) -> bool:
        return update.key == self.package.new_key

    def _obstacle(self, state: State, update: Update) -> str:
        if not update.key:
            return "its runtime knows no packages that replace a key: flash the new key by cable"
        if update.key_counter < self.package.head.counter:
            return ""
        came = f"which came with the counter {update.key_counter}: see docs/updates.md, A wrong clock"
        return f"it trusts key {update.key}, {came}"

    def take_state(self, state: State, clock_s: float) -> None:
        """Take a state of the device: it may trust the key."""
        if state.update and self._has(state.update) and self.phase not in ENDED:
            self._end(INSTALLED, f"it trusts key {self.package.new_key}")
            self.state = state
