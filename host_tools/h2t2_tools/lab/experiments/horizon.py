"""`horizon`: excess cost after 300, 1,000 and 10,000 samples of every trace, with and without a table to start from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common import plots
from ..prior import table
from ..replay import write_csv
from ..simulation.policies.adaptive import Adaptive
from ..simulation.policies.base import Policy
from ..simulation.stream import Costs, Outcome, draw
from ..simulation.sweep import Job, Result, sweep
from ..traces import Trace
from .setting import DELTA_FN, DELTA_FP, MODES, PAPER, PAPER_1, Setting

BETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
LABELLED = 200  # validation samples that a table is made of


def perform(setting: Setting) -> list[Path]:
    horizons = [300, 1000] if setting.quick else [300, 1000, 10000]
    traces = setting.traces()
    rows: list[dict[str, Any]] = []
    for policy in (PAPER, PAPER_1, MODES, Adaptive()):
        for horizon in horizons:
            jobs = [_job(policy, trace, beta, horizon, 0, setting.runs) for trace in traces.values() for beta in BETAS]
            rows.append(_row(policy.name, horizon, sweep(jobs)))
    for name, turned in (("adaptive, 200 labelled samples first", False), ("adaptive, those upside down", True)):
        for horizon in horizons:
            jobs = [
                _job(replace(Adaptive(), prior=_prior(trace, run, turned)), trace, beta, horizon, run, 1)
                for trace in traces.values()
                for beta in BETAS
                for run in range(setting.runs)
            ]
            rows.append(_row(name, horizon, _joined(sweep(jobs), setting.runs)))
    write_csv(setting.out / "horizon.csv", tuple(rows[0]), rows)
    figure = setting.out / "horizon.png"
    lines = {name: [row for row in rows if row["policy"] == name] for name in dict.fromkeys(row["policy"] for row in rows)}
    plots.curves(
        figure,
        lines,
        ("T", "excess"),
        ("samples T", "excess cost a sample over θ*"),
        f"How soon it pays: mean of {len(traces)} traces and {len(BETAS)} β, {setting.runs} runs",
        log="xy",
    )
    return [figure, setting.out / "horizon.csv"]


def _job(policy: Policy, trace: Trace, beta: float, horizon: int, seed: int, runs: int) -> Job:
    return Job(policy, trace, Costs.binary(beta, DELTA_FP, DELTA_FN), horizon, seed, runs)


def _row(name: str, horizon: int, results: list[Result]) -> dict[str, Any]:
    """Mean and worst of the cells (trace, beta)."""
    cells = [result.regret for result in results]
    return {"policy": name, "T": horizon, "excess": float(np.mean(cells)), "worst": max(cells)}


def _joined(results: list[Result], runs: int) -> list[Result]:
    """One result for every so many in a row."""
    joined = []
    for start in range(0, len(results), runs):
        part = results[start : start + runs]
        outcomes: tuple[Outcome, ...] = tuple(o for result in part for o in result.outcomes)
        joined.append(Result(part[0].job, outcomes, tuple(b for result in part for b in result.best)))
    return joined


def _prior(trace: Trace, run: int, turned: bool) -> tuple[float, ...]:
    """A table from samples of the trace that the run does not begin with."""
    labelled = draw(trace, LABELLED, 1000 + run, 0.0)
    made = table(labelled.score, labelled.label, 4)
    return tuple(1 - p for p in made) if turned else tuple(made)
