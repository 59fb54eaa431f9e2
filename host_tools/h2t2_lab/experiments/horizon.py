"""`horizon`: excess cost after 300, 1,000 and 10,000 samples of every trace, with and without an initial table."""

from collections.abc import Callable
from typing import Any

import numpy as np

from h2t2_tools.common import plots
from h2t2_tools.replay.prior import table
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.baselines import FixedPair
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import draw
from h2t2_tools.replay.simulation.sweep import Job, Result, sweep
from h2t2_tools.replay.traces import Trace

from .setting import BASELINES, MODES, PAPER, PAPER_1, Setting, paper_costs

BETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
LABELLED = 200  # samples that make a table


def perform(setting: Setting) -> None:
    horizons, betas = ([300, 1000], BETAS[::3]) if setting.quick else ([300, 1000, 10000], BETAS)
    traces = setting.traces()
    rows: list[dict[str, Any]] = []
    for start, starting in STARTS.items():
        for horizon in horizons:
            jobs = [
                Job(starting(trace, run), trace, paper_costs(beta), horizon, run, 1, key=(name, beta))
                for name, trace in traces.items()
                for beta in betas
                for run in range(setting.runs)
            ]
            rows.append(_row(start, horizon, sweep(jobs)))
    setting.csv("horizon", rows)
    note = f"mean of {len(traces)} traces and {len(betas)} β; band: standard deviation of {setting.runs} runs"
    draw_figure(setting, rows, note)


def draw_figure(setting: Setting, rows: list[dict[str, Any]], note: str) -> None:
    """Draw the excess of each policy at each horizon."""
    lines = {name: [row for row in rows if row["policy"] == name] for name in dict.fromkeys(row["policy"] for row in rows)}
    ours, paper = (float(lines[name][1]["excess"]) for name in (Adaptive.name, PAPER.name))
    plots.curves(
        setting.png("horizon"),
        lines,
        ("T", "excess"),
        ("samples T", "excess cost a sample over θ*"),
        f"After 1,000 samples the adaptive policy's excess is {ours / paper:.0%} of the paper's; "
        "200 labelled samples first help on streams that stay",
        note,
        log="xy",
    )


def _row(name: str, horizon: int, results: list[Result]) -> dict[str, Any]:
    """Return the mean and the worst excess over the cells (trace, beta). A cell is the mean of its runs."""
    cells: dict[tuple[Any, ...], list[float]] = {}
    for result in results:
        cells.setdefault(result.job.key, []).append(result.regret)
    runs = np.array(list(cells.values()))
    deviation = float(runs.mean(0).std(ddof=1))
    return {
        "policy": name,
        "T": horizon,
        "excess": float(runs.mean()),
        "excess_sd": deviation,
        "worst": float(np.max(runs.mean(1))),
    }


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
