"""The confidence of the local class and the cost of that class, which the single-threshold policies read."""

import numpy as np

from ..stream import Costs, Stream


def local(stream: Stream, costs: Costs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return max f, argmax f and the cost of that class, (T,) each. In a binary tie the class is 1."""
    if stream.score.ndim == 1:
        guess = (stream.score >= 0.5).astype(np.int64)
        confidence = np.maximum(stream.score, 1 - stream.score)
    else:
        guess = stream.score.argmax(1)
        confidence = stream.score.max(1)
    return confidence, guess, np.array(costs.matrix)[stream.label, guess]
