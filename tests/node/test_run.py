"""The program of a board, `run.main()`, on CPython: from a configuration file to the summary, while no broker answers."""

import json
import sys

import pytest
from board_folder import configured
from scripted import Link, set_clock

from h2t2.node import board, run, start

OF_TEN = [[int(i != j) for j in range(10)] for i in range(10)]
RECORDED = {"snapshot": "state", "ldl": "ldl.h2m", "records": "samples.bin"}
APP = """
pictures = [[n % 17 * (cell % 5) / 4 for cell in range(64)] for n in range(40)]

def sense():
    if not pictures:
        raise StopIteration
    return pictures.pop()

def context():
    return len(pictures), 3

def act(decision):
    pass
"""
# the shipped pair, further entries, what the summary says
CASES = [
    ("breast_cancer", {**RECORDED, "budget": "2%", "in_flight": 2}, {"policy": "adaptive", "classes": 2, "errors": 0}),
    ("ten_digits", {**RECORDED, "class_costs": OF_TEN, "bits": 3}, {"policy": "adaptive-classes", "classes": 10, "errors": 0}),
    ("digits", {"app": "app.py", "context": 2, "ldl": "ldl.h2m"}, {"policy": "adaptive", "samples": 40, "sensor_errors": 0}),
]


@pytest.mark.parametrize("name, entries, wanted", CASES)
def test_it_decides_every_sample_and_sums_up(name, entries, wanted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    (tmp_path / "app.py").write_text(APP)
    configured(tmp_path, name, **entries)
    run.main()
    sys.modules.pop("app", None)
    *decisions, last = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    summary = last["summary"]
    assert {entry: summary[entry] for entry in wanted} == wanted
    assert len(decisions) == summary["samples"] >= 40 and summary["connections"] == 0
    assert {row["source"] for row in decisions} <= {"local", "fallback"}


def test_it_ends_after_so_many_samples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    configured(tmp_path, "breast_cancer", **RECORDED)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, "samples": 7}))
    run.main()
    *decisions, last = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert len(decisions) == last["summary"]["samples"] == 7


def test_it_goes_on_with_what_it_has_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    configured(tmp_path, "breast_cancer", **RECORDED)
    for restored in (False, True):
        run.main()
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["summary"]["restored"] is restored


def test_another_pair_begins_anew_and_the_snapshot_before_is_kept(tmp_path, monkeypatch, capsys):
    """As `h2t2 flash` of pair A, of B, of A onto one board."""
    monkeypatch.chdir(tmp_path)
    for name, entries, before in (
        ("breast_cancer", {}, ""),
        ("digits", {}, "local model"),
        ("digits", {"model_id": 77}, "remote model"),
        ("digits", {"model_id": 77, "class_names": ["even", "odd"]}, "event or other classes"),
        ("breast_cancer", {}, "local model"),
    ):
        configured(tmp_path, name, **RECORDED, **entries)
        for restored in (False, True):
            run.main()
            *lines, last = capsys.readouterr().out.splitlines()
            said = [line for line in lines if "snapshot" in line]
            assert json.loads(last)["summary"]["restored"] is restored
            if restored or not before:
                assert not said
            else:
                assert len(said) == 1 and f"snapshot: of another {before}; kept as state.0.kept" in said[0]
    assert (tmp_path / "state.0.kept4").exists() and not (tmp_path / "state.0.kept5").exists()


class Connecting(Link):
    """A link that never connects. It notes how long it was waited for; clock: a list with the milliseconds."""

    def __init__(self, clock):
        super().__init__()
        self.up, self.clock = False, clock

    def is_connecting(self):
        return True

    def receive(self, wait_ms):
        self.clock[0] += wait_ms

    def open(self, wait_ms=0):
        self.clock[0] += wait_ms
        raise OSError("no answer")


@pytest.mark.parametrize(
    "recorded, cause, waits_s",
    [(True, "pwron", 25), (False, "pwron", 1), (False, board.WOKEN, 25)],
    ids=["recorded samples", "a sensor", "a sensor of a board that has just woken"],
)
def test_it_waits_for_a_broker_as_long_as_that_costs_no_sample(recorded, cause, waits_s, tmp_path, monkeypatch):
    clock, began = [0], []
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    (tmp_path / "app.py").write_text(APP)
    set_clock(monkeypatch, lambda: clock[0])
    monkeypatch.setattr(run, "ticks_ms", lambda: clock[0])
    monkeypatch.setattr(board, "start_cause", lambda: cause)
    monkeypatch.setattr(start, "open_link", lambda *_: Connecting(clock))
    monkeypatch.setattr(start, "show", lambda *_: began.append(clock[0]))
    configured(tmp_path, "digits", ldl="ldl.h2m", **({"records": "samples.bin"} if recorded else {"app": "app.py"}))
    run.main()
    sys.modules.pop("app", None)
    assert began[0] == waits_s * 1000 and len(began) >= 40
