"""A random trace, and offloads under a budget, for the tests of the simulation."""

import numpy as np

from h2t2_tools.replay.simulation.stream import Costs
from h2t2_tools.replay.traces import Trace

COSTS = Costs.binary(0.3, 0.7, 1.0)


def made_up(samples=400, seed=1, classes=2):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, samples)
    if classes > 2:
        score = rng.dirichlet(np.ones(classes), samples)
        score[np.arange(samples), label] += 0.5
        return Trace("made up", score / score.sum(1, keepdims=True), label)
    return Trace("made up", np.clip(rng.normal(0.3 + 0.4 * label, 0.2), 0, 1), label)


def offloads(budget, samples, ms, size):
    """Return how many of the samples, one every `ms`, a budget can offload if each takes `size` bytes."""
    spent = 0
    for _ in range(samples):
        budget.earn(ms, -1)
        if budget.affords(size):
            budget.spend(size)
            spent += 1
    return spent
