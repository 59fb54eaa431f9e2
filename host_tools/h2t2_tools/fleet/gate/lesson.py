"""What a label of an offload teaches, apart from the ticket: it survives the ticket, a restart, and an outage of a day."""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict, dataclass
from typing import Any

from h2t2.core.tickets import BETA, BIN, CHANCE, FIELDS, LOCAL


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """The fields of a ticket, as h2t2.core.tickets defines them, and what kinds of policies keep beside it.

    Attributes:
        bin: of the score; of more than two classes, the cell.
        beta: what the offload was charged, Q15.
        local: the class to act on without an answer.
        chance: what divides the label's loss, Q29.
        probability: of the offload, Q15.
        wish: wish and guess of the adaptive policies.
        round: what a limit for misses keeps.
        features: of a sample for a policy with a head: score in 1/256, then the features.
        kind: class of the policy; "" in lessons of older gates.
    """

    bin: int
    beta: int
    local: int
    chance: int
    probability: int
    wish: int = 0
    round: int = 0
    features: tuple[int, ...] = ()
    kind: str = ""

    @classmethod
    def take(cls, policy: Any, features: tuple[int, ...] = ()) -> Lesson:
        """The lesson of the offload that a policy has just decided. Its ticket ends: teach() opens another."""
        ticket, slots = policy.ticket, policy.tickets.slots
        at = ticket % policy.tickets.window
        slot = at * FIELDS
        lesson = cls(
            bin=slots[slot + BIN],
            beta=slots[slot + BETA],
            local=slots[slot + LOCAL],
            chance=slots[slot + CHANCE],
            probability=policy.offload_chance(),
            wish=policy.wishes[at] if hasattr(policy, "wishes") else 0,
            round=policy.rounds[at] if hasattr(policy, "rounds") else 0,
            features=features,
            kind=type(policy).__name__,
        )
        policy.tickets.take(ticket)
        return lesson

    def fits(self, policy: Any) -> bool:
        """Whether a policy can learn from the lesson: another kind, other classes or other features cannot."""
        cells = (policy.classes if policy.classes > 2 else 1) << policy.bits
        numbers = 1 + policy.features if hasattr(policy, "features") else 0
        same_kind = self.kind in ("", type(policy).__name__)
        return same_kind and self.bin < cells and self.local < policy.classes and len(self.features) == numbers

    def teach(self, policy: Any, label: int) -> bool:
        """Let a label teach a policy what it would have taught in time. Returns whether it taught something."""
        ticket = policy.tickets.open(self.bin, self.beta, self.local, self.chance)
        at = ticket % policy.tickets.window
        if hasattr(policy, "wishes"):
            policy.wishes[at] = self.wish
        if hasattr(policy, "rounds"):
            policy.rounds[at] = self.round
        if self.features:
            policy.forecaster.see(array("i", self.features))
            policy.forecaster.heads.keep(at)
        return bool(policy.learn(ticket, label))

    def as_json(self) -> str:
        """The lesson as the backlog stores it."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Lesson:
        """The lesson that as_json() wrote."""
        entries = json.loads(text)
        return cls(**{**entries, "features": tuple(entries["features"])})


NO_LESSON = Lesson(bin=0, beta=0, local=0, chance=0, probability=0)
