"""The experiments, one a file: the paper's figures and ours. Each writes a picture and a CSV."""

import csv
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from h2t2_tools.common.fields import OneOf
from h2t2_tools.common.report import Report, Table
from h2t2_tools.replay.simulation.cluster import cluster

ALL = tuple(
    "in-order past plane cost eta bits regret shift modes multiclass late horizon "
    "adversary reacting budget misses guarantee flywheel head averaged-head over-time".split()
)
Name = Annotated[str, AfterValidator(OneOf(("all", *ALL)))]


def measure(
    progress: Callable[[str], None],
    name: Name,
    out: Path = Path("results/experiments"),
    quick: bool = False,
    data: Path | None = None,
    dask: str | None = None,
) -> list[dict[str, Any]]:
    """Draw the paper's figures and further ones. Each becomes a picture and a CSV.

    Args:
        name: the experiment, or all
        out: folder for the PNG and CSV files
        quick: fewer runs and points: a look in under a minute
        data: folder with traces to use in place of the shipped ones
        dask: address of a Dask scheduler, whose workers then play the runs, with this version of h2t2; default: this machine

    Examples:
        h2t2-lab experiment all --quick --out results/experiments
        h2t2-lab experiment cost
        h2t2-lab experiment regret --dask tcp://10.0.0.5:8786

    Returns:
        Rows of perform(), with "name".
    """
    rows = []
    with cluster(dask):
        for each in ALL if name == "all" else (name,):
            progress(each)
            rows.append({"name": each, **perform(each, out, quick, data)})
    return rows


def report(rows: list[dict[str, Any]]) -> Report:
    """Return the tables of the experiments, and the files that they wrote."""
    lines: Report = []
    for row in rows:
        if "rows" in row:
            columns = {name: "right" if n else "left" for n, name in enumerate(row["rows"][0])}
            lines.append(Table(row["name"], columns, [list(cells.values()) for cells in row["rows"]]))
        lines.append(f"{row['name']}: {row['seconds']:.1f} s, {', '.join(row['files'])}")
    return lines


def perform(name: str, out: Path, quick: bool, data: Path | None) -> dict[str, Any]:
    """Run an experiment.

    Args:
        name: One of ALL.
        out: Folder for its pictures and CSVs; created if missing.
        quick: Make fewer runs and use fewer points.
        data: Folder whose traces replace the shipped ones; None: only the shipped ones.

    Returns:
        `seconds` that it took, the `files` that it wrote, and `rows` if it has a table to print.

    Raises:
        ValueError: No experiment has this name.
    """
    from .setting import Setting

    if name not in ALL:
        raise ValueError(f"experiment {name}: not one of {', '.join(ALL)}")
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    module = import_module(f".{name.replace('-', '_')}", __package__)
    module.perform(setting := Setting(out, quick, data))
    report: dict[str, Any] = {"seconds": time.perf_counter() - started, "files": [str(file) for file in setting.files]}
    if setting.shown:
        with setting.shown.open(newline="", encoding="utf-8") as file:
            report["rows"] = list(csv.DictReader(file))
    return report
