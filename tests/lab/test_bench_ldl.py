"""`h2t2-lab bench ldl`."""

import json

import pytest

from h2t2_lab.command_line import main
from h2t2_tools.boards.emulators.catalogue import MICROBIT, UNIX
from h2t2_tools.checks import oracle
from h2t2_tools.common import places


@pytest.mark.whole
@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_bench_ldl_computes_the_same_everywhere(name, capsys):
    """A convolution with softmax, and a dense layer with logistic: here, on MicroPython and on the emulated micro:bit."""
    assert main(["bench", "ldl", str(places.models() / name / "ldl.tflite"), "--json", "-"]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    ours = {row["crc"] for what, row in rows.items() if what.startswith("ours")}
    assert len(ours) == 1 and all(row["us"] is None or row["us"] > 0 for row in rows.values())
    if oracle.name() == "tflite_runtime":
        assert ours == {rows["TFLite reference"]["crc"]}
    assert rows["TFLite reference"]["heap"] > 0 and rows["TFLite optimised"]["heap"] > 0  # whatever this process had free
    if UNIX.missing() is None:
        assert {"ours, MicroPython viper", "ours, MicroPython plain"} <= set(rows)
    if MICROBIT.missing() is None and name == "breast_cancer":  # the other has a convolution
        assert rows["bins, emulated micro:bit"]["instructions"] > 1000


def test_bench_trees_has_a_row_for_each_way(capsys):
    """Without emlearn its row says how to get it."""
    assert main(["bench", "trees", "--trees", "3", "--depth", "3", "--runs", "2", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["data"] for row in rows} == {"breast cancer", "digits"}
    floats, *others = [row["accuracy"] for row in rows if row["data"] == "breast cancer" and "accuracy" in row]
    assert len(others) >= 1 and all(abs(accuracy - floats) < 0.05 for accuracy in others)
    assert any(row["what"].startswith("emlearn") for row in rows)
