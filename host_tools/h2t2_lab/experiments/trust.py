"""`trust`: how much to trust a table of 200 labelled samples: what it saves where it is right, and costs where it is wrong.

The forecaster gives half of its weight to forecasts that know the table. The experiment starts it with more of the weight, and,
as another way to trust it, as if it had seen labels of each bin that agree with the table.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core import policies
from h2t2.core.forecaster import KINDS, SLOPE, Forecaster
from h2t2.core.numbers import ONE
from h2t2.core.watch import MEMORIES
from h2t2_tools.replay.prior import table
from h2t2_tools.replay.replay import write_csv
from h2t2_tools.replay.simulation.player import play
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.fixed import FixedPair
from h2t2_tools.replay.simulation.policies.offline import OfflinePair
from h2t2_tools.replay.simulation.stream import Costs, Stream, charged, draw
from h2t2_tools.replay.simulation.sweep import device_seed
from h2t2_tools.replay.traces import Trace

from .. import plots
from .horizon import BETAS, LABELLED
from .setting import Setting, paper_costs

SHARES = (0.5, 0.8, 0.9, 0.95)
LABELS = (1, 4)
KNOWING = 2  # the kinds of forecasts that know the table come first
TABLES = ("right", "inverted")
HORIZONS, LONG = (300, 1000), 10000
RUNS, LONG_RUNS, QUICK_RUNS = 8, 2, 2
GOAL = "goal"
GOALS = {"right": {300: 0.011, 1000: 0.0065, LONG: 0.0031}, "inverted": {300: 0.0337, 1000: 0.0172, LONG: 0.0050}}
FIELDS = ("way", "value", "T", "runs", "right", "right_se", "inverted", "inverted_se")
TABLE = "trust.csv"  # which the command prints


@dataclass(frozen=True)
class Trusting(Policy):
    """The adaptive policy with a table that it trusts more or less.

    Attributes:
        table: P(event) of each bin.
        share: Of the weight of the forecasts at the start, for those that know the table.
        labels: That each bin seems to have seen, in agreement with the table.
        bits: Score bits.
    """

    table: tuple[float, ...]
    share: float = 0.5
    labels: int = 0
    bits: int = 4
    name = "adaptive"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        numbers = units.policy(
            bits=self.bits, beta=costs.beta, delta_fp=costs.delta_fp, delta_fn=costs.delta_fn, prior=list(self.table)
        )  # fmt: skip
        device: Any = policies.make("adaptive", {**numbers, "seed": seed})
        weigh_table(device.forecaster, self.share)
        count_table(device.forecaster, self.labels)
        return play(device, stream.bins(self.bits), stream)


def weigh_table(forecaster: Forecaster, share: float) -> None:
    """Give forecasts that know the table this share of the weight, .5 or more; forecasts of a kind stay equal."""
    loss = round(math.log2(share / (1 - share)) / (2 * SLOPE) * ONE)  # weights are 2^-(2 SLOPE loss)
    for n in range(len(forecaster.loss)):
        forecaster.loss[n] = loss if n % KINDS >= KNOWING else 0
    forecaster.derive()


def count_table(forecaster: Forecaster, labels: int) -> None:
    """Count labels in each bin, of which the table's share are events."""
    bins = len(forecaster.prior)
    for memory in range(MEMORIES):
        for k, p in enumerate(forecaster.prior):
            node = bins + k
            while node:
                forecaster.labels[memory * 2 * bins + node] += 4 * labels  # counts are quarters
                forecaster.events[memory * 2 * bins + node] += round(4 * labels * p / ONE)
                node >>= 1
    forecaster.derive()


WAYS: dict[tuple[str, float], dict[str, Any]] = {
    **{("share of the weight", share): {"share": share} for share in SHARES},
    **{("labels a bin", labels): {"labels": labels} for labels in LABELS},
}
KEPT_PAIR = ("best pair, kept", 0.0)


def perform(setting: Setting) -> list[Path]:
    traces = list(setting.traces().values())
    rows = _rows(traces, HORIZONS, QUICK_RUNS if setting.quick else RUNS)
    if not setting.quick:
        rows += _rows(traces, (LONG,), LONG_RUNS)
    write_csv(setting.out / TABLE, FIELDS, rows)
    return [_draw(setting.out, rows, len(traces)), setting.out / TABLE]


def _rows(traces: list[Trace], horizons: tuple[int, ...], runs: int) -> list[dict[str, Any]]:
    """The rows of each way at each horizon. The error is that of the runs of each trace; the traces themselves stay."""
    shape = len(TABLES), len(traces), runs, len(horizons)
    excess = {key: np.zeros(shape) for key in (KEPT_PAIR, *WAYS)}  # mean of BETAS
    for m, trace in enumerate(traces):
        for run in range(runs):
            labelled = draw(trace, LABELLED, 1000 + run, 0.0)
            right = tuple(table(labelled.score, labelled.label, 4))
            tables = (right, tuple(1 - p for p in right))
            inverted = replace(labelled, label=1 - labelled.label)
            pairs = [FixedPair(LABELLED, labelled=samples) for samples in (labelled, inverted)]
            for beta in BETAS:
                stream = draw(trace, max(horizons), run, beta)
                best = _best(stream, beta, horizons)
                for n in range(len(TABLES)):
                    started = {key: Trusting(tables[n], **options) for key, options in WAYS.items()}
                    for key, policy in {KEPT_PAIR: pairs[n], **started}.items():
                        excess[key][n, m, run] += (_costs(policy, stream, run, beta, horizons) - best) / len(BETAS)
    rows = []
    for (way, value), cells in excess.items():
        errors = np.sqrt((cells.var(2, ddof=1) / runs).sum(1)) / len(traces)
        for at, horizon in enumerate(horizons):
            row: dict[str, Any] = {"way": way, "value": value, "T": horizon, "runs": runs}
            for n, name in enumerate(TABLES):
                row |= {name: f"{cells[n, :, :, at].mean():.4f}", f"{name}_se": f"{errors[n, at]:.4f}"}
            rows.append(row)
    return rows


def _costs(policy: Policy, stream: Stream, run: int, beta: float, horizons: tuple[int, ...]) -> np.ndarray:
    """The cost a sample of the first samples of a stream, for each horizon. The policy does not know the horizon."""
    costs = paper_costs(beta)
    paid = charged(policy.act(stream, costs, device_seed(run, beta)), stream, costs)[0]
    return np.array([paid[:horizon].mean() for horizon in horizons])


def _best(stream: Stream, beta: float, horizons: tuple[int, ...]) -> np.ndarray:
    """The cost a sample of the best fixed pair in hindsight, for each horizon."""
    return np.array([_costs(OfflinePair(), stream.stretch(0, n), 0, beta, (n,))[0] for n in horizons])


def _draw(out: Path, rows: list[dict[str, Any]], traces: int) -> Path:
    """Draw the frontier, a panel for each horizon."""
    content: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for horizon in dict.fromkeys(row["T"] for row in rows):
        points = [row for row in rows if row["T"] == horizon and row["way"] != KEPT_PAIR[0]]
        lines = {way: [row for row in points if row["way"] == way] for way in dict.fromkeys(row["way"] for row in points)}
        start = [row for row in points if (row["way"], row["value"]) == ("share of the weight", SHARES[0])]
        lines["labels a bin"] = start + lines["labels a bin"]
        lines[GOAL] = [{name: GOALS[name][horizon] for name in TABLES}]
        content[f"T = {horizon:,}"] = lines
    return plots.grid(
        out / "trust.png",
        content,
        TABLES,
        ("excess with the right table", "excess with the inverted table"),
        "The more a device trusts a table, the less it pays where the table is right, and the more where it is wrong",
        f"excess cost a sample over θ*, mean of {traces} traces and {len(BETAS)} β; both lines start at the product's setting",
        log="y",
    )
