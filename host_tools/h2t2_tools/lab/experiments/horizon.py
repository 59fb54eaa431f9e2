"""`horizon`: excess cost after 300, 1,000 and 10,000 samples of every trace, with and without an initial table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...common import plots
from ..prior import table
from ..replay import write_csv
from ..simulation.policies.adaptive import Adaptive
from ..simulation.policies.base import Policy
from ..simulation.policies.fixed import FixedPair
from ..simulation.stream import Costs, draw
from ..simulation.sweep import Job, Result, sweep
from ..traces import Trace
from .setting import BASELINES, DELTA_FN, DELTA_FP, MODES, PAPER, PAPER_1, Setting

BETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
LABELLED = 200  # samples that make a table


def perform(setting: Setting) -> list[Path]:
    horizons, betas = ([300, 1000], BETAS[::3]) if setting.quick else ([300, 1000, 10000], BETAS)
    traces = setting.traces()
    rows: list[dict[str, Any]] = []
    for start, starting in STARTS.items():
        for horizon in horizons:
            jobs = [
                Job(starting(trace, run), trace, Costs.binary(beta, DELTA_FP, DELTA_FN), horizon, run, 1, key=(name, beta))
                for name, trace in traces.items()
                for beta in betas
                for run in range(setting.runs)
            ]
            rows.append(_row(start, horizon, sweep(jobs)))
    write_csv(setting.out / "horizon.csv", tuple(rows[0]), rows)
    figure = setting.out / "horizon.png"
    lines = {name: [row for row in rows if row["policy"] == name] for name in dict.fromkeys(row["policy"] for row in rows)}
    plots.curves(
        figure,
        lines,
        ("T", "excess"),
        ("samples T", "excess cost a sample over θ*"),
        f"How soon it pays: mean of {len(traces)} traces and {len(betas)} β, {setting.runs} runs",
        log="xy",
    )
    return [figure, setting.out / "horizon.csv"]


def _row(name: str, horizon: int, results: list[Result]) -> dict[str, Any]:
    """Return the mean and the worst excess over the cells (trace, beta). A cell is the mean of its runs."""
    cells: dict[tuple[Any, ...], list[float]] = {}
    for result in results:
        cells.setdefault(result.job.key, []).append(result.regret)
    means = [float(np.mean(cell)) for cell in cells.values()]
    return {"policy": name, "T": horizon, "excess": float(np.mean(means)), "worst": max(means)}


def _prior(trace: Trace, run: int) -> tuple[float, ...]:
    """Return a table from labelled samples of the trace. Their seed differs from that of the run."""
    labelled = draw(trace, LABELLED, 1000 + run, 0.0)
    return tuple(table(labelled.score, labelled.label, 4))


def _upside_down(trace: Trace, run: int) -> tuple[float, ...]:
    return tuple(1 - p for p in _prior(trace, run))


def _fixed_pair(trace: Trace, run: int) -> Policy:
    """Return thresholds from the labelled samples of _prior()."""
    return FixedPair(LABELLED, labelled=draw(trace, LABELLED, 1000 + run, 0.0))


def _always(policy: Policy) -> Callable[[Trace, int], Policy]:
    return lambda trace, run: policy


# the compared policies, each made for a trace and the number of a run
STARTS: dict[str, Callable[[Trace, int], Policy]] = {
    **{policy.name: _always(policy) for policy in (PAPER, PAPER_1, MODES, Adaptive(), *BASELINES)},
    BASELINES[-1].name: _fixed_pair,
    "adaptive, 200 labelled samples first": lambda trace, run: Adaptive(prior=_prior(trace, run)),
    "adaptive, those upside down": lambda trace, run: Adaptive(prior=_upside_down(trace, run)),
}
