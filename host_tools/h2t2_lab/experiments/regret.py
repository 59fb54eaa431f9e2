"""`regret`: regret for each number of rounds, with Corollary 1's parameters, Theorem 2's bound and a fitted slope."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from h2t2_tools.common import plots
from h2t2_tools.common.corollary import expert_count, optimal_rates
from h2t2_tools.replay import trace_names
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.sweep import grid, sweep

from .setting import MATRIX, MODES, PAPER, Setting, excess

BETA = 0.3
TRACES = ("phishing_weak", "chest_xray", "logistic_dogs", "breakhis")


def bound(horizon: int) -> float:
    """Return Theorem 2's bound of the regret for Corollary 1's epsilon and eta.

    (epsilon beta + eta / (2 epsilon)) T + ln |Theta| / eta, where T is the horizon.
    """
    epsilon, eta = optimal_rates(4, horizon, BETA)
    return (epsilon * BETA + eta / (2 * epsilon)) * horizon + math.log(expert_count(4)) / eta


def perform(setting: Setting) -> None:
    powers = (2, 2.5, 3, 3.5, 4) if setting.quick else (2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6)
    horizons = [round(10**power) for power in powers]
    policies: dict[str, Policy] = {
        "H2T2, ε* and η* of Corollary 1": replace(PAPER, eta=0.0, label="star"),
        PAPER.name: PAPER,
        MODES.name: MODES,
        Adaptive.name: Adaptive(),
    }
    rows: list[dict[str, Any]] = []
    for title, policy in policies.items():
        mine: list[dict[str, Any]] = []
        for horizon in horizons:
            runs = setting.runs if horizon <= 1e5 else max(3, setting.runs // 5)
            results = [
                sweep(grid(trace_names.find(name, setting.data), [policy], [BETA], MATRIX, samples=horizon, runs=runs))[0]
                for name in TRACES
            ]
            mean, deviation = (horizon * value for value in excess(results))
            mine.append({"policy": title, "T": horizon, "regret": mean, "regret_sd": deviation, "bound": bound(horizon)})
        slopes = {"slope": slope(mine), "slope_end": slope(mine[-3:])}
        rows += [{**r, **slopes} for r in mine]
    setting.csv("regret", rows)
    draw_figure(setting, rows)


def draw_figure(setting: Setting, rows: list[dict[str, Any]]) -> None:
    """Draw the regret of each policy and the bound."""
    names = list(dict.fromkeys(row["policy"] for row in rows))
    curves = {name: [row for row in rows if row["policy"] == name] for name in names}
    ours = curves[Adaptive.name][-1]
    curves["bound of Theorem 2 (slope 0.67)"] = [{"T": row["T"], "regret": row["bound"]} for row in curves[names[0]]]
    slopes = "; ".join(f"{name}: {float(curves[name][-1]['slope']):.2f}" for name in names)
    plots.curves(
        setting.png("regret"),
        curves,
        ("T", "regret"),
        ("rounds T", "regret against θ*, mean of four traces"),
        f"After {int(ours['T']):,} rounds the adaptive policy's regret is "
        f"{float(ours['regret']) / float(curves[PAPER.name][-1]['regret']):.0%} of the paper's",
        f"β = {BETA}; slopes on this plot: {slopes}; band: standard deviation over the runs",
        log="xy",
    )


def slope(rows: list[dict[str, Any]]) -> float:
    """Return the slope of log regret over log T, fitted by least squares."""
    x, y = np.log(np.array([(r["T"], r["regret"]) for r in rows if r["regret"] > 0])).T
    return float(np.polyfit(x, y, 1)[0])
