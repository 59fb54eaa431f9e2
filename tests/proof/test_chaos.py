"""`h2t2 chaos` in short, and that its account would notice what must not be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from h2t2_tools.boards.emulators import UNIX
from h2t2_tools.fleet import broker
from h2t2_tools.proof.chaos import broken
from h2t2_tools.proof.chaos.report import figures
from h2t2_tools.proof.chaos.subjects import Subject


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_everything_that_goes_wrong(tmp_path):
    """Both nodes, 2,000 samples each, every kind of fault as often as in the long run: exit status 0."""
    if broker.mosquitto() is None or UNIX.missing():
        pytest.skip(UNIX.missing() or "no mosquitto; run: sudo apt-get install mosquitto")
    command = [sys.executable, "-m", "h2t2_tools", "chaos", "--samples", "2000", "--json", str(tmp_path / "report.json")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=380)
    assert run.returncode == 0 and "Traceback" not in run.stderr, run.stdout + run.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [row["node"] for row in report["nodes"]] == ["pi", "unix"]
    for row in report["nodes"]:
        assert row["samples in"] == row["decisions out"] == 2000 and row["worst latency ms"] <= 2000
        assert row["labels taught twice"] == row["unreadable snapshots"] == row["decided twice"] == 0
        assert row["lives"] == 11 and row["labels taught"] > 50 and row["by fallback"] > 50 and row["saves that failed"] > 0
    faults = report["faults"]
    assert (faults["broker kills"], faults["worker kills"], faults["node kills"]) == (20, 10, 20)
    assert faults["black holes"] == 3
    # how many replies there are depends on how fast they come; of those, one in twenty is dropped, and one doubled
    for what in ("replies dropped", "doubled"):
        expected = 0.05 * faults["replies"]
        assert faults["replies"] > 100 and abs(faults[what] - expected) < 6 * expected**0.5, faults


def account(lines, lives=1, restored=False, taught=0):
    """A subject that has said those lines."""
    subject = Subject(Path(), [5, 6, 7], ("", 0), 2000)
    subject._todo = [0, 1, 2]
    subject.account.lives = lives
    subject._begin({"restored": restored, "taught": taught})
    for n, source, so_far, ms in lines:
        subject._decided({"n": n, "source": source, "taught": so_far, "strangers": 0, "ms": ms})
    return figures(subject)


GOOD = [(0, "remote", 1, 5.0), (1, "local", 1, 1.0), (2, "fallback", 1, 1999.0)]


@pytest.mark.parametrize(
    "lines, extra, word",
    [
        (GOOD, {}, None),
        (GOOD[:2], {}, "2 decisions out"),
        (GOOD + GOOD[1:2], {}, "1 decided twice"),
        ([(0, "remote", 2, 5.0), *[(n, s, 2, ms) for n, s, _, ms in GOOD[1:]]], {}, "1 labels taught twice"),
        (GOOD[:2] + [(2, "fallback", 2, 5.0)], {}, "1 labels taught twice"),
        (GOOD[:2] + [(2, "fallback", 1, 2000.5)], {}, "after 2000.5 ms"),
        (
            [(n, s, taught + 3, ms) for n, s, taught, ms in GOOD],
            {"lives": 2, "restored": True, "taught": 3},
            "3 labels taught twice",
        ),
    ],
)
def test_the_account_notices(lines, extra, word):
    row = {**account(lines, **extra), "saves that failed": 1, "snapshot recoveries": 1}
    trouble = broken({"nodes": [row], "deadline_ms": 2000})
    assert (trouble == []) if word is None else any(word in text for text in trouble), trouble


def test_a_disk_that_is_never_full_is_noticed():
    row = {**account(GOOD), "saves that failed": 0, "snapshot recoveries": 1}
    assert broken({"nodes": [row], "deadline_ms": 2000})
