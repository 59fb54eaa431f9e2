"""What a label of an offload teaches, apart from the ticket: it survives the ticket, a restart, and an outage of a day."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

FORMER_KINDS = {"MissLimited": "AdaptiveMissRate", "MissGuaranteed": "AdaptiveMissGuarantee"}  # names in stored lessons


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What Policy.lesson() returns, and whom it fits.

    Attributes:
        bin: of the score; of more than two classes, the cell.
        beta: what the offload was charged, Q15.
        local: the class to act on without an answer.
        chance: what divides the label's loss, Q29.
        probability: of the offload, Q15.
        wish: wish and guess of the adaptive policies.
        round: what a limit for misses keeps.
        counted: what head_saving.count_saving() returned.
        features: of a sample for a policy with heads: score in 1/256, or the scores of all classes, Q14, then the features.
        past: of a policy with a past: that of the sample.
        clock: of such a policy: the round of the sample.
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
    past: tuple[int, ...] = ()
    clock: int = 0
    kind: str = ""
    bits: int = 0
    classes: int = 0
    model: int = 0

    @classmethod
    def of(cls, policy: Any) -> Lesson:
        """The lesson of the offload that a policy has just decided. Its ticket stays outstanding."""
        return cls(
            **policy.lesson(policy.ticket),
            probability=policy.offload_chance(),
            kind=_kind(policy),
            bits=policy.bits,
            classes=policy.classes,
        )

    @classmethod
    def take(cls, policy: Any) -> Lesson:
        """As of(), and the ticket ends."""
        lesson = cls.of(policy)
        policy.tickets.take(policy.ticket)
        return lesson

    def fits(self, policy: Any) -> bool:
        """Whether a policy can learn from the lesson: another kind, other bins, classes or features cannot."""
        own = Lesson.of(policy)
        cells = (own.classes if own.classes > 2 else 1) << own.bits
        same_kind = self.kind in ("", own.kind) and self.bits in (0, own.bits) and self.classes in (0, own.classes)
        same_sample = (len(self.features), len(self.past)) == (len(own.features), len(own.past))
        in_range = 0 <= self.bin < cells and 0 <= self.local < own.classes and all(-128 <= x < 128 for x in self.past)
        return same_kind and same_sample and in_range and self.model in (0, own.model)

    def teach(self, policy: Any, label: int) -> bool:
        """Let a label teach a policy what it would have taught in time, as Policy.teach()."""
        return bool(policy.teach(vars(self), label))

    def as_json(self) -> str:
        """The lesson as a queue stores it."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Lesson:
        """The lesson that as_json() wrote. ValueError, TypeError or KeyError for another text."""
        entries = {**json.loads(text)}  # TypeError for a list
        entries["kind"] = FORMER_KINDS.get(entries.get("kind", ""), entries.get("kind", ""))
        lesson = cls(**{**entries, "features": tuple(entries["features"]), "past": tuple(entries.get("past", ()))})
        numbers = [value for name, value in asdict(lesson).items() if name not in ("kind", "features", "past")]
        if any(type(number) is not int for number in (*numbers, *lesson.features, *lesson.past)):
            raise ValueError("a lesson holds whole numbers")
        return lesson


def _kind(policy: Any) -> str:
    """The kind of a policy with that of its limit."""
    return type(policy).__name__ + (type(policy.limit).__name__ if policy.limit else "")


NO_LESSON = Lesson(bin=0, beta=0, local=0, chance=0, probability=0)
