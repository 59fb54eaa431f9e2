"""`in-order`: excess cost over the best fixed pair in hindsight on recorded streams, in their order and shuffled."""

from typing import Any

from h2t2_tools.common import plots
from h2t2_tools.replay import trace_names
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.baselines import FullOffload, NoOffload
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import draw, ordered
from h2t2_tools.replay.simulation.sweep import grid, sweep

from .setting import BASELINES, DRAWN, MATRIX, MODES, PAPER, PAPER_1, Setting, excess

STREAMS = ("weather", "flights", "showers", "fog", "bikes", "occupancy")  # by length
BETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
POLICIES: tuple[Policy, ...] = (Adaptive(), MODES, PAPER, PAPER_1, *BASELINES, FullOffload(), NoOffload())
RUNS = 5  # a stream in its order is always the same; only the draws of the policy differ
WAYS = {"in order": ordered, "shuffled": draw}


def perform(setting: Setting) -> None:
    rows: list[dict[str, Any]] = []
    runs, betas = min(RUNS, setting.runs), BETAS[3:4] if setting.quick else BETAS
    for name in STREAMS:
        trace = trace_names.find(name, setting.data)
        samples = min(2000, len(trace.label)) if setting.quick else len(trace.label)
        for way, make in WAYS.items():
            results = sweep(grid(trace, POLICIES, betas, MATRIX, samples=samples, runs=runs, make=make))
            for policy in POLICIES:
                mine = [result for result in results if result.job.policy.name == policy.name]
                mean, deviation = excess(mine)
                where = {"stream": name, "way": way, "samples": samples, "policy": policy.name}
                rows.append({**where, "excess": mean, "excess_sd": deviation, "worst": max(result.regret for result in mine)})
    setting.csv("in_order", rows)
    draw_figure(setting, rows)


def draw_figure(setting: Setting, rows: list[dict[str, Any]]) -> None:
    """Draw the excess of each policy on each stream in its order."""
    ordered_rows = [row for row in rows if row["way"] == "in order"]
    cells = {(row["stream"], row["policy"]): row for row in ordered_rows}
    streams = list(dict.fromkeys(row["stream"] for row in ordered_rows))
    names = [name for name in DRAWN if (streams[0], name) in cells]
    ours = Adaptive.name
    cheapest = sum(
        all(float(cells[stream, ours]["excess"]) <= float(cells[stream, name]["excess"]) for name in names)
        for stream in streams
    )
    below = sum(float(cells[stream, ours]["excess"]) < 0 for stream in streams)
    plots.row_marks(
        setting.png("in_order"),
        [
            {
                "stream": f"{stream} ({int(cells[stream, ours]['samples']):,})",
                **{name: float(cells[stream, name]["excess"]) for name in names},
                **{f"{name}_sd": float(cells[stream, name]["excess_sd"]) for name in names},
            }
            for stream in streams
        ],
        "stream",
        names,
        "excess cost a sample over the best fixed pair in hindsight",
        f"On {cheapest} of {len(streams)} recorded streams the adaptive policy costs least; "
        f"on {below} it beats every fixed pair",
        "streams in their order (samples), mean of the costs of an offload; bars: standard deviation over the runs",
    )
