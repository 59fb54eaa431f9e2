"""`eta`: cost for each learning rate at beta = 0.4, with the rate of Corollary 1 among them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...common import plots
from ...common.corollary import optimal_rates
from ..replay import FIELDS, row, write_csv
from ..simulation.sweep import grid, sweep
from .setting import MATRIX, PAPER, Setting

BETA = 0.4


def perform(setting: Setting) -> list[Path]:
    etas = [0.01, 0.1, 1.0, 4.0] if setting.quick else [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0]
    star = optimal_rates(4, setting.samples, BETA)[1]
    rows = []
    for title, trace in setting.traces(weak=False).items():
        for eta in sorted([*etas, star]):
            policy = replace(PAPER, eta=eta)
            for result in sweep(grid(trace, [policy], [BETA], MATRIX, samples=setting.samples, runs=setting.runs)):
                rows.append({"trace": title, "eta": eta, "corollary": int(eta == star), **row(result)})
    write_csv(setting.out / "eta.csv", ("trace", "eta", "corollary", *FIELDS), rows)
    figure = setting.out / "eta.png"
    plots.curves(
        figure,
        {title: [r for r in rows if r["trace"] == title] for title in dict.fromkeys(r["trace"] for r in rows)},
        ("eta", "cost"),
        (f"learning rate η (Corollary 1's is {star:.3g})", "average cost a sample"),
        f"H2T2 at β = {BETA}, {setting.samples:,} samples, {setting.runs} runs",
        log="x",
    )
    return [figure, setting.out / "eta.csv"]
