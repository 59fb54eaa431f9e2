"""`h2t2 replay`: plays every policy on one trace, for each cost of an offload."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.units import q15

from ..common import plots
from ..common.delimited import TABLES
from ..common.errors import UserError
from ..common.tables import WHOLE, Selection, refuse_selection
from . import trace_names, traces
from .replay_options import ReplayOptions
from .simulation import policies
from .simulation.policies.base import Named, Policy
from .simulation.policy_names import MULTICLASS, NAMES, PAST
from .simulation.stream import Costs, Making, Stream, charged
from .simulation.sweep import Progress, Result, device_seed, grid, sweep
from .traces import Trace

SEGMENTS = 40  # points of a line in the picture over time
FIELDS = ("policy", "beta", "cost", "cost_sd", "fp", "fp_sd", "fn", "fn_sd", "offload", "offload_sd", "regret", "regret_sd")


def trace(name: str, selection: Selection = WHOLE, event: str | None = None) -> Trace:
    """Load a trace from a .csv, .parquet or .npz file, or by name. selection, event: what the user says of a table."""
    path = Path(name)
    if path.suffix in (*TABLES, ".npz"):
        return traces.load(path, selection, event)
    if event is not None:
        raise UserError(f"--event: the trace {name} numbers its classes")
    refuse_selection(f"the trace {name}", selection)
    return trace_names.find(name)


def row(result: Result) -> dict[str, Any]:
    """Return the line of a report, with the keys FIELDS."""
    name, beta = result.job.key
    numbers = {"policy": name, "beta": beta}
    for key in ("cost", "fp", "fn", "offload"):
        numbers |= {key: result.mean(key), f"{key}_sd": result.deviation(key)}
    known = not math.isnan(result.regret)
    deviation = float(np.std(result.excess, ddof=1)) if len(result.excess) > 1 else 0.0
    return {**numbers, "regret": result.regret if known else None, "regret_sd": deviation if known else None}


def write_csv(path: Path, fields: tuple[str, ...], rows: list[dict[str, Any]]) -> Path:
    """Write rows as CSV with all digits of their numbers and the columns `fields`. Return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def costs(classes: int, delta_fp: float, delta_fn: float) -> np.ndarray:
    """Return the costs of errors, (K, K). The last class is the event, whose misses cost delta_fn; others cost delta_fp."""
    for name, value in (("delta-fp", delta_fp), ("delta-fn", delta_fn)):
        q15(value, name)
    matrix = np.full((classes, classes), delta_fp)
    matrix[-1] = delta_fn
    np.fill_diagonal(matrix, 0)
    return matrix


def replay(
    source: Trace, chosen: ReplayOptions, policy_options: dict[str, Any], out: Path, progress: Progress
) -> dict[str, Any]:
    """Replay a trace. Write a CSV and pictures into `out`, and return the report.

    Args:
        source: The trace.
        chosen: How to replay it.
        policy_options: Further options, for the policies that have them: prior, rdl_fp, rdl_fn, eta, window. normal: the number
            of the class that is no event.
        out: Folder for the files.
        progress: Called with the numbers of completed and of all runs.
    """
    players = _select_policies(source, chosen, policy_options)
    making = Making(chosen.ordered, chosen.delay, chosen.lost)
    betas = [0.3] if source.beta is not None else chosen.beta  # a trace's own costs replace beta
    matrix = costs(source.classes, chosen.delta_fp, chosen.delta_fn)
    samples = min(chosen.samples, len(source.label)) if chosen.ordered else chosen.samples
    normal = policy_options.get("normal", -1)
    jobs = grid(source, players, betas, matrix, samples=samples, runs=chosen.runs, seed=chosen.seed, make=making, normal=normal)
    rows = [row(result) for result in sweep(jobs, progress)]
    rows.sort(key=lambda r: r["beta"])
    table = out / f"{_file_name(source.name)}.csv"
    write_csv(table, FIELDS, rows)
    figure = table.with_suffix(".png")
    plots.curves(
        figure,
        {policy.name: [r for r in rows if r["policy"] == policy.name] for policy in players},
        ("beta", "cost"),
        ("cost of an offload, β", "average cost a sample"),
        _message(source.name, rows),
        f"{samples:,} samples{' in their order' if chosen.ordered else ''}, {chosen.runs} runs; "
        "band: standard deviation over the runs",
    )
    over_time_picture = table.with_name(f"{table.stem}_over_time.png")
    middle = Costs.of(betas[len(betas) // 2], matrix, normal)
    stream = making(source, samples, chosen.seed, middle.beta)
    _draw_over_time(over_time_picture, source.name, players, stream, middle, chosen.seed)
    return {
        "over_time": str(over_time_picture),
        "samples": samples,
        "trace": source.name,
        "event": source.event if source.classes == 2 else None,
        "own_beta": source.beta is not None,
        "rows": rows,
        "csv": str(table),
        "figure": str(figure),
    }


def _message(name: str, rows: list[dict[str, Any]]) -> str:
    """Return what the picture of costs shows: the policy that is cheapest on average, of those that do not look ahead."""
    costs: dict[str, list[float]] = {}
    for line in rows:
        if not line["policy"].startswith("offline"):
            costs.setdefault(line["policy"], []).append(line["cost"])
    cheapest = min(costs, key=lambda policy: float(np.mean(costs[policy])), default="")
    return f"{name}: {cheapest} costs least" if len(costs) > 1 else name


def over_time(policy: Policy, stream: Stream, costs: Costs, runs: range, segments: int) -> list[dict[str, float]]:
    """Return the cost a sample in each segment of a stream, the mean over the runs: [{"n": last sample, "cost": ...}]."""
    edges = np.linspace(0, len(stream), min(segments, len(stream)) + 1).astype(int)
    paid = np.zeros(len(stream))
    for seed in runs:
        paid += charged(policy.act(stream, costs, device_seed(seed, costs.beta)), stream, costs)[0] / len(runs)
    return [{"n": int(b), "cost": float(paid[a:b].mean())} for a, b in zip(edges, edges[1:])]


def _draw_over_time(path: Path, name: str, players: list[Policy], stream: Stream, costs: Costs, seed: int) -> None:
    """Draw the cost a sample over time for the first run, of this seed, and the middle beta."""
    lines = {policy.name: over_time(policy, stream, costs, range(seed, seed + 1), SEGMENTS) for policy in players}
    plots.curves(
        path,
        lines,
        ("n", "cost"),
        ("samples so far", "cost a sample"),
        f"{name}: the cost over time",
        f"β = {costs.beta:g}",
    )


def _select_policies(source: Trace, chosen: ReplayOptions, policy_options: dict[str, Any]) -> list[Policy]:
    """Return the chosen policies. Raise UserError if one cannot play a trace of so many classes."""
    fitting = NAMES if source.score.ndim == 1 else MULTICLASS
    if PAST in chosen.policy and chosen.miss_rate:
        raise UserError(f"--policy {PAST}: not with --miss-rate")
    has_past = chosen.ordered and not chosen.miss_rate  # samples in no order of time have none
    every = [name for name in fitting if has_past or name != PAST]
    names = every if "all" in chosen.policy else list(dict.fromkeys(chosen.policy))
    for name in names:
        if name not in fitting:
            raise UserError(f"--policy {name}: not for a trace of {source.classes} classes; {', '.join(fitting)} are")
    unique: dict[str, Policy] = {}
    for bits in chosen.bits:
        for name in names:
            policy = policies.make(name, bits, chosen.half_life, source.classes, **policy_options)
            if len(chosen.bits) > 1 and hasattr(policy, "bits"):
                policy = Named(policy, f"{policy.name}, b = {bits}")
            unique.setdefault(policy.name, policy)
    return list(unique.values())


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name) or "trace"
