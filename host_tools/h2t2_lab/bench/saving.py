"""`h2t2-lab bench saving`: the cost of each policy on the demo's stream, through a real broker and a real remote model."""

import tempfile
from pathlib import Path

from h2t2_tools.common import pairs, policies
from h2t2_tools.common.report import Report
from h2t2_tools.demo import demo

from . import Progress, Row, cell, table

TITLE = "What it saves"
SAMPLES = 2000


def measure(progress: Progress) -> list[Row]:
    """Measure what the policy saves on the demo's streams. It compares with never asking, always asking and hindsight.

    Returns:
        The reports of the demo with three shipped pairs: one in the order of time, then two in random order.
    """
    reports = []
    for name in ("airport", "breast_cancer", "digits"):
        progress(name)
        pair = pairs.load(name)
        usual = {key: policies.DEFAULTS[key] for key in policies.DEFAULTS if key != "window"}
        numbers = {**usual, "beta": pair.info.beta, "ordered": pair.info.ordered}
        with tempfile.TemporaryDirectory() as folder:
            reports.append(
                demo.demonstrate(
                    pair, policies.NAMES[0], numbers, samples=SAMPLES, broker_kind="amqtt", in_flight=1, out=Path(folder)
                )
            )
    return reports


def report(measured: list[Row]) -> Report:
    """Return a table for each pair."""
    columns = {
        "policy": cell("policy"),
        "average cost": cell("cost", ".4f"),
        "missed": cell("fn", ".1%"),
        "false alarms": cell("fp", ".1%"),
        "offloaded": cell("offload", ".1%"),
    }
    tables: Report = []
    for run in measured:
        rows = [{"policy": name, **row} for name, row in run["policies"].items()]
        tables.append(table(f"{run['pair']}: {run['samples']:,} samples, beta = {run['numbers']['beta']:g}", rows, columns))
    return tables
