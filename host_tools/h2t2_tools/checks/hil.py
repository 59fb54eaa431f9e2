"""`h2t2 hil`: runs the HIL tests with pytest and reads their report, a JUnit file, into a row for each board."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from h2t2.cpython.interpreter import python

from ..common.errors import UserError

OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}  # of JUnit -> of pytest


def run_tests(
    folder: Path, boards: list[str], port: str | None, extra: list[str], out: Path
) -> tuple[int, list[dict[str, Any]]]:
    """Run the HIL tests. Return pytest's exit status and a row for each test.

    Args:
        folder: hil/ of a source tree.
        boards: Names of boards.
        port: Serial port of a real board, or None.
        extra: Further options of pytest.
        out: Folder for hil.xml and the boards' logs.
    """
    if not (folder / "boards.toml").is_file():
        raise UserError(f"{folder}: no boards.toml; run this in a source tree, or name its hil folder with --hil")
    out.mkdir(parents=True, exist_ok=True)
    path = (out / "hil.xml").resolve()
    path.unlink(missing_ok=True)
    command = python("-m", "pytest", "-q", "--install", str(folder), f"--junitxml={path}")
    command += [word for board in boards for word in ("--board", board)]
    command += ["--port", port] if port else []
    result = subprocess.run([*command, *extra], stdout=sys.stderr)
    rows = _rows(path) if path.exists() else []
    if result.returncode > 1 or not rows:
        raise UserError("pytest ran no test; its output above shows why")
    return result.returncode, rows


def _rows(path: Path) -> list[dict[str, Any]]:
    """A row for each test of a JUnit file. Its properties are JSON."""
    rows = []
    for case in ElementTree.parse(path).iter("testcase"):
        wrong = next((part for part in case if part.tag in OUTCOMES), None)
        outcome, reason = ("passed", "") if wrong is None else (OUTCOMES[wrong.tag], wrong.get("message", ""))
        row = {"test": case.get("name", "").partition("[")[0], "board": "", "emulated": False, "firmware": ""}
        row |= {"outcome": outcome, "reason": reason, "seconds": round(float(case.get("time", "0")), 2)}
        rows.append(row | {part.get("name", ""): json.loads(part.get("value", "null")) for part in case.iter("property")})
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each board: {"board", "firmware", "emulated", "passed", "failed", "skipped", "seconds"}."""
    summaries = []
    for board in dict.fromkeys(row["board"] for row in rows):
        mine = [row for row in rows if row["board"] == board]
        counts = {outcome: sum(row["outcome"] == outcome for row in mine) for outcome in ("passed", "failed", "skipped")}
        firmware = next((row["firmware"] for row in mine if row["firmware"]), "")
        seconds = round(sum(row["seconds"] for row in mine), 1)
        summaries.append({"board": board, "firmware": firmware, "emulated": mine[0]["emulated"], **counts, "seconds": seconds})
    return summaries
