"""What a label of an offload teaches, apart from the ticket: it survives the ticket, a restart, and an outage of a day."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from h2t2.core.head import STORED
from h2t2.core.policy import MAX_TICKET
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
        counted: what HeadSaving.count() returned.
        features: of a sample for a policy with heads: score in 1/256, or the scores of all classes, Q14, then the features.
        kind: class of the policy; "" in lessons of older gates.
        bits, classes: of the policy; 0 in lessons of older gates.
        model: number of the local model that gives the features; 0: unknown.
    """

    bin: int
    beta: int
    local: int
    chance: int
    probability: int
    wish: int = 0
    round: int = 0
    counted: int = 0
    features: tuple[int, ...] = ()
    kind: str = ""
    bits: int = 0
    classes: int = 0
    model: int = 0

    @classmethod
    def of(cls, policy: Any, features: tuple[int, ...] = ()) -> Lesson:
        """The lesson of the offload that a policy has just decided. Its ticket stays outstanding."""
        ticket, slots = policy.ticket, policy.tickets.slots
        at = ticket % policy.tickets.window
        slot = at * FIELDS
        return cls(
            bin=slots[slot + BIN],
            beta=slots[slot + BETA],
            local=slots[slot + LOCAL],
            chance=slots[slot + CHANCE],
            probability=policy.offload_chance(),
            wish=policy.wishes[at] if hasattr(policy, "wishes") else 0,
            round=policy.rounds[at] if hasattr(policy, "rounds") else 0,
            counted=policy.counted[at] if hasattr(policy, "counted") else 0,
            features=features,
            kind=type(policy).__name__,
            bits=policy.bits,
            classes=policy.classes,
            model=_model_of(policy),
        )

    @classmethod
    def take(cls, policy: Any, features: tuple[int, ...] = ()) -> Lesson:
        """As of(), and the ticket ends: teach() opens another."""
        lesson = cls.of(policy, features)
        policy.tickets.take(policy.ticket)
        return lesson

    def fits(self, policy: Any) -> bool:
        """Whether a policy can learn from the lesson: another kind, other bins, classes or features cannot."""
        scores = policy.classes if policy.classes > 2 else 1
        cells = scores << policy.bits
        numbers = scores + policy.features if hasattr(policy, "features") else 0
        same_kind = self.kind in ("", type(policy).__name__)
        same_size = self.bits in (0, policy.bits) and self.classes in (0, policy.classes)
        in_range = 0 <= self.bin < cells and 0 <= self.local < policy.classes
        return same_kind and same_size and in_range and len(self.features) == numbers and self.model in (0, _model_of(policy))

    def teach(self, policy: Any, label: int) -> bool:
        """Let a label teach a policy what it would have taught in time. Returns whether it taught something.

        Outstanding tickets and the numbers of the next ones stay as they are.
        """
        with _own_ticket(policy):
            ticket = policy.tickets.open(self.bin, self.beta, self.local, self.chance)
            at = ticket % policy.tickets.window
            for column, entry in (("wishes", self.wish), ("rounds", self.round), ("counted", self.counted)):
                if hasattr(policy, column):
                    getattr(policy, column)[at] = entry
            if self.features:
                policy.forecaster.see(array("i", self.features))
                policy.forecaster.heads.keep(at)
            return bool(policy.learn(ticket, label))

    def as_json(self) -> str:
        """The lesson as a queue stores it."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Lesson:
        """The lesson that as_json() wrote. ValueError, TypeError or KeyError for another text."""
        entries = json.loads(text)
        lesson = cls(**{**entries, "features": tuple(entries["features"])})
        numbers = [value for name, value in asdict(lesson).items() if name not in ("kind", "features")]
        if any(type(number) is not int for number in (*numbers, *lesson.features)):
            raise ValueError("a lesson holds whole numbers")
        return lesson


def _model_of(policy: Any) -> int:
    """The number of the local model whose features a policy's head learns from; 0: it has no head, or it is unknown."""
    return int(policy.forecaster.heads.model) if hasattr(policy, "features") else 0


@contextmanager
def _own_ticket(policy: Any) -> Iterator[None]:
    """Lend the slot of the next ticket, and give its content, the numbering and the count of lost tickets back."""
    tickets = policy.tickets
    last, lost = tickets.last, tickets.lost
    at = (last % MAX_TICKET + 1) % tickets.window
    columns = [(tickets.slots, at, FIELDS)]
    columns += [(getattr(policy, name), at, 1) for name in ("wishes", "rounds", "counted") if hasattr(policy, name)]
    if hasattr(policy, "features"):
        for heads in getattr(policy.forecaster.heads, "of_class", (policy.forecaster.heads,)):
            columns += [(heads.rows, STORED + at, heads.width), (heads.answers, STORED + at, 1)]
    contents = [values[n * width : (n + 1) * width] for values, n, width in columns]
    try:
        yield
    finally:
        tickets.last, tickets.lost = last, lost
        for (values, n, width), content in zip(columns, contents):
            values[n * width : (n + 1) * width] = content
        if hasattr(policy, "features"):
            policy.forecaster.heads.slot = -1  # its sample is no longer the current one


NO_LESSON = Lesson(bin=0, beta=0, local=0, chance=0, probability=0)
