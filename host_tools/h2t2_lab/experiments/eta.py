"""`eta`: cost for each learning rate at beta = 0.4, with the rate of Corollary 1 among them."""

from dataclasses import replace
from typing import Any

import numpy as np

from h2t2_tools.common import plots
from h2t2_tools.common.corollary import optimal_rates
from h2t2_tools.replay.replay import FIELDS, row
from h2t2_tools.replay.simulation.sweep import grid, sweep

from .setting import MATRIX, PAPER, Setting

BETA = 0.4


def perform(setting: Setting) -> None:
    etas = [0.01, 0.1, 1.0, 4.0] if setting.quick else [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0]
    star = optimal_rates(4, setting.samples, BETA)[1]
    rows = []
    for title, trace in setting.traces(weak=False).items():
        for eta in sorted([*etas, star]):
            policy = replace(PAPER, eta=eta)
            for result in sweep(grid(trace, [policy], [BETA], MATRIX, samples=setting.samples, runs=setting.runs)):
                rows.append({"trace": title, "eta": eta, "corollary": int(eta == star), **row(result)})
    setting.csv("eta", rows, ("trace", "eta", "corollary", *FIELDS))
    note = f"β = {BETA}, {setting.samples:,} samples, {setting.runs} runs; Corollary 1's rate is {star:.3g}"
    draw_figure(setting, rows, note)


def draw_figure(setting: Setting, rows: list[dict[str, Any]], note: str) -> None:
    """Draw the cost of each rate above that of the trace's best rate: the mean of the traces, and the worst trace."""
    cells = {(row["trace"], float(row["eta"])): float(row["cost"]) for row in rows}
    traces, etas = ({key[n] for key in cells} for n in (0, 1))
    star = next(float(row["eta"]) for row in rows if int(row["corollary"]))
    best = {trace: min(cells[trace, eta] for eta in etas) for trace in traces}
    above = {eta: [cells[trace, eta] - best[trace] for trace in traces] for eta in sorted(etas)}
    mean = [{"eta": eta, "cost": np.mean(costs), "cost_sd": np.std(costs)} for eta, costs in above.items()]
    worst = [{"eta": eta, "cost": max(costs)} for eta, costs in above.items()]
    plots.curves(
        setting.png("eta"),
        {PAPER.name: mean, "worst trace": worst},
        ("eta", "cost"),
        ("learning rate η", "cost a sample above the trace's best rate"),
        f"η = 1 costs at most {max(above[1.0]):.4f} more than the best rate tried; "
        f"Corollary 1's rate {np.mean(above[star]):.3f} more on average",
        f"{note}; mean of {len(traces)} traces, band: their standard deviation",
        log="x",
    )
