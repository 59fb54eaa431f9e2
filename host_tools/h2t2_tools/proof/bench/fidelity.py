"""`h2t2 bench fidelity`: the integer core against the float64 reference, every mode (`h2t2 validate` takes any bits)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...common.report import Report, Table
from .. import validate

TITLE = "Integers against float64"
BITS = (4, 6, 8, 10)


def measure(progress: Callable[[str], None], rounds: int = 20000) -> list[dict[str, Any]]:
    """Rows as validate.compare() gives them."""
    rows = []
    for bits in BITS:
        for mode in validate.MODES:
            progress(f"b = {bits}, {mode}")
            rows.append(validate.compare(bits, rounds, 1, mode))
    return rows


def report(rows: list[dict[str, Any]]) -> Report:
    """A row a number of bits, and the sum."""
    columns = {
        "b": "right",
        **dict.fromkeys(("decisions", "that differ", "farthest margin", "worst probability error"), "right"),
    }
    cells = []
    for bits in BITS:
        mine = [row for row in rows if row["bits"] == bits]
        differ = sum(row["differ"] for row in mine)
        margin = f"{max(row['margin'] for row in mine):.1e}" if differ else "-"
        worst = f"{max(row['worst_error'] for row in mine):.1e}"
        cells.append([str(bits), f"{sum(row['rounds'] for row in mine):,}", str(differ), margin, worst])
    total, differ = sum(row["rounds"] for row in rows), sum(row["differ"] for row in rows)
    title = f"{len(validate.MODES)} modes of the policy, the same draws on both sides"
    return [Table(title, columns, cells), f"In all {differ} of {total:,} decisions differ."]
