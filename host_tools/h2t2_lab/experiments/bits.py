"""`bits`: cost and time a sample for each width of the score, for H2T2 and for the single-threshold continuum."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from h2t2_tools.replay.replay import FIELDS, row
from h2t2_tools.replay.simulation.stream import draw
from h2t2_tools.replay.simulation.sweep import grid, sweep

from .. import lab_plots
from ..rivals.policies import SingleThreshold
from .setting import MATRIX, PAPER, Setting, by_trace, paper_costs

BETA = 0.3


def perform(setting: Setting) -> None:
    widths = [2, 4, 8] if setting.quick else [1, 2, 3, 4, 5, 6, 7, 8, 10]
    traces = setting.traces(weak=False)
    rows: list[dict[str, Any]] = []
    for title, trace in traces.items():
        stream = draw(trace, setting.samples, 0, BETA)
        for bits in widths:
            for policy in (replace(PAPER, bits=bits), SingleThreshold()):
                policy.act(stream, paper_costs(BETA), 0)
                started = time.perf_counter()
                policy.act(stream, paper_costs(BETA), 0)
                micros = (time.perf_counter() - started) / setting.samples * 1e6
                result = sweep(grid(trace, [policy], [BETA], MATRIX, samples=setting.samples, runs=setting.runs))[0]
                rows.append({"trace": title, "bits": bits, "us": micros, **row(result)})
    setting.csv("bits", rows, ("trace", "bits", "us", *FIELDS))
    note = f"β = {BETA}, {setting.samples:,} samples, {setting.runs} runs; band: standard deviation over the runs"
    draw_figures(setting, rows, note)


def draw_figures(setting: Setting, rows: list[dict[str, Any]], note: str) -> None:
    """Draw the cost and the time for each width of the score."""
    content = by_trace(rows, list(dict.fromkeys(r["policy"] for r in rows)))
    above = []
    for panel in content.values():
        costs = {int(r["bits"]): float(r["cost"]) for r in panel[PAPER.name]}
        above.append(costs[4] - min(costs.values()))
    slow, fast = (float(np.mean([float(r["us"]) for r in rows if r["policy"] == PAPER.name and int(r["bits"]) == b]))
                  for b in (max(int(r["bits"]) for r in rows), 4))  # fmt: skip
    figures = {
        "cost": ("average cost a sample", f"Four bits cost at most {max(above):.3f} a sample more than the best width"),
        "us": ("microseconds a sample (compiled)", f"A decision takes {fast:.2g} µs with 4 bits, {slow:.2g} µs with the most"),
    }  # fmt: skip
    for key, (label, message) in figures.items():
        lab_plots.grid(setting.png(f"bits_{key}"), content, ("bits", key), ("bits of the score, b", label), message, note)
