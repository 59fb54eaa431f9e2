"""`bits`: cost and time a sample for each width of the score, for H2T2 and for the single-threshold continuum."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...common import plots
from ..replay import FIELDS, row, write_csv
from ..simulation.policies.single_threshold import SingleThreshold
from ..simulation.stream import Costs, draw
from ..simulation.sweep import grid, sweep
from .setting import DELTA_FN, DELTA_FP, MATRIX, PAPER, Setting

BETA = 0.3


def perform(setting: Setting) -> list[Path]:
    widths = [2, 4, 8] if setting.quick else [1, 2, 3, 4, 5, 6, 7, 8, 10]
    traces = setting.traces(weak=False)
    rows: list[dict[str, Any]] = []
    for title, trace in traces.items():
        stream = draw(trace, setting.samples, 0, BETA)
        for bits in widths:
            for policy in (replace(PAPER, bits=bits), SingleThreshold()):
                policy.act(stream, Costs.binary(BETA, DELTA_FP, DELTA_FN), 0)
                started = time.perf_counter()
                policy.act(stream, Costs.binary(BETA, DELTA_FP, DELTA_FN), 0)
                micros = (time.perf_counter() - started) / setting.samples * 1e6
                result = sweep(grid(trace, [policy], [BETA], MATRIX, samples=setting.samples, runs=setting.runs))[0]
                rows.append({"trace": title, "bits": bits, "us": micros, **row(result)})
    write_csv(setting.out / "bits.csv", ("trace", "bits", "us", *FIELDS), rows)
    for key, label in (("cost", "average cost a sample"), ("us", "microseconds a sample (compiled, this machine)")):
        plots.panels(
            setting.out / f"bits_{key}.png",
            {
                title: {name: [r for r in rows if (r["trace"], r["policy"]) == (title, name)] for name in
                        dict.fromkeys(r["policy"] for r in rows)}
                for title in traces
            },
            ("bits", key),
            ("bits of the score, b", label),
            f"Resolution at β = {BETA}, {setting.samples:,} samples, {setting.runs} runs",
        )  # fmt: skip
    return [setting.out / "bits_cost.png", setting.out / "bits_us.png", setting.out / "bits.csv"]
