"""Streams: samples of a trace with their costs, in the number formats that the policies read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from h2t2.core.numbers import ONE

from ...common.score_rules import Q14
from ..traces import Trace


@dataclass(frozen=True)
class Costs:
    """Costs in [0, 1].

    Attributes:
        beta: Cost of an offload.
        matrix: (K, K); matrix[i][j] is the cost of predicting j when the class is i.
        normal: The class that is no event; -1: nobody has named one of more than two.
    """

    beta: float
    matrix: tuple[tuple[float, ...], ...]
    normal: int = -1

    @staticmethod
    def binary(beta: float, delta_fp: float, delta_fn: float) -> Costs:
        return Costs(beta, ((0.0, delta_fp), (delta_fn, 0.0)), 0)

    @staticmethod
    def of(beta: float, matrix: np.ndarray | Sequence[Sequence[float]], normal: int = -1) -> Costs:
        """Create costs from a (K, K) matrix of any number type."""
        return Costs(float(beta), tuple(tuple(float(x) for x in line) for line in matrix), 0 if len(matrix) == 2 else normal)

    @property
    def delta_fp(self) -> float:
        return self.matrix[0][1]

    @property
    def delta_fn(self) -> float:
        return self.matrix[1][0]

    @cached_property
    def q15(self) -> np.ndarray:
        """Return the matrix in Q15, (K, K) int64."""
        return np.round(np.array(self.matrix) * ONE).astype(np.int64)


@dataclass(frozen=True)
class Stream:
    """T samples in the order of play.

    Attributes:
        score: (T,) scores of class 1, or (T, K) class scores.
        label: (T,) the remote model's classes, taken as true.
        beta: (T,) cost of an offload.
        delay: (T,) rounds until a label arrives, -1 if it never does; None: all labels arrive at once.
    """

    score: np.ndarray
    label: np.ndarray
    beta: np.ndarray
    delay: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.label)

    def stretch(self, start: int, stop: int) -> Stream:
        """Return the samples from start to stop - 1."""
        delay = None if self.delay is None else self.delay[start:stop]
        return Stream(self.score[start:stop], self.label[start:stop], self.beta[start:stop], delay)

    @cached_property
    def q14(self) -> np.ndarray:
        """Return class scores in Q14, (T, K) int64."""
        score = np.stack([1 - self.score, self.score], 1) if self.score.ndim == 1 else self.score
        return np.round(score * Q14).astype(np.int64)

    @cached_property
    def beta_q15(self) -> np.ndarray:
        return np.round(self.beta * ONE).astype(np.int64)

    def bins(self, bits: int) -> np.ndarray:
        """Return the bin of each binary score: floor(f 2^bits), at most 2^bits - 1, (T,) int64."""
        bins: np.ndarray = np.minimum((self.score * 2**bits).astype(np.int64), 2**bits - 1)
        return bins


def draw(trace: Trace, samples: int, seed: int, beta: float) -> Stream:
    """Draw samples of a trace uniformly with replacement, as in the paper. The trace's own beta, if any, replaces `beta`."""
    picked = np.random.default_rng([seed, 1]).integers(0, len(trace.label), samples)
    betas = np.full(samples, beta) if trace.beta is None else trace.beta[picked]
    return Stream(trace.score[picked], trace.label[picked], betas)


def ordered(trace: Trace, samples: int, seed: int, beta: float) -> Stream:
    """Return the first samples of a trace in their order. The seed has no effect."""
    betas = np.full(len(trace.label), beta) if trace.beta is None else trace.beta
    return Stream(trace.score, trace.label, betas).stretch(0, samples)


WIDEST = 4096  # largest window: offloads that a policy can have in flight


@dataclass(frozen=True)
class Making:
    """How to make a stream from a trace.

    Attributes:
        in_order: Keep the order of the trace; otherwise draw at random.
        delay: Labels arrive after 0 to `delay` rounds, uniformly.
        lost: Share of labels that never arrive.
    """

    in_order: bool = False
    delay: int = 0
    lost: float = 0.0

    def __call__(self, trace: Trace, samples: int, seed: int, beta: float) -> Stream:
        stream = (ordered if self.in_order else draw)(trace, samples, seed, beta)
        if not self.delay and not self.lost:
            return stream
        rng = np.random.default_rng([seed, 4])
        never = rng.random(len(stream)) < self.lost
        return replace(stream, delay=np.where(never, -1, rng.integers(0, self.delay + 1, len(stream))))


@dataclass(frozen=True)
class Outcome:
    """Averages a sample of one run.

    Attributes:
        cost: Mean cost.
        fp, fn: Shares of false positives and negatives. With more than two classes fn are the misses of an event, and fp all
            other errors.
        offload: Share of offloaded samples.
    """

    cost: float
    fp: float
    fn: float
    offload: float


def charged(actions: np.ndarray, stream: Stream, costs: Costs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the costs of a run, equations (1) and (2) of the paper.

    An offload costs beta and gives the right class. If its label is lost, the device acts on the fallback class and pays for it
    too.

    Args:
        actions: (T,) as Policy.act() returns them.
        stream: The samples.
        costs: Costs of errors.

    Returns:
        For each sample the cost, the class acted on, and whether it was offloaded.
    """
    offload = actions < 0
    fallback = np.where(offload, -1 - actions, actions)
    answered = offload if stream.delay is None else offload & (stream.delay >= 0)
    acted = np.where(answered, stream.label, fallback)
    return np.array(costs.matrix)[stream.label, acted] + stream.beta * offload, acted, offload


def outcome(actions: np.ndarray, stream: Stream, costs: Costs) -> Outcome:
    """Return the averages of a run."""
    cost, acted, offload = charged(actions, stream, costs)
    wrong = acted != stream.label
    fn = wrong & (acted == costs.normal)
    return Outcome(float(cost.mean()), float((wrong & ~fn).mean()), float(fn.mean()), float(offload.mean()))
