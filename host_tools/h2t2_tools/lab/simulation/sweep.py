"""Many runs of many policies, through joblib: on this machine's cores, or on a cluster's with joblib.parallel_config.

A job is a function of its arguments alone; with `parallel_config(backend="dask")` or "ray" around the call it runs there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from ..traces import Trace
from .policies.base import Policy
from .policies.offline_pair import OfflinePair
from .stream import Costs, Outcome, Stream, draw, outcome

StreamMaker = Callable[[Any, int, int, float], Stream]  # (source, samples, seed, beta) -> Stream


@dataclass(frozen=True)
class Job:
    """`runs` runs of a policy on streams that `make` draws from `source`; run r draws with seed + r."""

    policy: Policy
    source: Any
    costs: Costs
    samples: int
    seed: int
    runs: int
    _: KW_ONLY
    key: tuple[Any, ...] = ()  # handed back with the result
    make: StreamMaker = draw


@dataclass(frozen=True)
class Result:
    """outcomes: one a run; best: theta-star's cost on the same stream of each run, for the regret (binary scores only)."""

    job: Job
    outcomes: tuple[Outcome, ...]
    best: tuple[float, ...]

    def mean(self, field: str) -> float:
        return float(np.mean([getattr(o, field) for o in self.outcomes]))

    def deviation(self, field: str) -> float:
        """Standard deviation over the runs."""
        return float(np.std([getattr(o, field) for o in self.outcomes], ddof=1)) if len(self.outcomes) > 1 else 0.0

    @property
    def regret(self) -> float:
        """Mean excess of the cost a sample over theta-star's on the same stream; nan for class scores."""
        return float(np.mean([o.cost - b for o, b in zip(self.outcomes, self.best)])) if self.best else float("nan")


def play(job: Job) -> Result:
    """All runs of one job."""
    outcomes, best = [], []
    for r in range(job.runs):
        stream = job.make(job.source, job.samples, job.seed + r, job.costs.beta)
        actions = job.policy.act(stream, job.costs, device_seed(job.seed + r, job.costs.beta))
        outcomes.append(outcome(actions, stream, job.costs))
        if stream.score.ndim == 1:
            offline = OfflinePair(getattr(job.policy, "bits", 4)).act(stream, job.costs, 0)
            best.append(outcome(offline, stream, job.costs).cost)
    return Result(job, tuple(outcomes), tuple(best))


def device_seed(seed: int, beta: float) -> int:
    """A seed of the device's draws, 0..2^28 - 1, of its own for every run and beta."""
    return zlib.crc32(f"{seed} {beta:.6f}".encode()) & 268435455


Progress = Callable[[int, int], None]  # jobs done, jobs in all


def sweep(jobs: Sequence[Job], progress: Progress = lambda count, total: None) -> list[Result]:
    """The results in the order of the jobs; progress is called after every job (where the backend tells)."""
    if get_active_backend()[0].supports_return_generator:
        # the kernels leave the interpreter's lock, so threads do: nothing is copied, nothing compiled twice
        parallel = joblib.Parallel(n_jobs=-1, prefer="threads", return_as="generator_unordered")
        numbered: Iterable[tuple[int, Result]] = parallel(joblib.delayed(_play_numbered)(n, job) for n, job in enumerate(jobs))
    else:
        numbered = joblib.Parallel()(joblib.delayed(_play_numbered)(n, job) for n, job in enumerate(jobs))
    results = dict(_count_jobs(numbered, len(jobs), progress))
    return [results[n] for n in range(len(jobs))]


def _play_numbered(number: int, job: Job) -> tuple[int, Result]:
    return number, play(job)


def _count_jobs(numbered: Iterable[tuple[int, Result]], total: int, progress: Progress) -> Iterator[tuple[int, Result]]:
    for n, result in enumerate(numbered, 1):
        progress(n, total)
        yield result


def grid(
    trace: Trace,
    policies: Sequence[Policy],
    betas: Sequence[float],
    matrix: Any,
    *,
    samples: int,
    runs: int,
    seed: int = 0,
    make: StreamMaker = draw,
) -> list[Job]:
    """Return a job for every policy and beta; matrix: the error costs, (K, K); make: draws the streams."""
    return [
        Job(policy, trace, Costs.of(beta, matrix), samples, seed, runs, key=(policy.name, float(beta)), make=make)
        for policy in policies
        for beta in betas
    ]
