"""`plane`: error rates and cost of every policy with one threshold and of every policy with two."""

import numpy as np

from h2t2_tools.replay import trace_names
from h2t2_tools.replay.simulation.policies.baselines import thresholds
from h2t2_tools.replay.simulation.stream import Stream, outcome

from .. import lab_plots
from ..lab_plots import compared
from .setting import DELTA_FN, DELTA_FP, Setting, paper_costs

BETA, BITS = 0.3, 4


def perform(setting: Setting) -> None:
    rows = []
    for title, name in (("BreakHis", "breakhis"), ("Synthetic", "synthetic")):
        trace = trace_names.find(name, setting.data)
        stream = Stream(trace.score, trace.label, np.full(len(trace.label), BETA))
        costs = paper_costs(BETA)
        events, n = (trace.label == 1).mean(), 2**BITS
        bins = stream.bins(BITS)
        best = thresholds(stream, costs, BITS)
        confidence = np.maximum(trace.score, 1 - trace.score)
        guess = (trace.score >= 0.5).astype(int)
        tried = [("one threshold", "", np.where(confidence < theta, -1, guess)) for theta in np.linspace(0.5, 1.0, 51)]
        for i in range(n + 1):
            for j in range(i, n + 1):
                kind = "two thresholds" if (i, j) != best else "best two thresholds"
                tried.append((kind, f"{i} {j}", np.where(bins < i, 0, np.where(bins < j, -1, 1))))
        for kind, at, actions in tried:
            result = outcome(actions, stream, costs)
            rates = {"fpr": result.fp / (1 - events), "fnr": result.fn / events}
            rows.append({"trace": title, "kind": kind, "pair": at, **rates, "cost": result.cost, "offload": result.offload})
    setting.csv("plane", rows)
    single, pair = (
        min(float(row["cost"]) for row in rows if row["trace"] == "BreakHis" and row["kind"] == kind)
        for kind in ("one threshold", "best two thresholds")
    )
    lab_plots.error_plane(
        setting.png("plane"),
        rows,
        f"Two thresholds reach errors that one cannot: on BreakHis the best pair costs {compared(pair, single)}",
        f"every policy with one threshold and with two, β = {BETA}, δ₁ = {DELTA_FP}, δ₋₁ = {DELTA_FN:g}",
    )
