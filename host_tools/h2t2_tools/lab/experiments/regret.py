"""`regret`: regret for each number of rounds, with Corollary 1's parameters, Theorem 1's bound and a fitted slope."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common import plots
from ...common.corollary import expert_count, optimal_rates
from .. import catalogue
from ..replay import row, write_csv
from ..simulation.sweep import grid, sweep
from .setting import MATRIX, MODES, PAPER, Setting

BETA = 0.3
TRACES = ("phishing_weak", "chest_xray", "logistic_dogs", "breakhis")


def bound(horizon: int) -> float:
    """Return Theorem 1's bound of the regret for Corollary 1's epsilon and eta.

    (epsilon beta + eta / (2 epsilon)) T + ln |Theta| / eta, where T is the horizon.
    """
    epsilon, eta = optimal_rates(4, horizon, BETA)
    return (epsilon * BETA + eta / (2 * epsilon)) * horizon + math.log(expert_count(4)) / eta


def perform(setting: Setting) -> list[Path]:
    powers = (2, 2.5, 3, 3.5, 4) if setting.quick else (2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6)
    horizons = [round(10**power) for power in powers]
    policies = {
        "H2T2, ε* and η* of Corollary 1": replace(PAPER, eta=0.0, label="star"),
        "H2T2 (paper: η = 1, ε*)": PAPER,
        "H2T2 all + anytime": MODES,
    }
    rows: list[dict[str, Any]] = []
    curves: dict[str, list[dict[str, Any]]] = {}
    for title, policy in policies.items():
        mine: list[dict[str, Any]] = []
        for horizon in horizons:
            runs = setting.runs if horizon <= 1e5 else max(3, setting.runs // 5)
            each = []
            for name in TRACES:
                trace = catalogue.find(name, setting.data)
                result = sweep(grid(trace, [policy], [BETA], MATRIX, samples=horizon, runs=runs))[0]
                each.append(row(result)["regret"] * horizon)
            mine.append({"policy": title, "T": horizon, "regret": float(np.mean(each)), "bound": bound(horizon)})
        slopes = {"slope": slope(mine), "slope_end": slope(mine[-3:])}
        rows += [{**r, **slopes} for r in mine]
        curves[f"{title} (slope {slopes['slope']:.2f}, at the end {slopes['slope_end']:.2f})"] = mine
    curves["bound of Theorem 1 (slope 0.67)"] = [{"T": t, "regret": bound(t)} for t in horizons]
    write_csv(setting.out / "regret.csv", tuple(rows[0]), rows)
    figure = setting.out / "regret.png"
    labels = ("rounds T", "regret against θ*, mean of four traces")
    plots.curves(figure, curves, ("T", "regret"), labels, f"Regret at β = {BETA}", log="xy")
    return [figure, setting.out / "regret.csv"]


def slope(rows: list[dict[str, Any]]) -> float:
    """Return the slope of log regret over log T, fitted by least squares."""
    x, y = np.log(np.array([(r["T"], r["regret"]) for r in rows if r["regret"] > 0])).T
    return float(np.polyfit(x, y, 1)[0])
