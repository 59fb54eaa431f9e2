"""`h2t2-lab experiment averaged-head`: a device may begin with the mean of a fleet's heads."""

import json

import numpy as np
import pytest

from h2t2_lab.command_line import main
from h2t2_lab.datasets import featured
from h2t2_lab.experiments import averaged_head
from h2t2_lab.pages import results_page


def test_heads_are_averaged_as_integers():
    heads = [(np.array([1, -4]), np.array([6, 7])), (np.array([4, -9]), np.array([8, 7]))]
    weights, roots = averaged_head.averaged(heads)
    assert weights.tolist() == [2, -6] and roots.tolist() == [7, 7] and weights.dtype == np.int64


@pytest.mark.whole
def test_a_new_device_starts_with_the_mean_of_a_fleet(tmp_path, monkeypatch):
    monkeypatch.setenv("H2T2_DATA", str(tmp_path))
    monkeypatch.setattr(featured, "STREAMS", {name: featured.STREAMS[name] for name in ("weather", "digits")})
    monkeypatch.setattr("h2t2_lab.datasets.data.SOURCE_TREE", tmp_path)
    assert main(["experiment", "averaged-head", "--quick", "--out", str(tmp_path), "--json", str(tmp_path / "r.json")]) == 0
    weather, digits = json.loads((tmp_path / "r.json").read_text())[0]["rows"]
    assert "rainfall_data.csv" in weather["missing"] and digits["taught"] == "169"
    assert 0.5 < float(digits["ratio"]) < 1.5 and float(digits["new"]) > 0
    text = results_page.section("averaged_head", results_page._read(tmp_path, "averaged_head"))
    assert "Not measured here: weather" in text and "| digits | 169 |" in text
