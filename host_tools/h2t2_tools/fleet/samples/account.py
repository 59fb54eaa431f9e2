"""What kept samples say of a local model: how often the remote one agrees with it, and how its scores hold what they promise.

Each counts as many samples as it stands for (Sample.weight), so that what is asked about often does not count more than it
occurs. Bins that are never asked about are not seen by this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from h2t2.core.numbers import ONE

from .store import Sample

DAY_S = 86400.0
PERIODS = 40  # of the picture over time, at most


@dataclass
class Sum:
    """Samples, what they stand for, and how much of that the remote model agrees with."""

    samples: int = 0
    weight: float = 0.0
    squares: float = 0.0
    agreed: float = 0.0

    def add(self, weight: float, agrees: bool) -> None:
        self.samples += 1
        self.weight += weight
        self.squares += weight * weight
        self.agreed += weight * agrees

    @property
    def accuracy(self) -> float | None:
        """The share that is agreed with; None of none."""
        return self.agreed / self.weight if self.weight else None

    @property
    def error(self) -> float | None:
        """Its standard error, of as many samples as the weights are worth (Kish)."""
        if not self.weight:
            return None
        p, worth = self.agreed / self.weight, self.weight**2 / self.squares
        return math.sqrt(max(p * (1 - p), 1 / (worth + 2)) / worth)


@dataclass
class Bin:
    """Samples of a bin of scores: how many, what they stand for, and the share of that which the remote model calls class 1."""

    samples: int = 0
    weight: float = 0.0
    events: float = 0.0


@dataclass
class Account:
    """Of kept samples of one device, or of all. bins: of the local scores. Of more classes than two the bin says only how
    sure the local model was, so that there is no accuracy."""

    bits: int
    first: float = math.inf
    last: float = 0.0
    explored: int = 0
    bytes: int = 0
    labels: dict[int, int] = field(default_factory=dict)
    whole: Sum = field(default_factory=Sum)
    bins: dict[int, Bin] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        self.first, self.last = min(self.first, sample.at), max(self.last, sample.at)
        self.explored += 0 < sample.chance < ONE
        self.bytes += len(sample.data)
        self.labels[sample.label] = self.labels.get(sample.label, 0) + 1
        self.whole.add(sample.weight, local_label(sample, self.bits) == sample.label)
        one = self.bins.setdefault(sample.bin, Bin())
        one.samples += 1
        one.weight += sample.weight
        one.events += sample.weight * (sample.label == 1)

    def told(self) -> dict[str, Any]:
        """As JSON; docs/json.md says what each key means."""
        whole = self.whole if max(self.labels, default=0) < 2 else Sum(self.whole.samples)
        return {
            "samples": whole.samples, "first": round(self.first, 3), "last": round(self.last, 3), "explored": self.explored,
            "bytes": self.bytes, "labels": {str(label): self.labels[label] for label in sorted(self.labels)},
            "stand_for": round(self.whole.weight, 1), "accuracy": _rounded(whole.accuracy), "error": _rounded(whole.error),
        }  # fmt: skip


def local_label(sample: Sample, bits: int) -> int:
    """What a local model of two classes said, by the bin of its score: class 1 from the middle on."""
    return sample.bin >> (bits - 1)


def by_device(samples: Iterable[Sample], bits: int) -> dict[str, Account]:
    """An account a device."""
    made: dict[str, Account] = {}
    for sample in samples:
        made.setdefault(sample.device, Account(bits)).add(sample)
    return made


def over_time(samples: Iterable[Sample], bits: int, first: float, last: float) -> list[dict[str, Any]]:
    """[{"at", "accuracy", "error", "samples"}] of equal periods between the two, those without a sample left out."""
    step = max((last - first) / PERIODS, 1.0)
    sums: dict[int, Sum] = {}
    for sample in samples:
        sums.setdefault(int((sample.at - first) / step), Sum()).add(sample.weight, local_label(sample, bits) == sample.label)
    return [
        {"at": first + (n + 0.5) * step, "accuracy": sums[n].accuracy, "error": sums[n].error, "samples": sums[n].samples}
        for n in sorted(sums)
    ]


def reliability(samples: Iterable[Sample], bits: int) -> list[dict[str, Any]]:
    """[{"score", "events", "samples"}] a bin of two classes' scores: its middle, and the share that the remote model calls
    1."""
    account = Account(bits)
    for sample in samples:
        account.add(sample)
    return [
        {"bin": k, "score": (k + 0.5) / (1 << bits), "events": one.events / one.weight, "samples": one.samples}
        for k, one in sorted(account.bins.items())
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
