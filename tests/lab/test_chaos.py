"""`h2t2-lab chaos` in short, and that its account would notice what must not be."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import need, need_mosquitto

from h2t2_lab.chaos import field, storm, watching
from h2t2_lab.chaos.account import FALLBACK, LOCAL, REMOTE
from h2t2_lab.chaos.figures import LONG, NEVER, broken, figures
from h2t2_lab.chaos.subjects import NO_ROOM, Subject
from h2t2_lab.chaos.watching import Watching
from h2t2_lab.command_line import main
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.common.errors import Failure

RUN = {"trouble": [], "deadline_ms": 2000, "stall_ms": 0.2, "sync_ms": 0.3}  # of a report


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_everything_that_goes_wrong(tmp_path):
    """Both nodes, 5,000 samples each, every kind of fault as often as in the long run: exit status 0."""
    need(UNIX)
    need_mosquitto()
    command = [sys.executable, "-m", "h2t2_lab", "chaos", "--samples", "5000", "--json", str(tmp_path / "report.json")]
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    run = subprocess.run(command, capture_output=True, text=True, timeout=880, env=environment)
    assert run.returncode == 0 and "Traceback" not in run.stderr, run.stdout + run.stderr
    assert not list((tmp_path / "temporary").iterdir())
    report = json.loads((tmp_path / "report.json").read_text())
    assert [row["node"] for row in report["nodes"]] == ["pi", "unix"]
    for row in report["nodes"]:
        assert row["samples in"] == row["decisions out"] == 5000
        assert not any(row[figure] for figure in NEVER)
        assert row["lives"] == 15 and row["labels taught"] > 50 and row["by fallback"] > 50
    for figure in ("saves that failed", "sensor errors", "snapshot recoveries", "ended in order"):
        assert sum(row[figure] for row in report["nodes"]) > 0
    faults = report["faults"]
    assert (faults["broker kills"], faults["worker kills"], faults["node kills"]) == (20, 10, 20)
    assert (faults["black holes"], faults["workers stopped"], faults["hung models"], faults["orderly ends"]) == (3, 4, 3, 8)
    watch = report["watch"]
    assert (watch["damaged messages"] > 100, watch["full disks"], watch["full disks said"]) == (True, 2, 2)
    assert watch["well at the end"] and watch["written at the end"] and watch["health checks"] > 20
    # how many replies there are depends on how fast they come; of those, one in twenty is dropped, and one doubled
    for what in ("replies dropped", "doubled"):
        expected = 0.05 * faults["replies"]
        assert faults["replies"] > 100 and abs(faults[what] - expected) < 6 * expected**0.5, faults
    assert [row["update"]["outcome"] for row in report["field"]] == ["back", "left"]


@pytest.mark.whole
def test_a_quiet_hour_and_an_update_whose_sensor_dies():
    """In virtual time: the devices stay connected, the first goes back, the second never has the package."""
    need_mosquitto()
    said = []
    rows = field.go_through(said.append)
    assert field.broken(rows) == [] and [row["update"]["outcome"] for row in rows] == ["back", "left"]
    assert rows[0]["update"]["why"].startswith("sense() failed 15 times in 575 tries")
    assert all(row["quiet"]["seconds"] > 3900 for row in rows)


WELL = {"seconds": 3960, "samples": 360, "replies": 90, "errors": 0, "sensor_errors": 0}
BACK = {"outcome": "back", "why": "", "counter": 0, "program": True, "taught": True, "connections": 1, "errors": 0}


@pytest.mark.parametrize(
    "quiet, update, word",
    [
        ({}, {}, None),
        ({"seconds": 100}, {}, "100 s, 90 replies after a quiet hour"),
        ({"replies": 0}, {}, "0 replies after a quiet hour"),
        ({"errors": 1}, {}, "1 errors in a quiet hour"),
        ({}, {"connections": 2}, "2 connections"),
        ({}, {"outcome": "kept", "why": "500 samples"}, "an update whose sensor dies: kept 500 samples"),
        ({}, {"counter": 1, "program": False}, "package 1 is in force"),
        ({}, {"taught": False}, "lost what it had learned"),
    ],
)
def test_what_must_not_be_of_devices_in_the_field_is_noticed(quiet, update, word):
    row = {"node": "a", "quiet": {**WELL, **quiet}, "update": {**BACK, **update}}
    trouble = field.broken([row])
    assert (trouble == []) if word is None else any(word in text for text in trouble), trouble


LABELS = [1, 0, 1]  # what the remote model says of the three samples


def account(rows, summary=None, lives=1, saved=0, taught=0):
    """The figures of a node whose oracle has seen those rows."""
    subject = Subject(Path(), [5, 6, 7], [0] * 5 + LABELS, ("", 0), 2000)
    subject.account.lives = lives
    subject.account.begin({"restored": lives > 1, "taught": taught}, saved)
    subject._life = taught, 0
    for row in rows:
        if "late" in row:
            subject.account.lesson(row["late"], row["label"])
        else:
            subject.account.record_decision(row["seen"], row)
    if summary is not None:
        subject._summary({"sensor_errors": 1, "unsaved": 1, "taught": summary})
    happened = {"snapshot recoveries": 1, "labels that came late and taught": 1}
    return {**figures(subject), **happened}


def seen_row(n, source, decision, want, ms=5.0, lesson=-1):
    return {"seen": n, "source": source, "decision": decision, "want": want, "ms": ms, "lesson": lesson}


GOOD = [seen_row(0, REMOTE, 1, 0, lesson=1), seen_row(1, LOCAL, 1, 1), seen_row(2, FALLBACK, 0, 0, 1999.0)]


@pytest.mark.parametrize(
    "rows, extra, word",
    [
        (GOOD, {"summary": 1}, None),
        ([*GOOD, {"late": 2, "label": 1}], {"summary": 2}, None),
        (GOOD[:2], {"summary": 1}, "2 decisions out"),
        (GOOD + GOOD[1:2], {"summary": 1}, "1 decided twice"),
        ([*GOOD, {"late": 0, "label": 1}], {"summary": 2}, "1 labels taught twice"),
        ([*GOOD, {"late": -1, "label": 1}], {"summary": 2}, "1 labels taught twice"),
        ([*GOOD, {"late": 2, "label": 0}], {"summary": 2}, "1 not the remote model's label"),
        ([seen_row(0, REMOTE, 0, 0, lesson=1), *GOOD[1:]], {"summary": 1}, "1 not the remote model's label"),
        ([*GOOD[:2], seen_row(2, FALLBACK, 0, 1)], {"summary": 1}, "1 not the policy's class"),
        ([*GOOD[:2], seen_row(2, FALLBACK, 0, 0, 2000.9)], {"summary": 1}, "after 2000.9 ms"),
        (GOOD, {"summary": 2}, "1 lessons miscounted"),
        (GOOD, {"summary": 4, "lives": 2, "saved": 3, "taught": 3}, "3 lessons miscounted"),
        (GOOD, {"summary": 1, "lives": 2, "saved": 2, "taught": 0}, "2 lessons lost by an orderly end"),
    ],
)
def test_the_account_notices(rows, extra, word):
    trouble = broken({"nodes": [account(rows, **extra)], **RUN})
    assert (trouble == []) if word is None else any(word in text for text in trouble), trouble


@pytest.mark.parametrize("line, figure", [
    ("h2t2 node: remote model: model not served here", "requests to another model"),
    ("h2t2 node: snapshot: version 3, this runtime reads 4; kept as a.kept1; beginning anew", "snapshots not used"),
    ("h2t2 node: snapshot not saved: OSError: [Errno 27] File too large", "saves that failed"),
])  # fmt: skip
def test_what_a_node_says_is_heard(line, figure):
    subject = Subject(Path(), [5, 6, 7], [0] * 8, ("", 0), 2000)
    subject._note(line)
    assert figures(subject)[figure] == 1


BLIND, FULL, OK = "broker unreachable since 20:34", "the history is not written: disk I/O error", "ok"


def test_a_second_full_disk_waits_for_the_report_of_the_first(tmp_path, monkeypatch):
    """The dashboard looks for its broker at longer and longer intervals; without one, it has nothing to write."""
    answers = iter([BLIND, BLIND, BLIND, OK, FULL, FULL, OK, OK, FULL])
    limits = []
    watch = Watching(tmp_path / "watch", SimpleNamespace(url="", host="", port=0), [], 0)
    watch._process = SimpleNamespace(poll=lambda: None)
    watch._client = SimpleNamespace(publish=lambda *_: None)
    monkeypatch.setattr(watch, "_limit", limits.append)
    monkeypatch.setattr(watch, "_health", lambda: (200, text) if (text := next(answers)) == OK else (503, text))
    seconds = [100.0]
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    watch.fill_disk()
    for n in range(9):
        seconds[0] += watching.FULL_S if n < 3 else watching.LOOK_S
        watch.look()
        if n == 1:
            watch.fill_disk()
    assert limits == [NO_ROOM, 0, NO_ROOM, 0]
    assert (watch.full_disks, watch.full_disks_said) == (2, 2)


@pytest.mark.parametrize("figure", ["saves that failed", "sensor errors", "ended in order", "labels that came late and taught"])
def test_what_never_happened_in_a_long_run_is_noticed(figure):
    row = {**account(GOOD, summary=1), "samples in": LONG, "decisions out": LONG}
    assert not broken({"nodes": [row], **RUN})
    assert broken({"nodes": [{**row, figure: 0}], **RUN}) == [f": no {figure}, although the run should cause some"]


WATCHED = {
    "health checks": 100, "not answered": 3, "damaged messages": 150, "full disks": 2, "full disks said": 2,
    "ended by itself": 0, "tracebacks": 0, "well at the end": True, "written at the end": True,
}  # fmt: skip


@pytest.mark.parametrize(
    "figure, value, word",
    [
        ("health checks", 100, None), ("ended by itself", 1, "1 ended by itself"), ("tracebacks", 2, "2 tracebacks"),
        ("full disks said", 1, "2 full disks, 1 said"), ("not answered", 30, "without an answer"),
        ("well at the end", False, "not well at the end"), ("written at the end", False, "not written at the end"),
    ],
)  # fmt: skip
def test_what_a_dashboard_must_not_do_is_noticed(figure, value, word):
    row = account(GOOD, summary=1)
    trouble = broken({"nodes": [row], **RUN, "watch": {**WATCHED, figure: value}})
    assert (trouble == []) if word is None else any(word in text for text in trouble), trouble


FINE = account(GOOD, summary=1)


def test_a_run_that_fails_leaves_a_report(tmp_path, monkeypatch, capsys):
    """The storm fails, and then the devices in the field do."""

    def fail(*_arguments):
        raise Failure("no decision for 90 s, after 7")

    class Calm:
        def __init__(self, *_):
            self.proxy = SimpleNamespace(host="", port=0)

        def stop(self):
            pass

        def counts(self):
            return {}

    subject = SimpleNamespace(kill=lambda: None)
    monkeypatch.setattr(storm, "Storm", Calm)
    monkeypatch.setattr(storm, "KINDS", {"pi": lambda *_: subject})
    monkeypatch.setattr(storm, "figures", lambda _: FINE)
    monkeypatch.setattr(storm.Watching, "missing", lambda: "no dashboard")
    monkeypatch.setattr(storm, "_through", fail)
    monkeypatch.setattr(field, "go_through", fail)
    assert main(["chaos", "--node", "pi", "--json", str(tmp_path / "report.json")]) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["trouble"] == ["no decision for 90 s, after 7"] * 2 and report["nodes"] == [FINE]
    assert "no decision for 90 s, after 7" in capsys.readouterr().err
