"""Settings that all experiments share: the number of runs and samples, the data sets, the paper's costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from h2t2_tools.replay import synthetic, trace_names
from h2t2_tools.replay.replay import row, write_csv
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.baselines import FixedPair
from h2t2_tools.replay.simulation.policies.learners import H2T2
from h2t2_tools.replay.simulation.stream import Costs
from h2t2_tools.replay.simulation.sweep import Job, Result, grid, sweep
from h2t2_tools.replay.traces import Trace

from ..rivals.policies import Filter, HiLcb, TwoSidedBound

DELTA_FP, DELTA_FN = 0.7, 1.0  # as in the paper
MATRIX = ((0.0, DELTA_FP), (DELTA_FN, 0.0))
PAPER = H2T2(label="H2T2 (paper)")  # eta 1, b = 4, Corollary 1's epsilon for the current beta; PAPER_1 uses beta = 1
PAPER_1 = H2T2(epsilon_beta=1.0, label="H2T2 (paper, ε* of β = 1)")
MODES = H2T2(feedback="all", exploration="anytime")
BASELINES: tuple[Policy, ...] = (HiLcb(), TwoSidedBound(), Filter("threshold"), Filter("entropy"), FixedPair())
# names of the policies that a picture shows if it compares more than six; the CSV has all of them
DRAWN = ("adaptive", MODES.name, PAPER.name, HiLcb.name, Filter("entropy").name, FixedPair().name)


def paper_costs(beta: float) -> Costs:
    """Return the paper's costs of errors, with a cost of an offload."""
    return Costs(beta, MATRIX)


@dataclass
class Setting:
    """Where and how an experiment runs, and what it has written.

    Attributes:
        out: Folder for its files.
        quick: Make fewer runs and use fewer points.
        data: Folder whose traces replace the shipped ones; None: only the shipped ones.
        files: Its pictures and CSVs.
        shown: The CSV that the command prints.
    """

    out: Path
    quick: bool
    data: Path | None = None
    files: list[Path] = field(default_factory=list)
    shown: Path | None = None

    def png(self, name: str) -> Path:
        """Return the path of a picture."""
        self.files.append(self.out / f"{name}.png")
        return self.files[-1]

    def csv(self, name: str, rows: list[dict[str, Any]], fields: tuple[str, ...] = (), shown: bool = False) -> None:
        """Write rows with the columns `fields`; (): those of the first row. shown: the command prints them."""
        self.files.append(write_csv(self.out / f"{name}.csv", fields or tuple(rows[0]), rows))
        self.shown = self.files[-1] if shown else self.shown

    @property
    def runs(self) -> int:
        return 3 if self.quick else 25

    @property
    def samples(self) -> int:
        return 2000 if self.quick else 10000

    @property
    def betas(self) -> list[float]:
        return [0.05, 0.2, 0.4, 0.6] if self.quick else [round(0.05 * n, 2) for n in range(1, 13)]

    def traces(self, weak: bool = True) -> dict[str, Trace]:
        """Return a trace for each row of the paper's table, by title; with `weak` also our weaker models of these rows."""
        by_title = {}
        for at in synthetic.ROWS:
            kind = "" if trace_names.is_real(at.name, self.data) else " (synthetic)" if at.name != "synthetic" else ""
            by_title[at.title + kind] = trace_names.find(at.name, self.data)
            if weak and at.weak and trace_names.is_real(at.weak, self.data):
                by_title[f"{at.title}, weaker"] = trace_names.find(at.weak, self.data)
        return by_title

    def job(self, policy: Policy, traces: dict[str, Trace], cell: tuple[str, float]) -> Job:
        """Return the job of a policy in a cell: the title of a trace, and a cost of an offload."""
        title, beta = cell
        return Job(policy, traces[title], paper_costs(beta), self.samples, 0, self.runs, key=cell)

    def table(self, traces: dict[str, Trace], policies: Sequence[Policy], betas: Sequence[float]) -> list[dict[str, Any]]:
        """Return a report row for every trace, policy and beta, in this order."""
        rows = []
        for title, trace in traces.items():
            for result in sweep(grid(trace, policies, betas, MATRIX, samples=self.samples, runs=self.runs)):
                rows.append({"trace": title, **row(result)})
        return rows


def excess(results: Sequence[Result]) -> tuple[float, float]:
    """Return the mean excess of results over theta-star, and its standard deviation over the runs."""
    runs = np.mean([result.excess for result in results], 0)
    return float(runs.mean()), float(runs.std(ddof=1)) if len(runs) > 1 else 0.0


def by_trace(rows: list[dict[str, Any]], names: Sequence[str]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the rows of each trace and policy, for plots.grid()."""
    traces = dict.fromkeys(row["trace"] for row in rows)
    return {trace: lines([row for row in rows if row["trace"] == trace], names) for trace in traces}


def lines(rows: list[dict[str, Any]], names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each policy, for plots.curves()."""
    return {name: [r for r in rows if r["policy"] == name] for name in names}
