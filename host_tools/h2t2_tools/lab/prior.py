"""A table to start from: how often each score bin holds an event, from labelled samples, few as they may be."""

from __future__ import annotations

import numpy as np

WORTH = 20.0  # labels that the smooth curve counts as in a bin
ROUNDS = 25


def table(score: np.ndarray, label: np.ndarray, bits: int) -> list[float]:
    """P(event) of every one of the 2^bits bins. score: (n,) in [0, 1]; label: (n,) of 0 and 1.

    A curve sigma(a logit(f) + c), drawn towards the scores themselves (a = 1, c = 0), is fitted first (Platt, 1999), and
    each bin's own labels are added to it: where there are none the curve stands, where there are many they do.
    """
    n = 2**bits
    a, c = _curve(score, label)
    middle = (np.arange(n) + 0.5) / n
    curve = _sigmoid(a * _logit(middle) + c)
    bins = np.minimum((score * n).astype(int), n - 1)
    labels, events = np.bincount(bins, minlength=n), np.bincount(bins, weights=label, minlength=n)
    return [float(p) for p in (events + WORTH * curve) / (labels + WORTH)]


def _curve(score: np.ndarray, label: np.ndarray) -> tuple[float, float]:
    """a and c, by Newton's method; a penalty of (a - 1)^2 + c^2 / 4 keeps them finite where the labels are separated."""
    x = _logit(score)
    at = np.array([1.0, 0.0])
    rows = np.stack([x, np.ones_like(x)], 1)
    pull = np.array([2.0, 0.5])
    for _ in range(ROUNDS):
        q = _sigmoid(rows @ at)
        gradient = rows.T @ (q - label) + pull * (at - [1.0, 0.0])
        curvature = (rows * (q * (1 - q))[:, None]).T @ rows + np.diag(pull)
        at = at - np.linalg.solve(curvature, gradient)
    return float(at[0]), float(at[1])


def _logit(f: np.ndarray) -> np.ndarray:
    f = np.clip(f, 0.01, 0.99)
    return np.asarray(np.log(f / (1 - f)))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-np.maximum(x, -700.0))))
