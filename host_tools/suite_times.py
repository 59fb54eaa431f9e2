"""`make times`: writes the test suites' last times, the skipped tests with reasons, and test-all's table to docs/testing.md.

What this machine has no results of stays on the page as another machine wrote it.

pytest leaves one JUnit file a suite and Python in results/suites: quick-3.11.xml, whole-3.11.xml, ... bare_debian.sh leaves
what a command said on a bare Debian in results/bare: "Debian 12, root, demo.txt", ... test_all.py leaves results/test-all.json.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from h2t2_lab.pages.page_parts import between, inside

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs/testing.md", ROOT / "results/suites"
BARE = ROOT / "results/bare"
TEST_ALL = ROOT / "results/test-all.json"
LAST = 20  # lines of a command's output


def row(path: Path) -> str:
    """The line of the table for one JUnit file."""
    suite = next(ElementTree.parse(path).getroot().iter("testsuite"))
    name, _, python = path.stem.rpartition("-")
    counts = {result: int(suite.get(result, "0")) for result in ("tests", "failures", "errors", "skipped")}
    passed = counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    # reasons without this machine's paths
    reasons = Counter(re.sub(r"(/\S+)+/", "", skip.get("message", "")).split(";")[0] for skip in suite.iter("skipped"))
    skipped = "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "none"
    minutes = float(suite.get("time", "0")) / 60
    failed = counts["failures"] + counts["errors"]
    day = suite.get("timestamp", "")[:10]
    return f"| {name} | {python} | {passed:,} | {failed} | {skipped} | {minutes:.1f} | {day} |"


def said(path: Path) -> str:
    """The end of a command's output on a bare Debian, under its heading."""
    system, user, target = path.stem.split(", ")
    lines = [re.sub(r"\x1b\[[\d;]*m|(?<=\s)/\S+/", "", line.rstrip()) for line in path.read_text().splitlines()]
    last = "\n".join([line for line in lines if line][-LAST:])
    return f"`make {target}` on {system} as {'root' if user == 'root' else 'another user'}:\n\n```text\n{last}\n```"


def rows_of(part: str) -> dict[str, str]:
    """The rows of a table by suite and Python."""
    rows = [line for line in part.splitlines() if line.startswith("| ")][1:]
    return {" ".join(line.split(" | ", 2)[:2]): line for line in rows}


def outputs_of(part: str) -> dict[str, str]:
    """The outputs of commands by their headings, each with its heading."""
    outputs = re.split(r"(?m)^(?=`make \S+` on Debian )", part)[1:]
    return {output.splitlines()[0]: output.strip() for output in outputs}


def parts_table(path: Path) -> str:
    """The table of the parts of `make test-all`."""
    result = json.loads(path.read_text())
    lines = [
        f"On {result['day']}, in this order:",
        "",
        "| part | result | passed | failed | skipped | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["parts"]:
        tests = [row["passed"], row["failed"], row["skipped"]]
        columns = [
            row["part"],
            "failed" if row["status"] else "passed",
            *(f"{count:,}" if any(tests) else "" for count in tests),
        ]
        lines.append(f"| {' | '.join(columns)} | {row['seconds']:,} |")
    return "\n".join(lines)


def mark(part: str) -> str:
    """The mark at which a part of the page begins."""
    return f"<!-- {part}: make times -->"


def main() -> int:
    """Write the table, and what commands said on a bare Debian, if they ran. Returns 1 where no suite has run here."""
    files = sorted(RESULTS.glob("*.xml"))
    if not files:
        print(f"{RESULTS}: no suite has run here; make test", file=sys.stderr)
        return 1
    page = PAGE.read_text()
    rows = rows_of(inside(page, mark("times"))) | rows_of("\n".join(["| head", *map(row, files)]))
    head = ["| suite | Python | passed | failed | skipped, and why | minutes | measured on |", "|---|---|---|---|---|---|---|"]
    page = between(page, mark("times"), "\n".join([*head, *(rows[key] for key in sorted(rows))]))
    outputs = outputs_of(inside(page, mark("bare"))) | outputs_of("\n\n".join(map(said, sorted(BARE.glob("*.txt")))))
    page = between(page, mark("bare"), "\n\n".join(outputs[heading] for heading in sorted(outputs)))
    if TEST_ALL.exists():
        page = between(page, mark("test-all"), parts_table(TEST_ALL))
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
