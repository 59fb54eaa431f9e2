"""The shipped pairs are what their cards say."""

import json
import shutil

import numpy as np
import pytest

from h2t2.cpython.tflite import TFLiteModel
from h2t2_tools.cli.checks import Demo
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.replay.scoring import confusion


@pytest.mark.parametrize("name", pairs.shipped_names())
@pytest.mark.parametrize("which", ["ldl", "rdl"])
def test_the_card_says_what_the_model_does(name, which):
    pair = pairs.load(name)
    card = json.loads((pair.folder / "pair.json").read_text())["metrics"][which]
    model = TFLiteModel(str(getattr(pair, which)), event=pair.info.event_output(which))
    scores = np.array([model.scores(model.quantise(pair.model_input(x, which))) for x in pair.x])
    got = confusion(scores if pair.info.costs else scores[:, model.event], pair.y)
    # the reference kernels are exact on one interpreter; another (ai-edge-litert) may round one step otherwise
    assert all(abs(got[key] - card["int8"][key]) <= 2 / len(pair.y) for key in got)
    assert getattr(pair, which).stat().st_size == card["bytes"]


def test_the_ldl_is_clearly_weaker_than_the_rdl():
    for name in pairs.shipped_names():
        metrics = json.loads((pairs.load(name).folder / "pair.json").read_text())["metrics"]
        assert metrics["ldl"]["int8"]["accuracy"] + 0.1 < metrics["rdl"]["int8"]["accuracy"]


def test_numbers_that_are_none_are_refused_wherever_samples_are_read(tmp_path, capsys):
    folder = tmp_path / "pair"
    shutil.copytree(pairs.load("digits").folder, folder)
    with np.load(folder / "test.npz") as data:
        x, y = data["x"].copy(), data["y"]
    x[3, 0, 0] = np.nan
    np.savez(folder / "test.npz", x=x, y=y)
    ldl, test = str(folder / "ldl.tflite"), str(folder / "test.npz")
    held = "1 of 361 samples hold NaN or infinity, the first is sample 3"
    missing = "sample 3: a number is missing (NaN), as in 1 of 361 samples; --missing skip leaves such samples out"
    for words, why in (
        (["node", "--pair", str(folder)], held),
        (["demo", "--pair", str(folder)], held),
        (["score", ldl, test, "--out", str(tmp_path / "trace.npz")], missing),
        (["pair", ldl, str(folder / "rdl.tflite"), "--test", test, "--out", str(tmp_path / "again")], missing),
    ):
        assert main(words) == 2
        assert why in capsys.readouterr().err


def test_samples_in_the_order_of_time_are_played_so_and_read_a_past():
    airport, fleet = Demo.parsed({"pair": "airport"}), Demo.parsed({"fleet": 7})
    assert pairs.draw_indices(airport._pair, 3, 5).tolist() == [0, 1, 2] and airport.policy_numbers()["ordered"]
    assert fleet.pair == "breast_cancer" and not fleet.policy_numbers()["ordered"]
    assert not Demo.parsed({"pair": "airport", "ordered": False}).policy_numbers()["ordered"]
    assert not Demo.parsed({"pair": "airport", "policy": "h2t2"}).policy_numbers()["ordered"]
