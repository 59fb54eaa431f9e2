from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy
from .confidence import local


@dataclass(frozen=True)
class OfflineSingle(Policy):
    """theta-dagger: the best single threshold on the confidence in hindsight, in O(N log N). Equal confidences act alike."""

    name = "offline single θ†"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        confidence, guess, _ = local(stream, costs)
        return np.where(confidence < threshold(stream, costs), -1 - guess, guess)


def threshold(stream: Stream, costs: Costs) -> float:
    """Return theta: the policy offloads lower confidences. 2.0 offloads everything."""
    confidence, _, wrong = local(stream, costs)
    order = np.argsort(confidence, kind="stable")
    total = wrong.sum() + np.concatenate([[0.0], np.cumsum((stream.beta - wrong)[order])])
    ordered = confidence[order]
    cut = np.concatenate([[True], ordered[1:] > ordered[:-1], [True]])
    m = int(np.argmin(np.where(cut, total, np.inf)))
    return float(ordered[m]) if m < len(ordered) else 2.0
