"""The program of a board, `run.main()`, on CPython: from a configuration file to the summary, while no broker answers."""

import json
import shutil
import sys

import pytest

from h2t2.node import run
from h2t2_tools.boards.kinds import KINDS, content
from h2t2_tools.common import pairs
from h2t2_tools.fleet.config import NodeConfig, described

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


def configured(folder, name, **entries):
    """Write the configuration of a board, the pair's local model and its recorded samples."""
    pair = pairs.load(name)
    for file in ("ldl.h2m", "samples.bin"):
        shutil.copy(pair.folder / file, folder)
    if "app" in entries:
        entries["pair"] = str(pair.folder)
    config = NodeConfig(**{**described(pair.info), "device": "here", "broker": "127.0.0.1", "port": 9, **entries})
    (folder / "config.json").write_text(json.dumps(content(KINDS["unix"], config)))


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


def test_it_goes_on_with_what_it_has_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    configured(tmp_path, "breast_cancer", **RECORDED)
    for restored in (False, True):
        run.main()
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["summary"]["restored"] is restored
