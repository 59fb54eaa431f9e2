"""Synthetic traces: scores from two truncated Gaussians, with the error rates of a row of the paper's table."""

import math
from dataclasses import dataclass

import numpy as np

from ...common.errors import UserError
from ..traces import Trace


@dataclass(frozen=True)
class Preset:
    """The statistics of a row of the paper's table.

    Attributes:
        title: Name of the row.
        samples: Size of its test set.
        fp, fn: False positives and negatives, as shares of all samples.
        events: Share of class 1 in the real data; a half if the paper does not state it.
        spread: Standard deviation of both Gaussians before their truncation to (0, 1).
    """

    title: str
    samples: int
    fp: float
    fn: float
    events: float = 0.5
    spread: float = 0.22


PRESETS = {
    "breakhis": Preset("BreakHis", 3365, 0.10, 0.18, 0.69),
    "chest": Preset("Chest", 278, 0.16, 0.20),
    "phishing": Preset("Phishing", 1106, 0.12, 0.13, 0.443),
    "synthetic": Preset("Synthetic", 100_000, 0.15, 0.19),
    "chest_xray": Preset("ChestXRay", 624, 0.18, 0.04, 0.625),
    "resnet_dogs": Preset("ResnetDogs", 2000, 0.15, 0.11),
    "logistic_dogs": Preset("LogisticDogs", 2000, 0.22, 0.22),
    "breach": Preset("BreaCh", 7909, 0.17, 0.38, 0.69),
    "x_ract": Preset("X-RaCT", 5856, 0.01, 0.64, 0.73),
}


def make(name: str, seed: int = 7) -> Trace:
    """Return a trace with exactly the events, false positives and false negatives of a preset, rounded to whole samples.

    Raises:
        UserError: No preset has this name.
    """
    if name not in PRESETS:
        raise UserError(f"preset {name}: not one of {', '.join(PRESETS)}")
    preset = PRESETS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    count = preset.samples
    events = round(preset.events * count)
    scores = []
    for size, low in ((count - events, count - events - round(preset.fp * count)), (events, round(preset.fn * count))):
        mean = _mean(low / size, preset.spread)
        for side, above in ((low, False), (size - low, True)):  # counts below one half, and above
            scores.append(_half(rng, mean, preset.spread, side, above))
    label = np.repeat([0, 1], [count - events, events])
    order = rng.permutation(count)
    return Trace(preset.title, np.concatenate(scores)[order], label[order])


def _below(mean: float, spread: float) -> float:
    """Return P(f < 1/2) for the Gaussian truncated to (0, 1)."""
    low, middle, high = (0.5 * (1 + math.erf((x - mean) / (spread * math.sqrt(2)))) for x in (0.0, 0.5, 1.0))
    return (middle - low) / (high - low)


def _mean(below: float, spread: float) -> float:
    """Return the mean of the Gaussian that has the share `below` under one half, by bisection."""
    low, high = -0.5, 1.5
    for _ in range(60):
        middle = (low + high) / 2
        if _below(middle, spread) > below:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _half(rng: np.random.Generator, mean: float, spread: float, count: int, above: bool) -> np.ndarray:
    """Draw `count` values of the Gaussian truncated to (0, 1/2) or [1/2, 1), by rejection."""
    accepted: np.ndarray = np.zeros(0)
    while len(accepted) < count:
        draws = rng.normal(mean, spread, 4 * count + 100)
        inside = (draws >= 0.5) & (draws < 1) if above else (draws > 0) & (draws < 0.5)
        accepted = np.concatenate([accepted, draws[inside]])
    return accepted[:count]
