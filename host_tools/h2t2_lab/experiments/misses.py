"""`misses`: the share of events that the adaptive policy misses under a limit, and the cost of the limit.

The comparison is the cheapest fixed pair of thresholds that keeps the limit.
"""

from typing import Any

import numpy as np

from h2t2_tools.common import plots
from h2t2_tools.replay.simulation.policies.baselines import OfflinePair
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import charged, ordered
from h2t2_tools.replay.simulation.sweep import sweep
from h2t2_tools.replay.traces import Trace

from .setting import Setting, paper_costs

BETAS = (0.1, 0.2, 0.3, 0.4, 0.5)
LIMITS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
BITS = 4


def perform(setting: Setting) -> None:
    traces = setting.traces()
    betas, limits = (BETAS[2:3], LIMITS[2:4]) if setting.quick else (BETAS, LIMITS)
    cells = [(name, beta) for name in traces for beta in betas]
    free = {result.job.key: result for result in sweep([setting.job(Adaptive(), traces, cell) for cell in cells])}
    rows: list[dict[str, Any]] = []
    for limit in limits:
        results = sweep([setting.job(Adaptive(miss_rate=limit), traces, cell) for cell in cells])
        missed = {result.job.key: _missed(result, traces) for result in results}
        bound = [cell for cell in cells if _missed(free[cell], traces) > limit]  # cells where the limit binds
        cost = {result.job.key: result.mean("cost") for result in results}
        rows.append(
            {
                "limit": limit,
                "missed": np.mean([missed[cell] for cell in bound]),
                "missed_sd": np.std([missed[cell] for cell in bound]),
                "worst": max(missed[cell] for cell in bound),
                "within 1.25": np.mean([missed[cell] <= 1.25 * limit for cell in bound]),
                "missed without": np.mean([_missed(free[cell], traces) for cell in bound]),
                "cost": np.mean([cost[cell] for cell in bound]),
                "cost without": np.mean([free[cell].mean("cost") for cell in bound]),
                "cost of the pair": np.mean([_pair(traces[name], beta, limit) for name, beta in bound]),
                "cells": len(bound),
            }
        )
    setting.csv("misses", rows)
    note = (
        f"where it binds: {len(traces)} traces, {len(betas)} β, {setting.samples:,} samples; band: deviation over these cases"
    )
    draw_figure(setting, rows, note)


def draw_figure(setting: Setting, rows: list[dict[str, Any]], note: str) -> None:
    """Draw the missed events as shares of the limit."""
    points: dict[str, list[dict[str, float]]] = {Adaptive.name: [], "worst case": [], "the limit": []}
    for row in rows:
        limit, mean, spread, worst = (float(row[key]) for key in ("limit", "missed", "missed_sd", "worst"))
        points[Adaptive.name].append({"limit": limit, "ratio": mean / limit, "ratio_sd": spread / limit})
        points["worst case"].append({"limit": limit, "ratio": worst / limit})
        points["the limit"].append({"limit": limit, "ratio": 1.0})
    mean, worst = (max(point["ratio"] for point in points[name]) for name in (Adaptive.name, "worst case"))
    plots.curves(
        setting.png("misses"),
        points,
        ("limit", "ratio"),
        ("limit for the share of events missed (--miss-rate)", "events missed, in limits"),
        f"On average the adaptive policy misses at most {mean:.2f} times its limit, in the worst case {worst:.2f} times",
        note,
        log="x",
    )


def _missed(result: Any, traces: dict[str, Trace]) -> float:
    return float(result.mean("fn") / traces[result.job.key[0]].label.mean())


def _pair(trace: Trace, beta: float, limit: float) -> float:
    """Return the mean cost of the cheapest pair of thresholds that misses at most `limit` of the trace's events."""
    costs = paper_costs(beta)
    stream = ordered(trace, len(trace.label), 0, beta)
    return float(charged(OfflinePair(BITS, limit).act(stream, costs, 0), stream, costs)[0].mean())
