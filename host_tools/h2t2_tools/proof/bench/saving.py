"""`h2t2 bench saving`: what the policy saves on the demo's stream, through a real broker and a real remote model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...common import pairs, policies
from ...common.report import Report, Table
from .. import demo

TITLE = "What it saves"
SAMPLES = 2000


def measure(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """A demo's report for each shipped pair."""
    made = []
    for name in ("breast_cancer", "digits"):
        progress(name)
        pair = pairs.load(name)
        usual = {key: policies.DEFAULTS[key] for key in policies.DEFAULTS if key not in ("window", "rdl_fp", "rdl_fn")}
        numbers = {**usual, "beta": pair.about.beta}
        with tempfile.TemporaryDirectory() as folder:
            made.append(demo.demonstrate(pair, policies.NAMES[0], numbers, SAMPLES, "amqtt", 1, Path(folder)))
    return made


def report(measured: list[dict[str, Any]]) -> Report:
    """A table a pair."""
    columns = {"policy": "left", **dict.fromkeys(("average cost", "missed", "false alarms", "offloaded"), "right")}
    made: Report = []
    for one in measured:
        cells = [
            [name, f"{row['cost']:.4f}", f"{row['fn']:.1%}", f"{row['fp']:.1%}", f"{row['offload']:.1%}"]
            for name, row in one["policies"].items()
        ]
        made.append(Table(f"{one['pair']}: {one['samples']:,} samples, beta = {one['numbers']['beta']:g}", columns, cells))
    return made
