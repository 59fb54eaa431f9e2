"""What kept samples show about a local model: how often the remote model agrees, and how well its scores are calibrated.

Each sample counts as many samples as it stands for (Sample.weight), so that frequent offloads of a bin do not count more than
the bin occurs. Bins that are never offloaded do not appear. For three classes or more a bin says only how certain the local
model was, so there is no accuracy.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from h2t2.core.numbers import ONE

from .sample_store import Sample

PERIODS = 40  # the most periods of the figure over time
COLUMNS = [("at", "f8"), ("weight", "f8"), ("label", "i8"), ("bin", "i8"), ("explored", "?"), ("bytes", "i8")]


def by_device(samples: Iterable[Sample]) -> dict[str, np.ndarray]:
    """The COLUMNS of the samples of each device, a structured array (n,)."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for s in samples:
        explored = 0 < s.chance < ONE
        rows.setdefault(s.device, []).append((s.at, s.weight, s.label, s.bin, explored, len(s.data)))
    return {device: np.array(rows[device], COLUMNS) for device in sorted(rows)}


def local_labels(samples: np.ndarray, bits: int) -> np.ndarray:
    """The decisions of a local model of two classes, by the bins of its scores: class 1 from the middle on."""
    return np.asarray(samples["bin"] >> (bits - 1))


def accuracy(samples: np.ndarray, bits: int) -> tuple[float, float]:
    """The share with which the remote model agrees, and its standard error, by Kish's effective sample size."""
    weight = samples["weight"]
    p = float(np.average(local_labels(samples, bits) == samples["label"], weights=weight))
    worth = float(weight.sum() ** 2 / (weight**2).sum())
    return p, math.sqrt(max(p * (1 - p), 1 / (worth + 2)) / worth)


def to_json(samples: np.ndarray, bits: int) -> dict[str, Any]:
    """The samples of a device as JSON; docs/json.md says what each key means."""
    labels, counts = np.unique(samples["label"], return_counts=True)
    share, error = (round(value, 4) for value in accuracy(samples, bits)) if labels.max() < 2 else (None, None)
    return {
        "samples": len(samples), "first": round(float(samples["at"].min()), 3), "last": round(float(samples["at"].max()), 3),
        "explored": int(samples["explored"].sum()), "bytes": int(samples["bytes"].sum()),
        "labels": dict(zip(map(str, labels.tolist()), counts.tolist())),
        "stand_for": round(float(samples["weight"].sum()), 1), "accuracy": share, "error": error,
    }  # fmt: skip


def over_time(samples: np.ndarray, bits: int) -> list[dict[str, Any]]:
    """[{"at", "accuracy", "error", "samples"}] of equal periods from the first sample to the last that have samples."""
    first, last = float(samples["at"].min()), float(samples["at"].max())
    step = max((last - first) / PERIODS, 1.0)
    periods = ((samples["at"] - first) / step).astype(int)
    rows = []
    for n in np.unique(periods).tolist():
        share, error = accuracy(samples[periods == n], bits)
        at = first + (n + 0.5) * step
        rows.append({"at": at, "accuracy": share, "error": error, "samples": int((periods == n).sum())})
    return rows


def reliability(samples: np.ndarray, bits: int) -> list[dict[str, Any]]:
    """[{"bin", "score", "events", "samples"}] of two classes: each bin's middle, and the share of class 1."""
    rows = []
    for k in np.unique(samples["bin"]).tolist():
        own = samples[samples["bin"] == k]
        events = float(np.average(own["label"] == 1, weights=own["weight"]))
        rows.append({"bin": k, "score": (k + 0.5) / (1 << bits), "events": events, "samples": len(own)})
    return rows
