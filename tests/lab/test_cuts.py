"""`h2t2-lab bench cuts`: the power cut at every flash operation; littlefs and the way we write lose nothing, FAT does."""

import json

import pytest
from support import need

from h2t2_lab.bench import cuts
from h2t2_lab.command_line import main
from h2t2_tools.boards.emulators.catalogue import PICO, UNIX


@pytest.mark.whole
@pytest.mark.timeout(1200)  # three minutes of computing alone on a slow machine, and whatever a busy one makes of it
def test_every_operation_is_cut_and_littlefs_loses_nothing(monkeypatch):
    """In memory: each of many snapshots, lines of the log, updates by `h2t2 flash` and over MQTT, at every operation of a
    whole write."""
    need(UNIX)
    monkeypatch.setattr(cuts.PICO.__class__, "missing", lambda self: "left out here")
    rows = cuts.measure(print, rounds=20)
    assert cuts.broken(rows) == [] and len(rows) == 11
    for row in rows:
        assert row["older"] + row["newer"] + row["lost"] == row["cuts"] >= 2 * row["operations"]
        assert row["older"] and row["newer"]
    assert sum(row["cuts"] for row in rows if row["system"] == "littlefs") > 1500
    assert all(row["lost"] for row in rows if row["system"] == "FAT")  # so a loss would be found


@pytest.mark.whole
@pytest.mark.timeout(1200)  # some ten starts of the chip, seconds of its time each
def test_a_pico_boots_after_each_cut_and_its_node_runs(monkeypatch, capsys):
    """On the chip's own flash, some cuts of a snapshot and of an update; `h2t2-lab bench cuts --full` makes them all."""
    need(PICO)
    monkeypatch.setattr(cuts.UNIX.__class__, "missing", lambda self: "left out here")
    assert main(["bench", "cuts", "--cuts", "2", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in rows] == ["a snapshot", "h2t2 flash"]
    for row in rows:
        assert row["cuts"] == row["ran"] == 2 and not row["lost"] and row["older"] and row["newer"] and row["operations"] > 5


def test_a_cut_leaves_half_of_an_operation():
    operations = [{"offset": 2, "data": "AAA="}, {"offset": 0, "data": "Dw=="}]  # two zeros, a 15
    contents = list(cuts.images(b"\xff\xff\xff\xff\xff", operations))
    assert (
        contents[0] == b"\xff" * 5
        and contents[1] == b"\xff\xff\0\xff\xff"
        and contents[2] == contents[3] == b"\xff\xff\0\0\xff"
    )
    assert contents[4] == b"\x0f\xff\0\0\xff" and len(contents) == 5
    assert cuts.spread(contents, 3) == [contents[0], contents[2], contents[4]] and cuts.spread(contents, 0) == contents
