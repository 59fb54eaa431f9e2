"""What kept samples show about a local model: how often the remote model agrees, and how well its scores are calibrated.

Each sample counts as many samples as it stands for (Sample.weight), so that frequent offloads of a bin do not count more than
the bin occurs. Bins that are never offloaded do not appear.
"""

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from h2t2.core.numbers import ONE

from .store import Sample

PERIODS = 40  # the most periods of the figure over time


@dataclass
class Sum:
    """A sum of samples, their weights, and the weights with which the remote model agrees."""

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
        """The share with which the remote model agrees; None without samples."""
        return self.agreed / self.weight if self.weight else None

    @property
    def error(self) -> float | None:
        """The standard error of the accuracy, by Kish's effective sample size."""
        if not self.weight:
            return None
        p, worth = self.agreed / self.weight, self.weight**2 / self.squares
        return math.sqrt(max(p * (1 - p), 1 / (worth + 2)) / worth)


@dataclass
class Bin:
    """A bin of scores: samples, their weight, and the weight of those that the remote model calls class 1."""

    samples: int = 0
    weight: float = 0.0
    events: float = 0.0


@dataclass
class Account:
    """The account of one device, or of all. For three classes or more a bin says only how certain the local model was, so there
    is no accuracy."""

    bits: int
    _: KW_ONLY
    first: float = math.inf
    last: float = 0.0
    explored: int = 0
    bytes: int = 0
    labels: dict[int, int] = field(default_factory=dict)
    total: Sum = field(default_factory=Sum)
    bins: dict[int, Bin] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        self.first, self.last = min(self.first, sample.at), max(self.last, sample.at)
        self.explored += 0 < sample.chance < ONE
        self.bytes += len(sample.data)
        self.labels[sample.label] = self.labels.get(sample.label, 0) + 1
        self.total.add(sample.weight, local_label(sample, self.bits) == sample.label)
        entry = self.bins.setdefault(sample.bin, Bin())
        entry.samples += 1
        entry.weight += sample.weight
        entry.events += sample.weight * (sample.label == 1)

    def to_json(self) -> dict[str, Any]:
        """As JSON; docs/json.md says what each key means."""
        total = self.total if max(self.labels, default=0) < 2 else Sum(self.total.samples)
        return {
            "samples": total.samples, "first": round(self.first, 3), "last": round(self.last, 3), "explored": self.explored,
            "bytes": self.bytes, "labels": {str(label): self.labels[label] for label in sorted(self.labels)},
            "stand_for": round(self.total.weight, 1), "accuracy": _rounded(total.accuracy), "error": _rounded(total.error),
        }  # fmt: skip


def local_label(sample: Sample, bits: int) -> int:
    """The decision of a local model of two classes, by the bin of its score: class 1 from the middle on."""
    return sample.bin >> (bits - 1)


def by_device(samples: Iterable[Sample], bits: int) -> dict[str, Account]:
    """An account a device."""
    accounts: dict[str, Account] = {}
    for sample in samples:
        accounts.setdefault(sample.device, Account(bits)).add(sample)
    return accounts


def over_time(samples: Iterable[Sample], bits: int, first: float, last: float) -> list[dict[str, Any]]:
    """[{"at", "accuracy", "error", "samples"}] of equal periods between first and last that have samples."""
    step = max((last - first) / PERIODS, 1.0)
    sums: dict[int, Sum] = {}
    for sample in samples:
        sums.setdefault(int((sample.at - first) / step), Sum()).add(sample.weight, local_label(sample, bits) == sample.label)
    return [
        {"at": first + (n + 0.5) * step, "accuracy": sums[n].accuracy, "error": sums[n].error, "samples": sums[n].samples}
        for n in sorted(sums)
    ]


def reliability(samples: Iterable[Sample], bits: int) -> list[dict[str, Any]]:
    """[{"bin", "score", "events", "samples"}] of two classes: each bin's middle, and the share of class 1."""
    account = Account(bits)
    for sample in samples:
        account.add(sample)
    return [
        {"bin": k, "score": (k + 0.5) / (1 << bits), "events": entry.events / entry.weight, "samples": entry.samples}
        for k, entry in sorted(account.bins.items())
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
