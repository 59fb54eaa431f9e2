"""The decisions of a node over all its lives, from its own lines and from those of the oracle in its process."""

from dataclasses import dataclass, field
from typing import Any

LOCAL, REMOTE, FALLBACK = 0, 1, 2  # as the oracle prints them


@dataclass(kw_only=True)
class Account:
    """Counts what a node did. labels: the remote model's, for each sample. The counters from `foreign` on must stay 0."""

    samples: int
    labels: list[int]
    decided: dict[int, int] = field(default_factory=dict)  # sample -> source of its decision
    lessons: dict[int, int] = field(default_factory=dict)  # sample -> the label that taught the policy
    late: int = 0  # lessons of samples that the node had already decided
    worst_ms: float = 0.0  # from a sample's slot to its decision, by the true clock
    latencies: list[float] = field(default_factory=list)  # of recent decisions, for the soak
    lives: int = 0
    restored: int = 0
    stops: int = 0  # lives that SIGTERM or SIGINT ended
    unsaved: int = 0
    sensor_errors: int = 0
    foreign: int = 0  # requests that reached another model's workers
    twice: int = 0  # decisions for a sample that already had one
    taught_twice: int = 0  # lessons of a sample that had already taught, or of no sample
    wrong_class: int = 0  # local decisions and fallbacks that were not the policy's class
    wrong_label: int = 0  # remote decisions and lessons that were not the remote model's label
    miscounted: int = 0  # lessons that only the node or only the oracle counted
    unlearned: int = 0  # lessons of an orderly life that its successor did not know
    unreadable: int = 0  # snapshots that a node could not use

    def begin(self, row: dict[str, Any], saved: int | None) -> None:
        """Begin a life. saved: lessons that its snapshot must hold; None if it may hold fewer."""
        self.restored += row["restored"]
        self.miscounted += max(0, row["taught"] - len(self.lessons))
        if saved is not None:
            self.unlearned += max(0, saved - row["taught"])

    def lesson(self, n: int, label: int) -> None:
        """Record that a label of sample n taught the policy, as the oracle reports."""
        self.taught_twice += n in self.lessons or n < 0
        self.late += n in self.decided
        self.lessons[n] = label
        self.wrong_label += label != self.labels[n]

    def record_decision(self, n: int, row: dict[str, Any]) -> None:
        """Record a decision about sample n, and the lesson that came with it, as the oracle reports."""
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
