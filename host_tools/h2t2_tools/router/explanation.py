"""What a router has learned, by the local model's score: a table, and a picture for a notebook."""

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import numpy as np

from h2t2.core.numbers import ONE

from .decision_log import Log, Report, embedded


@dataclass(frozen=True, kw_only=True)
class Row:
    """Samples whose local score lies between two bounds.

    Attributes:
        low, high: The bounds of the score of class 1; of more than two classes, of the largest score.
        samples: Number of decisions.
        asked: Share of them for which the remote model was asked; 0 without samples.
        events: Share of class 1, of two classes; None: nothing tells it.
        local_cost: Cost of a local decision; None: nothing tells it.
    """

    low: float
    high: float
    samples: int
    asked: float
    events: float | None
    local_cost: float | None


@dataclass(frozen=True, repr=False, kw_only=True)
class Explanation:
    """What a router has learned. Printed, it is a table; a notebook also shows the picture.

    Attributes:
        rows: A row for each bin of the score, at most 16.
        report: What the decisions cost, beside always and never asking.
        best_pair: Cost a sample of the best fixed thresholds in hindsight, of two classes; None: nothing tells it.
        thresholds: That pair, scores: ask from the first to below the second.
    """

    rows: list[Row]
    report: Report
    best_pair: float | None = None
    thresholds: tuple[float, float] | None = None

    @property
    def costs(self) -> dict[str, float]:
        """Costs a sample, as far as something tells them: name -> 0..1."""
        report = self.report
        costs = {"this router": report.own, "always asking": report.always, "never asking": report.never}
        costs["best thresholds in hindsight"] = self.best_pair
        return {name: cost for name, cost in costs.items() if cost is not None}

    def __str__(self) -> str:
        lines = [f"{'score':>11} {'samples':>8} {'asked':>6} {'events':>7} {'local cost':>11}"]
        for row in self.rows:
            events, cost = (f"{value:.2f}" if value is not None else "-" for value in (row.events, row.local_cost))
            lines.append(f"{row.low:.2f} - {row.high:.2f} {row.samples:8,} {row.asked:6.0%} {events:>7} {cost:>11}")
        costs = ", ".join(f"{name} {value:.3f}" for name, value in self.costs.items())
        return "\n".join([*lines, f"cost a sample: {costs}"])

    __repr__ = __str__

    def picture(self, path: str | Path | BinaryIO) -> None:
        """Draw the shares of questions and of events by score, and the costs, as a PNG."""
        from ..common import plots

        plots.learned_by_score(
            Path(path) if isinstance(path, str) else path,
            np.array([(row.low, row.high, row.asked) for row in self.rows]),
            {
                "share of events": [row.events for row in self.rows],
                "cost of a local decision": [row.local_cost for row in self.rows],
            },
            self.costs if self.report.own is not None else {},
            str(self.report).partition(" (")[0],
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<pre>{self}</pre>{embedded(self.picture, 'what the router has learned')}"


def explain(log: Log, labels: np.ndarray | None) -> Explanation:
    """Return what the decisions of a log show. labels: as of Log.report."""
    policy, asking = log.policy, log.asking
    places, bins = len(asking.scores), np.array(log.bins, int) >> asking.shift
    samples = np.bincount(bins, minlength=places)
    offloads = np.array(log.offloads, float)
    share_asked = np.bincount(bins, offloads, places) / np.maximum(samples, 1)
    report = log.report(labels)
    local_cost = None if report.unasked is None else np.bincount(bins, report.unasked, places) / np.maximum(samples, 1)
    judged, events = (
        (samples, np.bincount(bins, labels == 1, places)) if labels is not None else (asking.answered, asking.events)
    )
    events, judged = np.array(events, float), np.array(judged, float)
    two = policy.classes == 2
    mean = float(events.sum()) / max(float(judged.sum()), 1.0)
    shares = (events + mean / 4) / (judged + 0.25)  # a bin with few answers leans on the mean of all
    low = 0.0 if two else 1 / policy.classes
    bounds = np.linspace(low, 1, places + 1)
    rows = [
        Row(
            low=float(bounds[n]),
            high=float(bounds[n + 1]),
            samples=int(samples[n]),
            asked=float(share_asked[n]),
            events=float(events[n] / judged[n]) if two and judged[n] else None,
            local_cost=float(local_cost[n]) if local_cost is not None and samples[n] else None,
        )
        for n in range(places)
    ]
    if not two or not judged.sum():
        return Explanation(rows=rows, report=report)
    cost, first, last = _best_pair(samples, shares, policy.beta / ONE, policy.delta_fp / ONE, policy.delta_fn / ONE)
    thresholds = float(bounds[first]), float(bounds[last])
    return Explanation(rows=rows, report=report, best_pair=cost / max(1, len(bins)), thresholds=thresholds)


def _best_pair(
    samples: np.ndarray, events: np.ndarray, beta: float, delta_fp: float, delta_fn: float
) -> tuple[float, int, int]:
    """(cost, i, j): the cheapest pair answers 0 below bin i, asks from i to j - 1, answers 1 from j on.

    samples, events: (bins,), numbers of samples and shares of class 1.
    """
    answer_0, offload, answer_1 = (
        [0.0, *accumulate(samples * cost)] for cost in (events * delta_fn, np.full(len(samples), beta), (1 - events) * delta_fp)
    )
    pairs = [(i, j) for i in range(len(offload)) for j in range(i, len(offload))]
    return min((answer_0[i] + offload[j] - offload[i] + answer_1[-1] - answer_1[j], i, j) for i, j in pairs)
