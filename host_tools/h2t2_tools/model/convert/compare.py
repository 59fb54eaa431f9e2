"""Compares the float and the int8 model: errors, calibration, and the policy's decisions."""

from typing import Any

import numpy as np

from ...common import policies
from ...replay.scoring import confusion

BINS = 10  # of the score, for its reliability
ROUNDS = 5000  # of the policy, on samples drawn with replacement
NUMBERS = {"bits": 4, "beta": 0.3, "feedback": "all", "exploration": "anytime", "seed": 1}


def errors(score: np.ndarray, label: np.ndarray) -> dict[str, float]:
    """accuracy, fp and fn (shares of all samples), ece; score: (n,) of class 1, label: (n,) in {0, 1}."""
    return {
        **confusion(score, label),
        "ece": sum(abs(row["score"] - row["share"]) * row["count"] for row in reliability(score, label)) / len(label),
    }


def reliability(score: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> list[dict[str, float]]:
    """Per bin of the score that is not empty: mean score, share of class 1, count (Guo et al., ICML 2017).

    score, label, weight: (n,) of each sample; without a weight all count the same.
    """
    bin_of = np.minimum((score * BINS).astype(int), BINS - 1)
    rows = []
    for k in np.unique(bin_of):
        inside = bin_of == k
        means = (np.average(values[inside], weights=None if weight is None else weight[inside]) for values in (score, label))
        rows.append({**dict(zip(("score", "share"), map(float, means))), "count": int(inside.sum())})
    return rows


def decisions(exact: np.ndarray, rounded: np.ndarray, label: np.ndarray) -> dict[str, Any]:
    """H2T2 (all, anytime, b = 4, beta = .3) on the float scores and on the int8 ones, same draws: what differs.

    exact, rounded: (n,) scores in [0, 1]; label: (n,), what the remote model would say.
    """
    order = np.random.default_rng(1).integers(0, len(label), ROUNDS)
    actions = []
    bins = [np.minimum((score * 16).astype(int), 15) for score in (exact, rounded)]
    for k in bins:
        policy = policies.make("h2t2", NUMBERS)
        sequence = []
        for n in order:
            action = policy.decide(int(k[n]))
            sequence.append(action)
            if action < 0:
                policy.learn(policy.ticket, int(label[n]))
        actions.append(np.array(sequence))
    return {
        "rounds": ROUNDS,
        "decisions_differ": int((actions[0] != actions[1]).sum()),
        "samples": len(label),
        "bins_differ": int((bins[0] != bins[1]).sum()),
        "offloads": [float((a < 0).mean()) for a in actions],
    }
