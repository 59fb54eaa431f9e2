"""Policies that do not learn online: the filters of KubeEdge Sedna, and thresholds that stay as labelled samples set them."""

from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy
from .local import local
from .offline import thresholds


@dataclass(frozen=True)
class Filter(Policy):
    """KubeEdge Sedna's filters of hard samples (sedna.algorithms.hard_example_mining), applied to a classifier.

    "threshold" offloads a confidence below .9, the value in Sedna's documentation. "entropy" offloads if 1 - (entropy in nats)
    is below .5, Sedna's default. The third filter, IBT, counts the boxes of a detector. With one box a picture it is a
    threshold of .5, which two classes always reach, so it would never offload.
    """

    kind: str = "threshold"

    @property
    def name(self) -> str:
        return f"Sedna's {self.kind} filter"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        confidence, guess, _ = local(stream, costs)
        if self.kind == "threshold":
            hard = confidence < 0.9
        else:
            f = np.clip(stream.q14 / 16384, 1e-9, 1)
            hard = 1 + (f * np.log(f)).sum(1) < 0.5
        return np.where(hard, -1 - guess, guess)


@dataclass(frozen=True)
class FixedPair(Policy):
    """The best pair of thresholds for the first `samples` of `labelled`, or of the stream itself. It never changes."""

    samples: int = 200
    bits: int = 4
    labelled: Stream | None = None

    @property
    def name(self) -> str:
        return f"best pair of {self.samples} samples, kept"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        labelled = self.labelled or stream
        n = min(self.samples, len(labelled))
        i, j = thresholds(Stream(labelled.score[:n], labelled.label[:n], np.full(n, costs.beta)), costs, self.bits)
        bins = stream.bins(self.bits)
        return np.where(bins < i, 0, np.where(bins < j, -1 - (stream.score >= 0.5), 1))
