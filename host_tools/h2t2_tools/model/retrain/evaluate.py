"""Compares local models on samples of the field that none was trained on: errors, calibration, and the policy's cost."""

from dataclasses import dataclass

import numpy as np

from ...common.pairs import Pair
from ...common.policies import DEFAULTS
from ...fleet.rdl import models
from ...replay.simulation.policies.base import Policy
from ...replay.simulation.policies.learners import Adaptive, AdaptiveClasses
from ...replay.simulation.stream import Costs
from ...replay.simulation.sweep import Job, sweep
from ...replay.traces import Trace
from ..convert import compare
from ..exact import open_local
from .field_samples import FieldSamples

SAMPLES, RUNS = 5000, 10  # samples of a replay, and how many replays


@dataclass(frozen=True)
class Evaluation:
    """One local model on held-out samples, each counted by its weight.

    Attributes:
        accuracy: Share of the samples on which it agrees with the remote model.
        brier: Mean squared error of its scores; 0 is best.
        cost: A sample, of the adaptive policy with this model: mean of RUNS replays.
        sd: Standard deviation of the replays' costs.
    """

    accuracy: float
    brier: float
    cost: float
    sd: float

    def rounded(self) -> dict[str, float]:
        """The figures by name, five digits each."""
        return {name: round(value, 5) for name, value in vars(self).items()}


def scores(pair: Pair, x: np.ndarray) -> np.ndarray:
    """Scores of the pair's int8 local model: (n,) of class 1, or (n, K) of every class."""
    event = None if pair.info.costs else pair.info.event_output("ldl")
    ldl = open_local(pair.ldl, event or 0)
    outputs = [ldl.scores(np.asarray(ldl.quantise(pair.model_input(row, "ldl"))).reshape(ldl.input_shape[1:])) for row in x]
    return models.picked(np.array(outputs), event)


def evaluate(pair: Pair, samples: FieldSamples, seed: int = 0) -> Evaluation:
    """Evaluate a pair's local model. Replays draw samples in proportion to their weights."""
    info, output = pair.info, scores(pair, samples.x)
    p = samples.weight / samples.weight.sum()
    correct = models.labels(output) == samples.y
    truth = np.eye(output.shape[1])[samples.y] if output.ndim == 2 else samples.y
    squared_error = ((output - truth) ** 2).reshape(len(output), -1).sum(1)
    drawn = np.random.default_rng(seed).choice(len(samples), SAMPLES, p=p)
    trace = Trace(info.name, output[drawn], samples.y[drawn])
    policy: Policy
    if info.costs:
        policy, costs = AdaptiveClasses(), Costs.of(info.beta, info.costs)
    else:
        policy, costs = Adaptive(), Costs.binary(info.beta, DEFAULTS["delta_fp"], DEFAULTS["delta_fn"])
    (result,) = sweep([Job(policy, trace, costs, SAMPLES, seed, RUNS)])
    return Evaluation(float(p @ correct), float(p @ squared_error), float(result.mean("cost")), result.deviation("cost"))


def reliability(pair: Pair, samples: FieldSamples) -> list[dict[str, float]]:
    """Rows of compare.reliability(): the score of class 1 (of many classes: of the best one), and the share of samples, as
    often as their weights say, for which the remote model says this class."""
    output = scores(pair, samples.x)
    if output.ndim == 2:
        return compare.reliability(output.max(1), output.argmax(1) == samples.y, samples.weight)
    return compare.reliability(output, samples.y == 1, samples.weight)
