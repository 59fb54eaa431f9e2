"""Made-up traces: scores from two Gaussians truncated to (0, 1), with the errors of a row of the paper's table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...common.errors import UserError
from ..traces import Trace


@dataclass(frozen=True)
class Preset:
    """samples: the row's test size; fp, fn: errors as shares of all samples; events: share of class 1 (of the real set, or a
    half where the paper does not say); spread: standard deviation of both Gaussians before they are cut."""

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
    """The trace of a preset: exactly its shares of events, false positives and false negatives, to a sample."""
    if name not in PRESETS:
        raise UserError(f"preset {name}: not one of {', '.join(PRESETS)}")
    preset = PRESETS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    count = preset.samples
    events = round(preset.events * count)
    scores = []
    for size, low in ((count - events, count - events - round(preset.fp * count)), (events, round(preset.fn * count))):
        mean = _mean(low / size, preset.spread)
        for side, above in ((low, False), (size - low, True)):  # so many below one half, the others above
            scores.append(_half(rng, mean, preset.spread, side, above))
    label = np.repeat([0, 1], [count - events, events])
    order = rng.permutation(count)
    return Trace(preset.title, np.concatenate(scores)[order], label[order])


def _below(mean: float, spread: float) -> float:
    """P(f < 1/2) of the Gaussian cut to (0, 1)."""
    low, middle, high = (0.5 * (1 + math.erf((x - mean) / (spread * math.sqrt(2)))) for x in (0.0, 0.5, 1.0))
    return (middle - low) / (high - low)


def _mean(below: float, spread: float) -> float:
    """The Gaussian's mean that puts this share below one half, by bisection."""
    low, high = -0.5, 1.5
    for _ in range(60):
        middle = (low + high) / 2
        if _below(middle, spread) > below:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _half(rng: np.random.Generator, mean: float, spread: float, count: int, above: bool) -> np.ndarray:
    """`count` draws of the Gaussian cut to (0, 1/2) or [1/2, 1), by rejection."""
    accepted: np.ndarray = np.zeros(0)
    while len(accepted) < count:
        draws = rng.normal(mean, spread, 4 * count + 100)
        inside = (draws >= 0.5) & (draws < 1) if above else (draws > 0) & (draws < 0.5)
        accepted = np.concatenate([accepted, draws[inside]])
    return accepted[:count]
