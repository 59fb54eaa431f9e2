"""`h2t2 experiment head` and its streams."""

import json

import numpy as np
import pytest

from h2t2_tools.cli.main import main
from h2t2_tools.lab.datasets import featured


def test_whitened_features_are_uncorrelated():
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(2000, 5)) @ (np.eye(5) + 1) + 3
    assert np.corrcoef(raw.T)[0, 1] > 0.8
    covariance = np.cov(featured.whitened(raw).T)
    assert np.abs(covariance - np.eye(5)).max() < 0.2


def test_samples_are_what_the_policy_takes():
    stream = featured.Featured(np.array([0.0, 1.0]), np.array([0, 1]), np.array([[0.5, -9.0], [1.0, 9.0]]))
    assert stream.samples().tolist() == [[0, 16, -127], [255, 32, 127]]
    assert stream.inverted().label.tolist() == [0, 0]


@pytest.mark.whole
def test_it_prints_a_row_a_stream_and_names_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("H2T2_DATA", str(tmp_path))
    monkeypatch.setattr(featured, "STREAMS", {name: featured.STREAMS[name] for name in ("weather", "digits")})
    monkeypatch.setattr("h2t2_tools.lab.datasets.data.SOURCE_TREE", tmp_path)
    assert main(["experiment", "head", "--quick", "--out", str(tmp_path), "--json", str(tmp_path / "r.json")]) == 0
    weather, digits = json.loads((tmp_path / "r.json").read_text())[0]["rows"]
    assert "rainfall_data.csv" in weather["missing"] and not weather["with"]
    assert float(digits["with"]) <= 1.05 * float(digits["without"]) and digits["samples"] == "1697"
    assert "digits" in capsys.readouterr().out
