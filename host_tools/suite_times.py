"""`make times`: writes the last times of the test suites and the table of test-all to docs/testing.md.

What this machine has no results of stays on the page as another machine wrote it. Why tests were skipped is in their JUnit
files, and at the end of what pytest prints.

pytest leaves one JUnit file a suite and Python in results/suites: quick-3.11.xml, whole-3.11.xml, ... bare_debian.sh leaves
what a command said on a bare Debian in results/bare: "Debian 12, root, demo.txt", ... test_all.py leaves results/test-all.json.
"""

import json
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

from h2t2_lab.pages.page_parts import between, inside

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs/testing.md", ROOT / "results/suites"
BARE = ROOT / "results/bare"
TEST_ALL = ROOT / "results/test-all.json"
SUITES_HEAD = "| suite | Python | passed | failed | skipped | minutes | day |"
BARE_HEAD = "| system | user | command | exit status | seconds | day |"
PARTS_HEAD = "| part | result | passed | failed | skipped | seconds |"


def suite_row(path: Path) -> str:
    """The row of one JUnit file."""
    suite = next(ElementTree.parse(path).getroot().iter("testsuite"))
    name, _, python = path.stem.rpartition("-")
    tests, failures, errors, skipped = (int(suite.get(count, "0")) for count in ("tests", "failures", "errors", "skipped"))
    failed = failures + errors
    minutes = float(suite.get("time", "0")) / 60
    day = suite.get("timestamp", "")[:10]
    return f"| {name} | {python} | {tests - failed - skipped:,} | {failed} | {skipped} | {minutes:.1f} | {day} |"


def bare_row(path: Path) -> str:
    """The row of one command on a bare Debian, whose last line is "exit 0 after 27 s"."""
    system, user, target = path.stem.split(", ")
    _, status, _, seconds, _ = path.read_text().split()[-5:]
    day = time.strftime("%F", time.gmtime(path.stat().st_mtime))
    return f"| {system} | {user} | {target} | {status} | {int(seconds):,} | {day} |"


def table(head: str, rows: list[str]) -> str:
    """A table of Markdown."""
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows])


def renewed(part: str, head: str, rows: list[str], columns: int) -> str:
    """The table of a part of the page with these rows: the newest of those that agree in their first columns."""
    rows = sorted(part.splitlines()[2:] + rows, key=lambda row: row.rsplit(" | ", 1)[1])
    newest = {" | ".join(row.split(" | ")[:columns]): row for row in rows}
    return table(head, [newest[key] for key in sorted(newest)])


def parts_table(path: Path) -> str:
    """The table of the parts of `make test-all`."""
    result = json.loads(path.read_text())
    rows = []
    for row in result["parts"]:
        tests = [row["passed"], row["failed"], row["skipped"]]
        counts = [f"{count:,}" if any(tests) else "" for count in tests]
        columns = [row["part"], "failed" if row["status"] else "passed", *counts, f"{row['seconds']:,}"]
        rows.append(f"| {' | '.join(columns)} |")
    return f"On {result['day']}, in this order:\n\n{table(PARTS_HEAD, rows)}"


def mark(part: str) -> str:
    """The mark at which a part of the page begins."""
    return f"<!-- {part}: make times -->"


def main() -> int:
    """Write the tables of what ran here. Returns 1 where no suite has run here."""
    files = sorted(RESULTS.glob("*.xml"))
    if not files:
        print(f"{RESULTS}: no suite has run here; make test", file=sys.stderr)
        return 1
    page = PAGE.read_text()
    for part, head, rows, columns in (
        ("times", SUITES_HEAD, list(map(suite_row, files)), 1),
        ("bare", BARE_HEAD, list(map(bare_row, sorted(BARE.glob("*.txt")))), 3),
    ):
        page = between(page, mark(part), renewed(inside(page, mark(part)), head, rows, columns))
    if TEST_ALL.exists():
        page = between(page, mark("test-all"), parts_table(TEST_ALL))
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
