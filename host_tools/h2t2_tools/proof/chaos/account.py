"""What a node did over all its lives, from its own lines and from those of the oracle in its process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LOCAL, REMOTE, FALLBACK = 0, 1, 2  # as the oracle tells them


@dataclass(kw_only=True)
class Account:
    """What a node did. labels: of the remote model, for each sample. The counters from `foreign` on must stay 0."""

    samples: int
    labels: list[int]
    decided: dict[int, int] = field(default_factory=dict)  # sample -> where the decision came from
    reported: int = 0  # decisions that the node reported
    lessons: dict[int, int] = field(default_factory=dict)  # sample -> its label, as it taught
    late: int = 0  # lessons of samples that had been decided by then
    worst_ms: float = 0.0  # from a sample's slot to its decision, by the true clock
    latencies: list[float] = field(default_factory=list)  # of now and then, for the soak
    lives: int = 0
    restored: int = 0
    stops: int = 0  # ended by SIGTERM or SIGINT
    unsaved: int = 0
    sensor_errors: int = 0
    foreign: int = 0  # requests that reached another model's workers
    twice: int = 0  # decisions for a sample that had one
    taught_twice: int = 0  # lessons of a sample that had taught, or of none
    wrong_class: int = 0  # local decisions and fallbacks that were not the policy's class
    wrong_label: int = 0  # remote decisions and lessons that were not the remote model's label
    miscounted: int = 0  # lessons that the node counts and the oracle has not seen, or the other way round
    unlearned: int = 0  # lessons of a life that had ended in order and whose successor did not know them
    unreadable: int = 0  # snapshots that were not used

    def begin(self, row: dict[str, Any], saved: int | None) -> None:
        """A life begins. saved: how many lessons its snapshot must hold, None where it may hold fewer."""
        self.restored += row["restored"]
        self.miscounted += max(0, row["taught"] - len(self.lessons))
        if saved is not None:
            self.unlearned += max(0, saved - row["taught"])

    def lesson(self, n: int, label: int) -> None:
        """The oracle reports that a label of sample n taught the policy."""
        self.taught_twice += n in self.lessons or n < 0
        self.late += n in self.decided
        self.lessons[n] = label
        self.wrong_label += label != self.labels[n]

    def record_decision(self, n: int, row: dict[str, Any]) -> None:
        """The oracle reports a decision about sample n, and its lesson, if it brought one."""
        if row["lesson"] >= 0:
            self.lesson(n, row["lesson"])
        self.twice += n in self.decided
        self.decided[n] = row["source"]
        self.worst_ms = max(self.worst_ms, row["ms"])
        self.latencies.append(row["ms"])
        if row["source"] == REMOTE:
            self.wrong_label += row["decision"] != self.labels[n]
        else:
            self.wrong_class += row["decision"] != row["want"]
