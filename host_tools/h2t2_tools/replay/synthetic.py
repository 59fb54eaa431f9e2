"""Synthetic traces: scores from two truncated Gaussians, with the error rates of a row of the paper's table."""

import math
from dataclasses import dataclass

import numpy as np

from ..common import places, toml_file
from ..common.errors import UserError
from ..common.event import titled_names
from .traces import Trace

SPREAD = 0.22  # standard deviation of both Gaussians before their truncation to (0, 1)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the paper's table, and what makes a synthetic trace of its errors.

    Attributes:
        name: Name of our trace.
        title: Name in the paper.
        samples: Test samples.
        accuracy, fp, fn: Shares of all samples, as the paper prints them.
        weak: A second model of ours whose errors are closer to the paper's; "": none.
        events: Share of class 1 in the real data; a half if the paper does not state it.
        event: What class 1 is, in words.
    """

    name: str
    title: str
    samples: int
    accuracy: float
    fp: float
    fn: float
    weak: str = ""
    events: float = 0.5
    event: str = "a made-up event"


ROWS = tuple(Row(name=name, **row) for name, row in toml_file.read_entries(places.PACKAGE / "replay/paper.toml").items())
PRESETS = {row.name: row for row in ROWS}


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
        mean = _mean(low / size, SPREAD)
        for side, above in ((low, False), (size - low, True)):  # counts below one half, and above
            scores.append(_half(rng, mean, SPREAD, side, above))
    label = np.repeat([0, 1], [count - events, events])
    order = rng.permutation(count)
    return Trace(preset.title, np.concatenate(scores)[order], label[order], names=titled_names(preset.event))


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
