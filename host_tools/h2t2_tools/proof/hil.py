"""`h2t2 hil`: runs the HIL tests with pytest and shows their report, a row for each board, also as an HTML page."""

import html
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..boards.emulators import catalogue
from ..common.errors import UserError
from ..common.toml_file import parse_entries


def run_tests(
    folder: Path, boards: list[str], port: str | None, extra: list[str], out: Path
) -> tuple[int, list[dict[str, Any]]]:
    """Run the HIL tests. Return pytest's exit status and a row for each test.

    Args:
        folder: hil/ of a source tree.
        boards: Names of boards.
        port: Serial port of a real board, or None.
        extra: Further options of pytest.
        out: Folder for hil.jsonl and hil.html.
    """
    if not (folder / "boards.toml").is_file():
        raise UserError(f"{folder}: no boards.toml; run this in a source tree, or name its hil folder with --hil")
    out.mkdir(parents=True, exist_ok=True)
    lines = out / "hil.jsonl"
    lines.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", str(folder), "--hil-report", str(lines.resolve())]
    command += [word for board in boards for word in ("--board", board)]
    command += ["--port", port] if port else []
    result = subprocess.run([*command, *extra], stdout=sys.stderr)
    rows = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    if result.returncode > 1 or not rows:
        raise UserError("pytest ran no test; its output above shows why")
    (out / "hil.html").write_text(page(rows))
    return result.returncode, rows


def prepare(folder: Path, boards: list[str], progress: Callable[[str], None]) -> None:
    """Fetch or build the missing emulators of these boards. The tests report those that this machine cannot run."""
    try:
        path = folder / "boards.toml"
        entries = parse_entries(path.read_bytes(), path)["board"]
    except OSError:
        return  # run_tests() reports it
    emulators = {e.get("emulator") for e in entries if e["id"] in boards or {"all", "emulated"} & {*boards}}
    missing = [board for board in catalogue.EMULATORS if board.name in emulators and board.missing()]
    catalogue.install(missing, progress)


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


FIXED = ("log", "test", "board", "emulated", "firmware", "outcome", "reason", "seconds", "commit", "time")
STYLE = """body{font:15px/1.5 sans-serif;margin:2em;color:#222}table{border-collapse:collapse;margin:1em 0}
td,th{border:1px solid #ccc;padding:.3em .7em;text-align:left}.passed{background:#e7f4ea}.failed{background:#fbe3e4}
.skipped{background:#f4f1de}"""


def page(rows: list[dict[str, Any]]) -> str:
    """Return the report as an HTML page without scripts."""

    def cell(value: Any) -> str:
        return f"<td>{html.escape(str(value))}</td>"

    lines = [f"<!doctype html><meta charset=utf-8><title>HIL report</title><style>{STYLE}</style><h1>Hardware in the loop</h1>"]
    lines.append(f"<p>Commit {html.escape(rows[0]['commit'])}, {html.escape(rows[0]['time'])}.</p><table><tr>")
    boards = summary(rows)
    lines += [f"<th>{name}</th>" for name in boards[0]]
    for row in boards:
        named = {**row, "emulated": "emulated" if row["emulated"] else "real"}
        lines.append("<tr>" + "".join(cell(value) for value in named.values()))
    lines.append("</table><table><tr><th>board<th>test<th>outcome<th>seconds<th>figures<th>why")
    for row in rows:
        figures = ", ".join(f"{key} {value}" for key, value in row.items() if key not in FIXED)
        cells = [row["board"], row["test"], row["outcome"], row["seconds"], figures, row["reason"]]
        lines.append(f"<tr class={row['outcome']}>" + "".join(map(cell, cells)))
    return "\n".join([*lines, "</table>", ""])
