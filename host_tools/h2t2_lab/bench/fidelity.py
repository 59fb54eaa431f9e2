"""`h2t2-lab bench fidelity`: compares the integer core with the float64 reference in every mode."""

from h2t2_tools.checks import validate
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report

from . import Progress, Row, cell, table

TITLE = "Integers against float64"
BITS = (4, 6, 8, 10)


def measure(progress: Progress, rounds: Count = 20000) -> list[Row]:
    """Count decisions that differ from float64. It tries every mode of the integer core, b from 4 to 10.

    Args:
        rounds: rounds of each row

    Returns:
        A row of validate.compare() for each number of bits and mode.
    """
    rows = []
    for bits in BITS:
        for mode in validate.MODES:
            progress(f"b = {bits}, {mode}")
            rows.append(validate.compare(bits, rounds, 1, mode))
    return rows


def report(rows: list[Row]) -> Report:
    """Return a table with a line for each number of bits, and the total."""
    totals = []
    for bits in BITS:
        of_bits = [row for row in rows if row["bits"] == bits]
        differ = sum(row["differ"] for row in of_bits)
        totals.append(
            {
                "b": bits,
                "decisions": sum(row["rounds"] for row in of_bits),
                "differ": differ,
                "margin": max(row["margin"] for row in of_bits) if differ else None,
                "error": max(row["worst_error"] for row in of_bits),
            }
        )
    columns = {
        "b": cell("b"),
        "decisions": cell("decisions", ","),
        "differing": cell("differ"),
        "largest margin": cell("margin", ".1e"),
        "largest probability error": cell("error", ".1e"),
    }
    title = f"{len(validate.MODES)} modes of the policy, the same draws on both sides"
    differ, decisions = sum(row["differ"] for row in rows), sum(row["rounds"] for row in rows)
    return [table(title, totals, columns, words=0), f"In all {differ} of {decisions:,} decisions differ."]
