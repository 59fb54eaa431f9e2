"""Makes an initial table for the adaptive policy, P(event) of each score bin, from a few labelled samples."""

import numpy as np

WORTH = 20.0  # weight of the smooth curve in a bin, in labels
ROUNDS = 25


def table(score: np.ndarray, label: np.ndarray, bits: int) -> list[float]:
    """Estimate P(event) of each bin.

    It fits a curve sigma(a logit(f) + c), with a penalty that pulls it towards the scores (a = 1, c = 0) (Platt, 1999). Then it
    adds
    the labels of each bin: a bin without labels keeps the curve, in a bin with many the labels dominate.

    Args:
        score: (n,) in [0, 1].
        label: (n,) of 0 and 1.
        bits: Score bits.

    Returns:
        2^bits probabilities.
    """
    n = 2**bits
    a, c = _curve(score, label)
    middle = (np.arange(n) + 0.5) / n
    curve = _sigmoid(a * _logit(middle) + c)
    bins = np.minimum((score * n).astype(int), n - 1)
    labels, events = np.bincount(bins, minlength=n), np.bincount(bins, weights=label, minlength=n)
    return [float(p) for p in (events + WORTH * curve) / (labels + WORTH)]


def _curve(score: np.ndarray, label: np.ndarray) -> tuple[float, float]:
    """Return a and c by Newton's method. The penalty (a - 1)^2 + c^2 / 4 keeps them finite if a score separates the labels."""
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
