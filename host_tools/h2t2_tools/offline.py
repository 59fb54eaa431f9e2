"""Offline optima on a finished stream: the best fixed pair of thresholds, and the best single one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Outcome:
    """What fixed decisions cost: 0, 1 or 2 (offload) a sample. All shares are of all samples."""

    cost: float
    fp: float
    fn: float
    offload: float


def outcome(actions: np.ndarray, remote: np.ndarray, beta: float, delta_fp: float, delta_fn: float) -> Outcome:
    """Average cost of actions (n,) in {0, 1, 2} against the remote labels (n,), equations (1) and (2) of the paper."""
    offload = actions == 2
    fp = (actions == 1) & (remote == 0)
    fn = (actions == 0) & (remote == 1)
    cost = beta * offload + delta_fp * fp + delta_fn * fn
    return Outcome(float(cost.mean()), float(fp.mean()), float(fn.mean()), float(offload.mean()))


def best_pair(
    bins: np.ndarray, remote: np.ndarray, bits: int, beta: float, delta_fp: float, delta_fn: float
) -> tuple[tuple[int, int], np.ndarray]:
    """((i, j), actions): the fixed pair of thresholds of lowest cost in hindsight, theta* of equation (6). O(N)."""
    n = 2**bits
    ones = np.bincount(bins, weights=remote, minlength=n)
    count = np.bincount(bins, minlength=n)
    miss, alarm, offload = delta_fn * ones, delta_fp * (count - ones), beta * count
    lower = np.concatenate([[0.0], np.cumsum(miss - offload)])[:n]  # i: relative to offloading everything below it
    upper = np.concatenate([[0.0], np.cumsum(offload - alarm)])[:n]
    best_i = np.array([int(np.argmin(lower[: j + 1])) for j in range(n)])
    j = int(np.argmin(lower[best_i] + upper))
    i = int(best_i[j])
    return (i, j), np.where(bins < i, 0, np.where(bins < j, 2, 1))


def best_single(
    scores: np.ndarray, remote: np.ndarray, beta: float, delta_fp: float, delta_fn: float
) -> tuple[float, np.ndarray]:
    """(theta, actions): offload while the confidence max(f, 1 - f) is below theta, else argmax; theta-dagger, in hindsight."""
    confidence = np.maximum(scores, 1 - scores)
    guess = (scores >= 0.5).astype(int)
    local = np.where(guess == remote, 0.0, np.where(guess == 1, delta_fp, delta_fn))
    order = np.argsort(confidence, kind="stable")
    total = np.concatenate([[local.sum()], local.sum() + np.cumsum((beta - local)[order])])
    ordered = confidence[order]
    cut = np.concatenate([[True], ordered[1:] > ordered[:-1], [True]])  # equal confidences share one fate
    m = int(np.argmin(np.where(cut, total, np.inf)))
    theta = float(ordered[m]) if m < len(ordered) else 1.01
    return theta, np.where(confidence < theta, 2, guess)
