"""`make test-all`: runs each part of the whole suite, goes on past a part that fails, and ends with a table.

    python3 host_tools/test_all.py             every part
    python3 host_tools/test_all.py whole fuzz  these parts

A part is a target of the Makefile: `make whole` runs it alone. Its output comes line by line with its name before it, and goes
into results/test-all/PART.log. results/test-all.json has the table, which `make times` writes into docs/testing.md.
It ends with 1 where a part failed, 2 where an argument is no part.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

# one stage after the other: whole keeps all cores busy; of the last stage, parts begin in this order, the longest first
STAGES = [
    ["environments"],
    ["whole"],
    ["test-torch", "pythons", "test-train", "test-oracle", "mutants-sample", "fuzz", "docs"],
]
TOGETHER = 2
LOGS, TABLE = Path("results/test-all"), Path("results/test-all.json")
OUTCOMES = ("passed", "failed", "skipped")
ERRORS = re.compile(r"\b(\d+) errors?\b")


@dataclass
class Row:
    """What came of a part. status: of its command. The counts are of tests, 0 for a part without tests."""

    part: str
    status: int
    passed: int
    failed: int
    skipped: int
    seconds: int


def counts(line: str) -> dict[str, int] | None:
    """The tests of a closing line of pytest by outcome, None for any other line. Errors count as failed.

    >>> counts("==== 1 failed, 23 passed, 2 errors in 4.05s ====")
    {'passed': 23, 'failed': 3, 'skipped': 0}
    """
    if not re.search(r"\b\d+ (passed|failed|skipped|errors?)\b.* in \d[\d.]*s\b", line):
        return None
    found = {outcome: sum(map(int, re.findall(rf"\b(\d+) {outcome}\b", line))) for outcome in OUTCOMES}
    found["failed"] += sum(map(int, ERRORS.findall(line)))
    return found


def run(part: str) -> Row:
    """Run a part, print its lines, keep them in its log."""
    began = time.monotonic()
    total = dict.fromkeys(OUTCOMES, 0)
    with (LOGS / f"{part}.log").open("w") as log:
        child = subprocess.Popen(
            ["make", part],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for line in child.stdout or ():
            log.write(line)
            print(f"{part} | {line}", end="", flush=True)
            for outcome, count in (counts(line) or {}).items():
                total[outcome] += count
    return Row(part=part, status=child.wait(), **total, seconds=round(time.monotonic() - began))


def table(rows: list[Row]) -> str:
    """The table of all parts, as people read it.

    >>> print(table([Row("fuzz", 0, 0, 0, 0, 9), Row("whole", 2, 400, 1, 3, 900)]))
    part   result  passed  failed  skipped  seconds
    fuzz   passed       -       -        -        9
    whole  failed     400       1        3      900
    """
    width = max(len(row.part) for row in rows)
    lines = [f"{'part':{width}}  result  passed  failed  skipped  seconds"]
    for row in rows:
        tests = [row.passed, row.failed, row.skipped]
        passed, failed, skipped = [f"{count:,}" for count in tests] if any(tests) else "---"
        result = "failed" if row.status else "passed"
        lines.append(f"{row.part:{width}}  {result}  {passed:>6}  {failed:>6}  {skipped:>7}  {row.seconds:>7,}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run the parts named, or all. Returns the exit status."""
    unknown = set(arguments) - {part for stage in STAGES for part in stage}
    if unknown:
        print(f"test-all: no such part: {', '.join(sorted(unknown))}; parts: {', '.join(sum(STAGES, []))}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with ThreadPoolExecutor(TOGETHER) as pool:
        for stage in STAGES:
            rows += pool.map(run, [part for part in stage if not arguments or part in arguments])
            TABLE.write_text(json.dumps({"day": time.strftime("%F"), "parts": [asdict(row) for row in rows]}, indent=1) + "\n")
    print(f"\n{table(rows)}\nEach part alone: make PART. Their output: {LOGS}/")
    return int(any(row.status for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
