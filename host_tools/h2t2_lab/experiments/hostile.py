"""Streams that are built to fool a policy. Their labels contradict the scores, or change when it hurts."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from h2t2_tools.replay.simulation.stream import Stream

BINS = 16
NEVER = 0.1  # share of labels that the stream with lost labels loses


@dataclass(frozen=True)
class _Draws:
    """Random material for a stream of T rounds, (T,) each.

    Attributes:
        t: Numbers of the rounds.
        k: A random bin.
        u: Uniform, in [0, 1).
        y: A label that is 1 with the probability in the middle of bin k.
        low: A random bin of the lowest quarter.
    """

    t: np.ndarray
    k: np.ndarray
    u: np.ndarray
    y: np.ndarray
    low: np.ndarray


def _after(draws: _Draws, share: float) -> np.ndarray:
    return draws.t >= share * len(draws.t)


_SURE = np.array([k <= 2 or k >= 13 for k in range(BINS)])

# name -> (bins, labels)
STREAMS: dict[str, Callable[[_Draws], tuple[np.ndarray, np.ndarray]]] = {
    "as the scores say": lambda d: (d.k, d.y),
    "flipped half-way": lambda d: (d.k, np.where(_after(d, 0.5), 1 - d.y, d.y)),
    "flipped half-way, sure bins only": lambda d: (d.k, np.where(_after(d, 0.5) & _SURE[d.k], 1 - d.y, d.y)),
    "flipped every 2,000 rounds": lambda d: (d.k, np.where(d.t // 2000 % 2 == 1, 1 - d.y, d.y)),
    "flipped every 300 rounds": lambda d: (d.k, np.where(d.t // 300 % 2 == 1, 1 - d.y, d.y)),
    "a stuck sensor": lambda d: (np.full(len(d.t), 5), d.u < 0.3 + 0.6 * d.t / len(d.t)),
    "events in bursts, at low scores": lambda d: (d.low, d.t % 2000 < 50),
    "rare events, at low scores": lambda d: (d.low, d.u < 0.01),
    "2 % events, then 60 %": lambda d: (d.k, d.u < np.where(_after(d, 0.5), 0.6, 0.02)),
    "rotating over the bins": lambda d: (d.k, d.u < ((d.k + d.t * BINS // 8000) % BINS + 0.5) / BINS),
    "upside down": lambda d: (d.k, 1 - d.y),
    "no information": lambda d: (d.k, d.u < 0.5),
    "all 0, then all 1": lambda d: (d.k, d.t >= 2000),
    "beta that swings": lambda d: (d.k, d.y),
    "labels 500 rounds late": lambda d: (d.k, np.where(_after(d, 0.5), 1 - d.y, d.y)),
    "a tenth of the labels lost": lambda d: (d.k, np.where(_after(d, 0.5), 1 - d.y, d.y)),
}


def make(name: str, samples: int, seed: int, beta: float) -> Stream:
    """Draw one of STREAMS.

    Args:
        name: Name of the stream.
        samples: Number of rounds.
        seed: Seed of the draws.
        beta: Cost of an offload, 0 to 1; one stream varies it.

    Returns:
        A stream whose scores are the middles of their bins.
    """
    rng = np.random.default_rng([seed, list(STREAMS).index(name), 6])
    k, u = rng.integers(0, BINS, samples), rng.random(samples)
    draws = _Draws(np.arange(samples), k, u, (u < (k + 0.5) / BINS).astype(int), rng.integers(0, 4, samples))
    bins, labels = STREAMS[name](draws)
    betas: np.ndarray = np.full(samples, beta)
    delay: np.ndarray | None = None
    if name == "beta that swings":
        betas = np.clip(beta * (1 + 0.9 * np.sin(draws.t / 300)), 0, 1)
    elif "late" in name:
        delay = np.full(samples, 500)
    elif "lost" in name:
        delay = np.where(rng.random(samples) < NEVER, -1, 0)
    return Stream((bins + 0.5) / BINS, np.asarray(labels).astype(np.int64), betas, delay)
