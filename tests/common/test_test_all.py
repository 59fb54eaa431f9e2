"""`make test-all` runs every part, also after one that fails, and ends with a table of what came of each."""

import doctest
import json

import pytest
from support import ROOT, program

test_all = program(ROOT / "host_tools/test_all.py")

MAKEFILE = """
set-up:
\t@echo ready
broken:
\t@echo "==== 2 failed, 30 passed, 1 skipped, 1 error in 4.05s (0:00:04) ====" && exit 1
twice:
\t@echo "10 passed in 1.00s" && echo "5 passed, 2 skipped in 2.50s" && echo "no passed in sight"
"""


@pytest.fixture
def parts(tmp_path, monkeypatch):
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(test_all, "STAGES", [["set-up"], ["broken", "twice"]])
    return tmp_path


def test_a_part_that_fails_stops_no_other(parts, capfd):
    assert test_all.main([]) == 1
    printed = capfd.readouterr().out
    assert "set-up | ready\n" in printed
    assert printed.splitlines()[-5:-1] == [
        "part    result  passed  failed  skipped  seconds",
        "set-up  passed       -       -        -        0",
        "broken  failed      30       3        1        0",
        "twice   passed      15       0        2        0",
    ]
    assert "2 failed" in (parts / "results/test-all/broken.log").read_text()
    table = json.loads((parts / "results/test-all.json").read_text())
    assert [(row["part"], bool(row["status"])) for row in table["parts"]] == [
        ("set-up", False),
        ("broken", True),
        ("twice", False),
    ]


def test_parts_run_alone(parts, capfd):
    assert test_all.main(["twice"]) == 0
    assert "broken" not in capfd.readouterr().out
    assert test_all.main(["twise"]) == 2
    assert "no such part: twise; parts: set-up, broken, twice" in capfd.readouterr().err


def test_every_part_is_a_target_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{part}:" in makefile for stage in test_all.STAGES for part in stage)


def test_its_examples_hold():
    assert doctest.testmod(test_all).failed == 0
