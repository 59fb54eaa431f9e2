"""Runs many policies many times through joblib, on all cores of this machine.

A job depends on its arguments alone, so cluster() around the call runs it on a Dask cluster.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from .policies.base import Policy
from .policies.baselines import OfflinePair
from .stream import Costs, Outcome, Stream, draw, outcome

StreamMaker = Callable[[Any, int, int, float], Stream]  # (source, samples, seed, beta) -> Stream


@dataclass(frozen=True)
class Job:
    """Several runs of a policy.

    Attributes:
        policy: The policy.
        source: Argument of `make`, usually a trace.
        costs: Costs of offloads and errors.
        samples: Samples of each run.
        seed: Run r draws with seed + r.
        runs: Number of runs.
        key: Identifies the job in its result.
        make: Draws a stream from `source`.
    """

    policy: Policy
    source: Any
    costs: Costs
    samples: int
    seed: int
    runs: int
    _: KW_ONLY
    key: tuple[Any, ...] = ()
    make: StreamMaker = draw


@dataclass(frozen=True)
class Result:
    """Results of a job.

    Attributes:
        job: The job.
        outcomes: One for each run.
        best: Cost of theta-star on the stream of each run; empty for class scores.
    """

    job: Job
    outcomes: tuple[Outcome, ...]
    best: tuple[float, ...]

    def mean(self, field: str) -> float:
        return float(np.mean([getattr(o, field) for o in self.outcomes]))

    def deviation(self, field: str) -> float:
        """Return the standard deviation over the runs."""
        return float(np.std([getattr(o, field) for o in self.outcomes], ddof=1)) if len(self.outcomes) > 1 else 0.0

    @property
    def excess(self) -> list[float]:
        """Excess of the cost a sample over theta-star's on the same stream, of each run; empty for class scores."""
        return [o.cost - b for o, b in zip(self.outcomes, self.best)]

    @property
    def regret(self) -> float:
        """Mean excess over the runs; nan for class scores."""
        return float(np.mean(self.excess)) if self.best else float("nan")


def play(job: Job) -> Result:
    """Make all runs of a job."""
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
    """Return a seed for the device's draws, 0..2^28 - 1, which differs for every run and beta."""
    return zlib.crc32(f"{seed} {beta:.6f}".encode()) & 268435455


Progress = Callable[[int, int], None]  # receives the finished jobs and all jobs


def sweep(jobs: Sequence[Job], progress: Progress = lambda count, total: None) -> list[Result]:
    """Run jobs in parallel.

    Args:
        jobs: The jobs.
        progress: Called after each job if the joblib backend returns results one by one; otherwise at the end.

    Returns:
        The results, in the order of the jobs.
    """
    if get_active_backend()[0].supports_return_generator:
        # the compiled policies release the interpreter's lock, so threads suffice: they copy nothing and compile once
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
    source: Any,
    policies: Sequence[Policy],
    betas: Sequence[float],
    matrix: Any,
    *,
    samples: int,
    runs: int,
    seed: int = 0,
    make: StreamMaker = draw,
    normal: int = -1,
) -> list[Job]:
    """Return a job for every policy and beta.

    Args:
        source: Argument of `make`, usually a trace.
        policies: Policies to play.
        betas: Costs of an offload, 0 to 1.
        matrix: (K, K) costs of errors.
        samples: Samples of each run.
        runs: Runs of each job.
        seed: Seed of the first run.
        make: Draws the streams.
        normal: As of Costs.
    """
    return [
        Job(policy, source, Costs.of(beta, matrix, normal), samples, seed, runs, key=(policy.name, float(beta)), make=make)
        for policy in policies
        for beta in betas
    ]
