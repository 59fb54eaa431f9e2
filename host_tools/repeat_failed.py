"""`.ci/run`, after a `make test` that failed: repeats the failed tests, each alone and once.

    python3 host_tools/repeat_failed.py results/suites/quick-3.11.xml

It ends with 0 where at most LIMIT tests had failed and each of them passes now, and prints a line for each:
`flaky: TEST: first line of its failure`. It ends with 1 where more tests had failed, where one fails again, and where no test
is to blame: the JUnit file is missing, names no failed test, or names something that is none (a file that cannot be imported,
pytest itself).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

LIMIT = 3
PYTEST = [".venv/bin/pytest", "-q"]


def failures(junit: Path) -> dict[str, str]:
    """The first line of each failed test's failure, by the test's id for pytest."""
    first_lines: dict[str, str] = {}
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        for failure in [*case.iter("failure"), *case.iter("error")]:
            lines = (failure.get("message") or failure.text or "").strip().splitlines()
            first_lines.setdefault(
                test_id(case.get("classname", ""), case.get("name", "")), lines[0] if lines else "no message"
            )
    return first_lines


def test_id(classname: str, name: str) -> str:
    """The id of a test, whose class name in JUnit joins folders, file and classes. Without "::" where there is no such file."""
    parts = classname.split(".")
    for count in range(len(parts), 0, -1):
        path = Path("/".join(parts[:count]) + ".py")
        if path.is_file():
            return "::".join([path.as_posix(), *parts[count:], name])
    return f"{classname} {name}".strip()


def _options(test: str) -> list[str]:
    """The options of `make units` that pytest knows where it runs this test alone: the boards' tests declare one."""
    return ["--quick"] if test.startswith("hil/") else []


def main(arguments: list[str]) -> int:
    """Repeat the failed tests of a JUnit file. Returns the exit status."""
    junit = Path(*arguments)
    if not junit.is_file():
        print("no test has run, so none is repeated")
        return 1
    failed = failures(junit)
    others = [test for test in failed if "::" not in test]
    if not failed or others or len(failed) > LIMIT:
        reason = f"{others[0]} is no test" if others else f"{len(failed)} tests failed, and 1 to {LIMIT} are repeated"
        print(f"no test is repeated: {reason}")
        return 1
    for test in failed:
        if subprocess.run([*PYTEST, *_options(test), test], check=False).returncode != 0:
            print(f"FAILED twice: {test}")
            return 1
    for test, line in failed.items():
        print(f"flaky: {test}: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
