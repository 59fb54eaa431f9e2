"""What the single-threshold policies look at: the confidence of the local class, and what that class costs."""

from __future__ import annotations

import numpy as np

from ..stream import Costs, Stream


def local(stream: Stream, costs: Costs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(confidence, class, its cost) a sample, (T,) each: max f and argmax f (a tie goes to the higher class when binary)."""
    if stream.score.ndim == 1:
        guess = (stream.score >= 0.5).astype(np.int64)
        confidence = np.maximum(stream.score, 1 - stream.score)
    else:
        guess = stream.score.argmax(1)
        confidence = stream.score.max(1)
    return confidence, guess, np.array(costs.matrix)[stream.label, guess]
