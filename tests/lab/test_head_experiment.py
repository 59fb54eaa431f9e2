"""`h2t2-lab experiment head`, its streams, and `averaged-head`: a device may begin with the mean of a fleet's heads."""

import json

import numpy as np
import pytest

from h2t2_lab.command_line import main
from h2t2_lab.datasets import featured
from h2t2_lab.experiments import averaged_head, over_time
from h2t2_lab.experiments.flywheel import new_policy, play_with_chances
from h2t2_lab.pages import results_page

TEN_DIGITS = [f"10 digits{what}" for what in ("", ", features of noise", ", every label the next class from the middle on")]


def test_whitened_features_are_uncorrelated():
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(2000, 5)) @ (np.eye(5) + 1) + 3
    assert np.corrcoef(raw.T)[0, 1] > 0.8
    covariance = np.cov(featured.whitened(raw).T)
    assert np.abs(covariance - np.eye(5)).max() < 0.2


def test_samples_are_what_the_policy_takes():
    stream = featured.Featured(np.array([0.0, 1.0]), np.array([0, 1]), np.array([[0.5, -9.0], [1.0, 9.0]]))
    assert stream.samples().tolist() == [[0, 16, -127], [255, 32, 127]]
    assert stream.shifted().label.tolist() == [0, 0]


@pytest.mark.whole
def test_it_prints_a_row_a_stream_and_names_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("H2T2_DATA", str(tmp_path))
    monkeypatch.setattr(featured, "STREAMS", {name: featured.STREAMS[name] for name in ("weather", "digits")})
    monkeypatch.setattr("h2t2_lab.datasets.data.SOURCE_TREE", tmp_path)
    assert main(["experiment", "head", "--quick", "--out", str(tmp_path), "--json", str(tmp_path / "r.json")]) == 0
    rows = json.loads((tmp_path / "r.json").read_text())[0]["rows"]
    assert [row["stream"] for row in rows] == ["weather", "digits", *TEN_DIGITS]
    weather, digits, *ten = rows
    assert "rainfall_data.csv" in weather["missing"] and not weather["with"]
    assert float(digits["with"]) <= 1.05 * float(digits["without"]) and digits["samples"] == "1697"
    assert all(float(row["with"]) <= float(row["goal"]) and row["samples"] == "10000" for row in ten)
    assert "digits" in capsys.readouterr().out
    page = results_page.section("head", results_page._read(tmp_path, "head"))
    assert "Goals met: 4 of 4" in page and "Not measured here: weather, no rainfall_data.csv" in page


def test_devices_over_time_say_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("H2T2_DATA", str(tmp_path))
    monkeypatch.setattr("h2t2_lab.datasets.data.SOURCE_TREE", tmp_path)
    assert main(["experiment", "over-time", "--quick", "--out", str(tmp_path)]) == 0
    assert "rainfall_data.csv" in (tmp_path / "over_time.csv").read_text() and not (tmp_path / "over_time.png").exists()
    section = results_page.section("over_time", results_page._read(tmp_path, "over_time"))
    assert section.startswith("Not measured here: no rainfall_data.csv")


def test_a_model_that_is_trained_again_follows_the_weather():
    """In the second half the measurement that tells of rain is another one."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2600, 2))
    label = (np.where(np.arange(2600) < 1400, x[:, 0], x[:, 1]) > 0).astype(np.int64)
    days = featured.Days(x[:600], label[:600], x[600:], label[600:])
    again = over_time.WAYS[over_time.TRAINED](days, 2000, 1)
    never = play_with_chances(new_policy(over_time.COSTS, 1), days.first()(days.x), days.label, over_time.COSTS)[0]
    assert again.shape == (2000,) and again[1500:].mean() < 0.9 * never[1500:].mean()
    line = over_time._line(np.array([again, never]))
    assert len(line) == over_time.POINTS and line[0]["cost"] == (again[:125].mean() + never[:125].mean()) / 2


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
