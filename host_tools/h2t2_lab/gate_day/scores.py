"""Simulated scores of a detector, and what fixed rules cost on them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from h2t2.core.defaults import BITS
from h2t2_tools.replay.simulation import stream as simulated
from h2t2_tools.replay.simulation.policies.baselines import OfflinePair

SPREAD = 0.15  # standard deviation of the scores around their middle
HIGHEST = 0.999
NOON = 12


@dataclass(frozen=True)
class Scores:
    """The scores of one stream: normally distributed around one middle for events and one for others.

    Attributes:
        share: of the messages that are events.
        event, noise: the middle of the scores of events, and of the others.
        drifted: the middles from noon on; None: as before.
        lowest: the smallest score that the detector reports.
    """

    share: float
    event: float
    noise: float
    drifted: tuple[float, float] | None = None
    lowest: float = 0.0

    def draw(self, hour: int, rng: random.Random) -> tuple[float, bool]:
        """A message's (score, whether it is an event)."""
        is_event = rng.random() < self.share
        event, noise = self.drifted if self.drifted and hour >= NOON else (self.event, self.noise)
        return min(HIGHEST, max(self.lowest, rng.gauss(event if is_event else noise, SPREAD))), is_event


@dataclass(frozen=True)
class Costs:
    """What an answer of the remote model and the two mistakes cost."""

    beta: float
    delta_fp: float
    delta_fn: float

    def of(self, decision: bool, is_event: bool, offloaded: bool) -> float:
        """The cost of a decision."""
        mistake = 0.0 if decision == is_event else self.delta_fn if is_event else self.delta_fp
        return mistake + (self.beta if offloaded else 0.0)

    def of_threshold(self, scores: Sequence[float], events: Sequence[bool], threshold: float) -> float:
        """The mean cost of a fixed threshold that asks nobody."""
        return float(np.mean([self.of(score >= threshold, event, False) for score, event in zip(scores, events)]))

    def of_best_pair(self, scores: Sequence[float], events: Sequence[bool]) -> float:
        """The mean cost of the best fixed pair of thresholds in hindsight, of all that a policy of BITS bits chooses from.

        Scores between the two thresholds are asked about.
        """
        stream = simulated.Stream(np.array(scores), np.array(events, np.int64), np.full(len(scores), self.beta))
        costs = simulated.Costs.binary(self.beta, self.delta_fp, self.delta_fn)
        return simulated.outcome(OfflinePair(BITS).act(stream, costs, 0), stream, costs).cost
