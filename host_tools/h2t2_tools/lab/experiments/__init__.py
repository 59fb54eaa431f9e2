"""The experiments, one a file: the paper's figures and ours. Each writes a picture and a CSV."""

import csv
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from .names import NAMES as ALL


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
    files = module.perform(Setting(out, quick, data))
    report: dict[str, Any] = {"seconds": time.perf_counter() - started, "files": [str(file) for file in files]}
    if hasattr(module, "TABLE"):
        with (out / module.TABLE).open(newline="", encoding="utf-8") as file:
            report["rows"] = list(csv.DictReader(file))
    return report
