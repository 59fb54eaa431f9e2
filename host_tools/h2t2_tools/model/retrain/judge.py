"""Two local models on the same kept samples, which neither was trained on: how often right, how honest, what the policy would
have paid with each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.pairs import Pair
from ...common.policies import DEFAULTS
from ...fleet.rdl import models
from ...lab.simulation.policies.adaptive import Adaptive
from ...lab.simulation.policies.adaptive_classes import AdaptiveClasses
from ...lab.simulation.policies.base import Policy
from ...lab.simulation.stream import Costs
from ...lab.simulation.sweep import Job, sweep
from ...lab.traces import Trace
from ..exact import open_local
from .kept import Kept

PLAYED, RUNS = 5000, 10  # samples of a replay, and how many replays


@dataclass(frozen=True)
class Judged:
    """Of one model. accuracy: by what the samples stand for; brier: mean squared error of its scores, 0 is best; cost: a
    sample, of the adaptive policy with it, mean of RUNS replays, and sd, their standard deviation."""

    accuracy: float
    brier: float
    cost: float
    sd: float

    def told(self) -> dict[str, float]:
        return {name: round(value, 5) for name, value in vars(self).items()}


def scores(pair: Pair, x: np.ndarray) -> np.ndarray:
    """The int8 local model's, (n,) of class 1, or (n, K)."""
    event = None if pair.info.costs else pair.info.event_output("ldl")
    ldl = open_local(pair.ldl, event or 0)
    made = [ldl.scores(np.asarray(ldl.quantise(pair.model_input(row, "ldl"))).reshape(ldl.input_shape[1:])) for row in x]
    return models.picked(np.array(made), event)


def costs_of(pair: Pair) -> Costs:
    """The pair's, a missed event and a false alarm costing what they do by default."""
    about = pair.info
    if about.costs:
        return Costs.of(about.beta, about.costs)
    return Costs.binary(about.beta, DEFAULTS["delta_fp"], DEFAULTS["delta_fn"])


def judge(pair: Pair, held: Kept, seed: int = 0) -> Judged:
    """A pair's local model on held-out samples. They are played in proportion to what they stand for."""
    made = scores(pair, held.x)
    p = held.weight / held.weight.sum()
    right = models.labels(made) == held.y
    truth = np.eye(made.shape[1])[held.y] if made.ndim == 2 else held.y
    brier = ((made - truth) ** 2).reshape(len(made), -1).sum(1)
    drawn = np.random.default_rng(seed).choice(len(held), PLAYED, p=p)
    policy: Policy = AdaptiveClasses() if made.ndim == 2 else Adaptive()
    trace = Trace(pair.info.name, made[drawn], held.y[drawn])
    (result,) = sweep([Job(policy, trace, costs_of(pair), PLAYED, seed, RUNS)])
    return Judged(float(p @ right), float(p @ brier), float(result.mean("cost")), result.deviation("cost"))


def reliability(pair: Pair, held: Kept, bins: int = 10) -> list[dict[str, float]]:
    """[{"score", "right"}] a bin: the mean score of class 1 (of more classes than two: of the best one), and how often the
    remote model said so."""
    made = scores(pair, held.x)
    score, truth = (made.max(1), made.argmax(1) == held.y) if made.ndim == 2 else (made, held.y == 1)
    bin_of = np.minimum((score * bins).astype(int), bins - 1)
    rows = []
    for k in np.unique(bin_of):
        weight = held.weight[bin_of == k]
        mean = [float(np.average(value[bin_of == k], weights=weight)) for value in (score, truth)]
        rows.append({"score": mean[0], "right": mean[1]})
    return rows
