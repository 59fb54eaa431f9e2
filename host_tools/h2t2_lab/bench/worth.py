"""`h2t2-lab bench worth`: what an answer is worth where the remote model errs, and where answers do not come.

Costs are those against the truth, beyond those of the best of all pairs of thresholds in hindsight, whose answers are as wrong
and whose questions are lost as often. Streams, draws and losses of a run are the same for all rows.
"""

from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.cpython.pair import error_table
from h2t2_tools.common.jit import njit_nogil
from h2t2_tools.common.report import Report
from h2t2_tools.replay.simulation.numba_policies import freeze
from h2t2_tools.replay.simulation.sweep import device_seed

from . import Progress, Row, cell, table

TITLE = "What an answer is worth"
BETA, DELTA_FP, DELTA_FN, BITS = 0.2, 0.7, 1.0, 4
BINS = 1 << BITS
RUNS, SAMPLES = 40, 5000
QUICK_RUNS, QUICK_SAMPLES = 2, 600
MEASURED = 200  # samples that tell the error rates
WRONG = (0.05, 0.1, 0.2)
TOLD = ("unset", "told half of it", f"measured on {MEASURED} samples", "told")
OUTAGES = (300, 3000)
WINDOWS = ("before", "during", "after", "first 300 after")
CENTRES = (np.arange(BINS) + 0.5) / BINS
LOW = np.exp(-3 * CENTRES) / np.exp(-3 * CENTRES).sum()


def _rising(slope: float, middle: float) -> np.ndarray:
    """(BINS,): P(event) of each bin."""
    return np.clip(1 / (1 + np.exp(-slope * (CENTRES - middle))), 0.005, 0.995)


SHARP, SKEWED = _rising(14, 0.5), _rising(10, 0.75)
# of each stream its halves: P(event) of each bin, and the shares of the bins, None: equal ones
STREAMS: dict[str, tuple[tuple[np.ndarray, np.ndarray | None], ...]] = {
    "sharp": ((SHARP, None),) * 2,
    "calibrated": ((CENTRES, None),) * 2,
    "skewed": ((SKEWED, LOW),) * 2,
    "drift": ((SHARP, None), (SKEWED, None)),
}


def _losses() -> dict[str, np.ndarray]:
    """Name -> (2 BINS,): P(no answer) to a question about each bin, where the answer is 0 and where it is 1."""
    losses = {f"{share:.0%} lost": np.full(2 * BINS, share) for share in (0, 0.1, 0.3, 0.5)}
    for name, where, share in (("bins 4 to 15", np.s_[8:], 0.6), ("events", np.s_[1::2], 0.5), ("others", np.s_[0::2], 0.5)):
        losses[f"{share:.0%} of {name} lost"] = loss = np.zeros(2 * BINS)
        loss[where] = share
    return losses


LOSSES = _losses()


def measure(progress: Progress, quick: bool = False) -> list[Row]:
    """Measure what the adaptive policy costs with a remote model that errs, with answers that do not come, and in outages.

    Args:
        quick: few and short runs

    Returns:
        A row for each line of the tables, with its `table`, its `case` and a figure for each column.
    """
    runs, samples = (QUICK_RUNS, QUICK_SAMPLES) if quick else (RUNS, SAMPLES)
    rows: list[Row] = []
    for wrong in WRONG:
        progress(f"{wrong:.0%} wrong")
        for told in TOLD:
            excess = {name: _mean_excess(name, runs, samples, wrong, told, LOSSES["0% lost"]) for name in STREAMS}
            rows.append({"table": "errors", "case": f"{wrong:.0%} wrong, {told}", **excess})
    for name, loss in LOSSES.items():
        progress(name)
        excess = {stream: _mean_excess(stream, runs, samples, 0.0, "unset", loss) for stream in STREAMS}
        rows.append({"table": "losses", "case": name, **excess})
    for stream in ("sharp", "calibrated"):
        for length in OUTAGES:
            progress(f"outage of {length}")
            rows.append({"table": "outages", "case": f"{stream}, {length:,} rounds", **_outage(stream, runs, samples, length)})
    return rows


def report(measured: list[Row]) -> Report:
    """Return the three tables."""
    titles = {
        "errors": ("the remote model errs: excess cost a sample over the best thresholds, against the truth", STREAMS, "+.4f"),
        "losses": ("answers do not come: excess cost a sample over the best thresholds", STREAMS, "+.4f"),
        "outages": ("no answer comes for a time, and nobody says so: cost a sample", WINDOWS, ".4f"),
    }
    return [
        table(
            title,
            [row for row in measured if row["table"] == name],
            {"": cell("case"), **{column: cell(column, form) for column in columns}},
        )
        for name, (title, columns, form) in titles.items()
    ]


def _samples(name: str, seed: int, samples: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """(bins, truth, generator) of a run of a stream."""
    rng = np.random.default_rng([seed, 5])
    bins, truth = [], []
    for events, shares in STREAMS[name]:
        k = rng.choice(BINS, samples // 2, p=shares)
        bins.append(k)
        truth.append(rng.random(len(k)) < events[k])
    return np.concatenate(bins).astype(np.int64), np.concatenate(truth).astype(np.int64), rng


def _policy(seed: int, **rates: float) -> Any:
    """A frozen policy."""
    numbers = units.policy(beta=BETA, delta_fp=DELTA_FP, delta_fn=DELTA_FN, bits=BITS, **rates)
    return freeze(Adaptive(seed=device_seed(seed, BETA), **numbers))


def _told(told: str, wrong: float, rng: np.random.Generator) -> dict[str, float]:
    """What a policy is told of a remote model that is wrong so often about either class."""
    if told == TOLD[2]:
        counts = [rng.binomial(MEASURED // 2, wrong) for _ in range(2)]
        rates = [error_table([[MEASURED // 2 - count, count]])[0][1] for count in counts]
    else:
        rates = [{TOLD[0]: 0.0, TOLD[1]: wrong / 2, TOLD[3]: wrong}[told]] * 2
    return dict(zip(("rdl_fp", "rdl_fn"), rates))


def _mean_excess(name: str, runs: int, samples: int, wrong: float, told: str, loss: np.ndarray) -> float:
    """The mean excess over the best thresholds."""
    excess = []
    for seed in range(runs):
        bins, truth, rng = _samples(name, seed, samples)
        answer = np.where(rng.random(len(bins)) < wrong, 1 - truth, truth)
        lost = rng.random(len(bins)) < loss[2 * bins + answer]
        policy = _policy(seed, **_told(told, wrong, np.random.default_rng([seed, 6])))
        costs = np.zeros(len(bins))
        play(policy, bins, truth, answer, lost, costs)
        excess.append(costs.mean() - best_pair(bins, truth, answer, lost))
    return float(np.mean(excess))


def _outage(name: str, runs: int, samples: int, length: int) -> dict[str, float]:
    """The mean cost a sample before, during and after an outage of so many rounds."""
    edges = np.cumsum([0, samples // 2, length, samples // 2])
    totals = np.zeros(len(WINDOWS))
    for seed in range(runs):
        bins, truth, _ = _samples(name, seed, int(edges[-1]))
        lost = np.zeros(len(bins), bool)
        lost[edges[1] : edges[2]] = True
        costs = np.zeros(len(bins))
        play(_policy(seed), bins, truth, truth, lost, costs)
        parts = [costs[a:b].mean() for a, b in zip(edges, edges[1:])]
        totals += [*parts, costs[edges[2] : edges[2] + 300].mean()]
    return dict(zip(WINDOWS, (totals / runs).tolist()))


@njit_nogil
def play(policy: Any, bins: np.ndarray, truth: np.ndarray, answer: np.ndarray, lost: np.ndarray, costs: np.ndarray) -> None:
    """Play a frozen policy. costs: (T,), becomes what each sample cost against the truth."""
    for t in range(len(bins)):
        k = bins[t]
        action = policy.decide(k)
        if action < 0:
            costs[t] += BETA
            if lost[t]:
                action = policy.local
                policy.lose(policy.ticket)
                policy.count_question(k, 0)
            else:
                action = answer[t]
                policy.learn(policy.ticket, answer[t], -1)
                policy.count_question(k, 1)
        if action != truth[t]:
            costs[t] += DELTA_FN if truth[t] else DELTA_FP


def best_pair(bins: np.ndarray, truth: np.ndarray, answer: np.ndarray, lost: np.ndarray) -> float:
    """The mean cost of the best of all pairs. Where an answer is lost, it acts on the class that is cheaper in this bin."""

    def total(costs: np.ndarray) -> np.ndarray:
        return np.bincount(bins, costs, BINS)

    zero, one = DELTA_FN * (truth == 1), DELTA_FP * (truth == 0)
    wrong = np.where(answer == 1, one, zero)
    ask = np.minimum(total(BETA + np.where(lost, zero, wrong)), total(BETA + np.where(lost, one, wrong)))
    zeros, asks, ones = (np.append(0.0, np.cumsum(costs)) for costs in (total(zero), ask, total(one)))
    pairs = zeros[:, None] + asks[None, :] - asks[:, None] + ones[-1] - ones[None, :]
    return float(pairs[np.triu_indices(BINS + 1)].min() / len(bins))
