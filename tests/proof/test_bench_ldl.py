"""`h2t2 bench ldl`."""

import json

import pytest

from h2t2_tools.boards.emulators.catalogue import MICROBIT, UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common import places
from h2t2_tools.proof import oracle


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
