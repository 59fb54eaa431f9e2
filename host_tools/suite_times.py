"""`make times`: writes the test suites' last times on this machine, and the skipped tests with reasons, to docs/testing.md.

pytest leaves one JUnit file a suite and Python in results/suites: quick-3.11.xml, whole-3.11.xml, ...
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs/testing.md", ROOT / "results/suites"
BEGIN, END = "<!-- times: make times -->", "<!-- end -->"


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


def main() -> int:
    """Write the table. Returns 1 where no suite has run here."""
    files = sorted(RESULTS.glob("*.xml"))
    if not files:
        print(f"{RESULTS}: no suite has run here; make test", file=sys.stderr)
        return 1
    head = ["| suite | Python | passed | failed | skipped, and why | minutes | measured on |", "|---|---|---|---|---|---|---|"]
    table = "\n".join([*head, *map(row, files)])
    before, after = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after.split(END)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
