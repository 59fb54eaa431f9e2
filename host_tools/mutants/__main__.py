"""`make mutants`: changes single places of core, link, node and fleet, and counts how many changes the tests notice.

Each of two clones of the last commit takes a mutant after the other and runs the tests that reach its line. A mutant is killed
if one of them fails, or does not end. results/mutants/outcomes.json keeps each outcome: a run that is interrupted goes on. The
test that killed a mutant before, as killers.json tells, runs first; only if it does not kill it are the line's tests looked up,
for which all of the four folders run once. Examples:

    make mutants                       # 300 mutants
    make mutants-sample                # 40, as make test-all does
    python host_tools/mutants --count 60 --seed 7 --only fleet
"""

import argparse
import json
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from zlib import crc32

import tomllib

sys.path.insert(0, str(Path(__file__).parents[1]))
from mutants.sample import FOLDERS, ROOT, Mutant, sample  # noqa: E402
from mutants.tests_by_line import TestsByLine  # noqa: E402

FOLDER, PAGE = ROOT / "results/mutants", ROOT / "docs/testing.md"
OUTCOMES = FOLDER / "outcomes.json"
EQUIVALENT, KILLERS = Path(__file__).parent / "equivalent.toml", Path(__file__).parent / "killers.json"
BEGIN, END = "<!-- mutants: make mutants -->", "<!-- end -->"
GOAL = 85
LIMIT_S = 30.0  # of tests for a mutant, by their durations


def output(*command: str) -> str:
    """What a command of git prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def clone(number: int, commit: str) -> Path:
    """A clone of a commit with an environment of its own."""
    place = FOLDER / str(number)
    if not place.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(place)], check=True)
    subprocess.run(["git", "fetch", "-q", str(ROOT), commit], cwd=place, check=True)
    subprocess.run(["git", "checkout", "-q", "--force", "--detach", commit], cwd=place, check=True)
    subprocess.run(["make", "-s", "setup"], cwd=place, check=True, stdout=subprocess.DEVNULL)
    return place


class Outcomes:
    """The outcome of each mutant, on disk. It holds as long as the mutant's file and the test that killed it stay the same.

    A mutant that survived is tried again at each commit, because a test may be new.
    """

    def __init__(self, commit: str) -> None:
        self._commit = commit
        self._rows: dict[str, dict[str, str]] = json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}
        self._killers: dict[str, str] = json.loads(KILLERS.read_text())

    def result(self, mutant: Mutant) -> str:
        """ "killed", "survived", "equivalent"; "" where it must be tried."""
        row = self._rows.get(_key(mutant), {})
        return row["result"] if row == self._row(mutant, row.get("result", ""), row.get("test", "")) else ""

    def _row(self, mutant: Mutant, result: str, test: str) -> dict[str, str]:
        row = {"result": result, "test": test, "changed": _digest(mutant.source)}
        return {**row, **({"by": _digest(_file_of(test))} if result == "killed" else {"commit": self._commit})}

    def killer(self, mutant: Mutant) -> str:
        """The test that killed it before; "" if none is known, or it is no more."""
        test = self._rows.get(_key(mutant), {}).get("test", "") or self._killers.get(_key(mutant), "")
        file, _, name = test.partition("[")[0].partition("::")
        return test if f"def {name.rpartition('::')[2]}(" in _file_of(file) or (not name and _file_of(file)) else ""

    def put(self, mutant: Mutant, result: str, test: str = "") -> None:
        """Keep an outcome. test: that killed it."""
        self._rows[_key(mutant)] = self._row(mutant, result, test)
        OUTCOMES.write_text(json.dumps(self._rows, indent=1))

    def keep_killers(self, mutants: list[Mutant]) -> None:
        """Let later commits know the tests that killed mutants."""
        killers = {_key(mutant): self.killer(mutant) for mutant in sorted(mutants) if self.result(mutant) == "killed"}
        KILLERS.write_text(json.dumps(killers, indent=1) + "\n")


def _digest(text: str) -> str:
    return f"{crc32(text.encode()):08x}"


def _file_of(test: str) -> str:
    """The text of a test's file; "" if there is none."""
    path = ROOT / (test.partition("::")[0] or "nothing")
    return path.read_text() if path.is_file() else ""


def _key(mutant: Mutant) -> str:
    return f"{mutant.path}: {mutant.before} -> {mutant.after}"


class Runner:
    """A clone whose tests run, and the process that forks for each run."""

    def __init__(self, place: Path) -> None:
        self.place = place
        script = Path(__file__).parent / "forked_tests.py"
        self._process = subprocess.Popen(
            [".venv/bin/python", "-B", str(script)], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def killer(self, mutant: Mutant, tests: list[str]) -> str:
        """Change a file, run tests, restore the file: the test that failed, or ""."""
        path = self.place / mutant.path
        source = path.read_text()
        path.write_text(mutant.source)
        try:
            assert self._process.stdin and self._process.stdout
            print(
                json.dumps(["-q", "-x", "-p", "no:cacheprovider", "-o", "timeout=60", *tests]),
                file=self._process.stdin,
                flush=True,
            )
            status, test = json.loads(self._process.stdout.readline())
        finally:
            path.write_text(source)
        return (test or tests[0]) if status else ""


def run(tasks: dict[Mutant, list[str]], places: list[Path], outcomes: Outcomes, *, last: bool) -> None:
    """Run tests for each mutant, with a line on standard error for each. last: what no test kills has survived."""
    waiting: queue.Queue[tuple[Mutant, list[str]]] = queue.Queue()
    for task in tasks.items():
        waiting.put(task)
    lock = threading.Lock()

    def work(place: Path) -> None:
        runner = Runner(place)
        while True:
            try:
                mutant, tests = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            killer = runner.killer(mutant, tests) if tests else ""
            result, seconds = "killed" if killer else "survived" if last else "unknown", time.monotonic() - began
            with lock:
                if last or killer:
                    outcomes.put(mutant, result, killer)
                progress = f"[{len(tasks) - waiting.qsize()}/{len(tasks)}] {result:8} {mutant.path}:{mutant.line}"
                print(f"{progress} {mutant.after} ({len(tests)} tests, {seconds:.0f} s)", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=work, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def equivalents() -> dict[tuple[str, str, str], str]:
    """Mutants that no input tells from the program: (path, line, changed line) -> the reason."""
    rows = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(row["path"], row["line"], row["changed"]): row["reason"] for row in rows}


def table(results: dict[str, Counter[str]], seed: int, commit: str) -> list[str]:
    """The report's rows."""
    rows = [
        f"Mutants of {commit[:12]}, drawn with seed {seed}:",
        "",
        "| folder | mutants | equivalent | killed | survived | share killed |",
        "|---|---|---|---|---|---|",
    ]
    for name, counts in results.items():
        figures = (
            f"{counts.total()} | {counts['equivalent']} | {counts['killed']} | {counts['survived']} | {share(counts):.0f} %"
        )
        rows.append(f"| {name} | {figures} |")
    return rows


def share(counts: Counter[str]) -> float:
    """Killed mutants, in per cent of those that are not equivalent."""
    return 100 * counts["killed"] / max(1, counts["killed"] + counts["survived"])


def main() -> int:
    """Returns 1 where a folder misses the goal."""
    parser = argparse.ArgumentParser("make mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="mutants, as many of each folder (300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (1)")
    parser.add_argument("--only", nargs="+", choices=[*FOLDERS], default=[*FOLDERS], help="folders (all)")
    parser.add_argument("--known", action="store_true", help="try the known killers alone: without one, a mutant has survived")
    parser.add_argument("--page", action="store_true", help="write the table into docs/testing.md")
    parser.add_argument("--goal", type=float, default=GOAL, help=f"per cent of each folder that must be killed ({GOAL})")
    options = parser.parse_args()
    commit = output("git", "rev-parse", "HEAD")
    if output("git", "status", "--porcelain", "--", *FOLDERS.values()):
        parser.error("commit your changes first: the mutants are those of the last commit")
    samples = {name: sample(name, options.count // len(options.only), options.seed) for name in options.only}
    mutants = [mutant for name in options.only for mutant in samples[name]]
    FOLDER.mkdir(parents=True, exist_ok=True)
    outcomes, reasons = Outcomes(commit), equivalents()
    for mutant in mutants:
        if (mutant.path, mutant.before, mutant.after) in reasons:
            outcomes.put(mutant, "equivalent")
    places = [clone(number, commit) for number in (1, 2)]
    untried = [mutant for mutant in mutants if not outcomes.result(mutant)]
    killers = {mutant: [test] for mutant in untried if (test := outcomes.killer(mutant))}
    run(killers, places, outcomes, last=False)
    remaining = [mutant for mutant in untried if not outcomes.result(mutant)]
    if options.known:
        for mutant in remaining:
            outcomes.put(mutant, "survived")
    elif remaining:
        by_line = TestsByLine(places[0], commit)
        run({mutant: by_line.of(mutant.path, mutant.line, LIMIT_S) for mutant in remaining}, places, outcomes, last=True)
    results = {name: Counter(map(outcomes.result, mutants)) for name, mutants in samples.items()}
    rows = table(results, options.seed, commit)
    print("\n".join(rows))
    if options.page:
        outcomes.keep_killers(mutants)
        before, after = PAGE.read_text().split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(rows) + f"\n{END}{after.split(END, 1)[1]}")
    return int(any(share(counts) < options.goal for counts in results.values()))


if __name__ == "__main__":
    sys.exit(main())
