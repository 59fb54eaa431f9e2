"""Which numbers are scores: one rule for local and remote models, the gate and the Router."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a help text needs no numpy
    import numpy as np

Q14 = 16384  # a score of 1, of a model of many classes
LOWEST, HIGHEST = -0.01, 1.01  # rounding of floats and of int8 outputs leaves 0 to 1 by so little


def are_scores(low: float, high: float) -> bool:
    """Whether numbers between these two are scores. NaN is none."""
    return bool(low >= LOWEST and high <= HIGHEST)


def within(scores: np.ndarray) -> np.ndarray:
    """Scores cut to 0 to 1."""
    return scores.clip(0, 1)
