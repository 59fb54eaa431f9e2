"""Which tests run which line: `pytest` under coverage.py, with the test as its context."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import coverage
from mutants.sample import FOLDERS

HERE = Path(__file__).parent
# MicroPython runs these lines, and tells nobody which: the vectors of all policies
ON_MICROPYTHON = {"firmware/h2t2/core": "tests/core/test_everywhere.py::test_vectors_on_micropython[unix]"}
SETTINGS = """[run]
parallel = true
sigterm = true
patch = _exit
concurrency = thread, multiprocessing
source_pkgs = h2t2, h2t2_tools
disable_warnings = module-not-imported, no-data-collected
context = ${PYTEST_CURRENT_TEST-}
"""


class TestsByLine:
    """The tests of every line, and how long each test takes.

    Attributes:
        lines: (file relative to the repository, line) -> ids of tests.
        seconds: id of a test -> its duration.
    """

    def __init__(self, clone: Path, commit: str) -> None:
        """Run the four folders' quick tests of a commit, or read what an earlier run found."""
        stored = clone / "results/tests_by_line.json"
        content = json.loads(stored.read_text()) if stored.exists() else {}
        if content.get("commit") != commit:
            content = {"commit": commit, **self._record(clone)}
            stored.write_text(json.dumps(content))
        self.seconds: dict[str, float] = content["seconds"]
        tests = [*self.seconds]
        self.lines = {
            (path, int(line)): {tests[n] for n in numbers}
            for path, lines in content["lines"].items()
            for line, numbers in lines.items()
        }

    def _record(self, clone: Path) -> dict[str, Any]:
        folder = clone / "results/tests_by_line"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "settings").write_text(SETTINGS)
        durations, data_file = folder / "seconds.json", folder / "data"
        environment = {
            **os.environ,
            "COVERAGE_PROCESS_START": str(folder / "settings"),
            "COVERAGE_FILE": str(data_file),
            "H2T2_DURATIONS": str(durations),
            "PYTHONPATH": str(HERE),
        }
        folders = [f"tests/{name}" for name in FOLDERS]
        command = [*".venv/bin/pytest -q -n auto --dist worksteal -p recorded_tests -m".split(), "not whole", *folders]
        print("h2t2 mutants: which tests run which lines", file=sys.stderr, flush=True)
        subprocess.run(command, cwd=clone, env=environment, stdout=subprocess.DEVNULL)  # tests that fail are not used
        recorder = coverage.Coverage(data_file=str(data_file), config_file=False)
        recorder.combine([str(folder)])
        data, seconds = recorder.get_data(), json.loads(durations.read_text())
        numbers = {test: n for n, test in enumerate(seconds)}
        lines: dict[str, dict[int, list[int]]] = {}
        for path in data.measured_files():
            if not Path(path).is_relative_to(clone):  # a copy of the runtime for a board
                continue
            lines[str(Path(path).relative_to(clone))] = {
                line: sorted({numbers[test] for context in contexts if (test := _test_of(context)) in numbers})
                for line, contexts in data.contexts_by_lineno(path).items()
            }
        return {"seconds": seconds, "lines": lines}

    def of(self, path: str, line: int, limit_s: float) -> list[str]:
        """Tests of a line: those of the line's own package first, then the fastest, as many as take so long.

        A line that runs at import belongs to no test: then those of the other lines of the file, or of the folder of its tests.
        """
        area = Path(path).parts[2]
        reaching = self.lines.get((path, line)) or set().union(
            *(tests for (file, _), tests in self.lines.items() if file == path)
        )
        reaching = reaching or {test for test in self.seconds if test.startswith(f"tests/{area}/")}
        tests = sorted(reaching, key=lambda test: (test.split("/")[1] != area, self.seconds[test]))
        chosen = [test for folder, test in ON_MICROPYTHON.items() if path.startswith(f"{folder}/") and test in self.seconds]
        total = 0.0
        for test in tests:
            total += self.seconds[test]
            if total > limit_s and chosen:
                break
            chosen.append(test)
        return chosen


def _test_of(context: str) -> str:
    """The id of the test of a context: of this process "|ID", of a command "ID (call)|"."""
    static, _, dynamic = context.rpartition("|") if "|" in context else ("", "", context)
    return dynamic or static.rpartition(" (")[0] or context.rpartition(" (")[0]
