"""`guarantee`: a limit for misses that holds with a confidence: how often a run breaks it, and what it costs.

Half of the runs stay on a trace; the other half change to another trace after half of the samples.
"""

from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.miss_guarantee import MissGuarantee
from h2t2.core.miss_rate import MissRate
from h2t2.core.numbers import ONE
from h2t2_tools.common.jit import njit_nogil
from h2t2_tools.replay.simulation.numba_policies import freeze
from h2t2_tools.replay.simulation.stream import Stream
from h2t2_tools.replay.simulation.sweep import device_seed
from h2t2_tools.replay.traces import Trace

from .setting import DELTA_FN, DELTA_FP, Setting

BETA, LIMIT, CONFIDENCE, BITS = 0.2, 0.05, 0.95, 4
RUNS, QUICK_RUNS = 1000, 6
SAMPLES, QUICK_SAMPLES = 10000, 2000
FIELDS = (
    "streams", "runs", "samples", "limit", "confidence", "stated", "first", "exceeded", "exceeded by the estimate", "missed",
    "missed by the estimate", "cost", "cost of the estimate", "asked",
)  # fmt: skip


def perform(setting: Setting) -> None:
    runs, samples = (QUICK_RUNS, QUICK_SAMPLES) if setting.quick else (RUNS, SAMPLES)
    traces = list(setting.traces().values())
    rows = []
    for title, changes in (("one trace", False), ("another trace from half-way", True)):
        outcomes = [_run(traces, changes, seed, samples) for seed in range(runs // 2)]
        rows.append({"streams": title, **_row(outcomes, samples)})
    setting.csv("guarantee", rows, FIELDS, shown=True)


def _row(outcomes: list[tuple[np.ndarray, np.ndarray]], samples: int) -> dict[str, Any]:
    """The figures of all runs; of each run what watch() counted with the confidence, and of the estimate."""
    sure, estimated = (np.array(counts) for counts in zip(*outcomes))
    stated = sure[:, 0] >= 0
    return {
        "runs": len(outcomes), "samples": samples, "limit": LIMIT, "confidence": CONFIDENCE,
        "stated": f"{stated.mean():.3f}",
        "first": f"{np.median(sure[stated, 0]):.0f}" if stated.any() else "",
        "exceeded": f"{sure[:, 1].mean():.3f}",
        "exceeded by the estimate": f"{estimated[:, 1].mean():.3f}",
        "missed": f"{_share(sure):.4f}", "missed by the estimate": f"{_share(estimated):.4f}",
        "cost": f"{sure[:, 5].mean() / samples / ONE:.4f}",
        "cost of the estimate": f"{estimated[:, 5].mean() / samples / ONE:.4f}",
        "asked": f"{sure[:, 4].mean() / samples:.3f}",
    }  # fmt: skip


def _share(counts: np.ndarray) -> float:
    return float(counts[:, 3].sum()) / float(counts[:, 2].sum())


def _run(traces: list[Trace], changes: bool, seed: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """What watch() counts with the confidence, and of the estimate from the same round on."""
    rng = np.random.default_rng(seed)
    first, second = rng.choice(len(traces), 2, replace=False)
    halves = [traces[first], traces[second if changes else first]]
    rows = [(trace, rng.integers(0, len(trace.label), samples // 2)) for trace in halves]
    score, label = (np.concatenate([getattr(trace, name)[n] for trace, n in rows]) for name in ("score", "label"))
    stream = Stream(score, label.astype(np.int64), np.full(len(label), BETA))
    cells, labels = stream.bins(BITS), stream.label
    numbers = units.policy(beta=BETA, delta_fp=DELTA_FP, delta_fn=DELTA_FN, bits=BITS)
    numbers["seed"] = device_seed(seed, BETA)
    sure, estimated = np.zeros(6, np.int64), np.zeros(6, np.int64)
    limit = units.q15(LIMIT)
    policy = freeze(Adaptive(limit=MissGuarantee(limit, units.q15(CONFIDENCE)), **numbers))
    watch(policy, policy.limit, cells, labels, -1, sure)
    since = sure[0] if sure[0] >= 0 else samples
    watch(freeze(Adaptive(limit=MissRate(limit), **numbers)), None, cells, labels, since, estimated)
    return sure, estimated


@njit_nogil
def watch(policy: Any, bet: Any, cells: np.ndarray, labels: np.ndarray, since: int, counts: np.ndarray) -> None:
    """Play a frozen policy whose offloads are all answered.

    Args:
        policy: It learns.
        bet: Its limit where that makes statements; None otherwise.
        cells, labels: (T,) bins and labels.
        since: The round from which the limit counts; -1: from the policy's first statement.
        counts: Becomes the round of the statement (-1: none), whether more than the limit was missed at any time since then,
            the events, the missed ones, the offloads, and the cost, Q15.
    """
    counts[:] = 0
    counts[0] = since
    for t in range(len(labels)):
        action = policy.decide(cells[t])
        counts[2] += labels[t]
        if action < 0:
            policy.learn(policy.ticket, labels[t], -1)
            counts[4] += 1
            counts[5] += policy.beta
        elif action != labels[t]:
            counts[3] += labels[t]
            counts[5] += policy.delta_fn if labels[t] else policy.delta_fp
        if bet is not None and counts[0] < 0 and bet.evidence >= bet.threshold:
            counts[0] = t
        if 0 <= counts[0] <= t and counts[3] * 32768 > policy.limit.miss_rate * counts[2]:
            counts[1] = 1
