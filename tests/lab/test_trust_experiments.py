"""`h2t2-lab experiment trust` and `averaged-head`: what a device may be given at its start."""

import json

import numpy as np
import pytest

from h2t2 import units
from h2t2.core import policies
from h2t2_lab.command_line import main
from h2t2_lab.datasets import featured
from h2t2_lab.experiments import averaged_head, trust
from h2t2_lab.pages import results_page


def forecaster(prior):
    return policies.make("adaptive", units.policy(bits=4, beta=0.3, delta_fp=0.7, delta_fn=1.0, prior=prior)).forecaster


def test_the_table_gets_its_share_of_the_weight():
    """The product's forecaster is that of a half; at .9 the estimate of a bin lies nearer to the table."""
    prior = [0.9] * 16
    product, half, most = (forecaster(prior) for _ in range(3))
    trust.weigh_table(half, 0.5)
    trust.weigh_table(most, 0.9)
    knowing = [n for n in range(16) if n % trust.KINDS < trust.KNOWING]
    assert sum(half.weight[n] for n in knowing) == 16384 and half.weight == product.weight
    assert sum(most.weight[n] for n in knowing) == pytest.approx(0.9 * 32768, rel=1e-3)
    for each in (product, most):
        each.estimate(3)
    assert 0.5 * 32768 < product.belief[0] < most.belief[0] < 0.9 * 32768


def test_counted_labels_agree_with_the_table():
    counted = forecaster([0.25] * 8 + [0.75] * 8)
    trust.count_table(counted, 4)
    labels, events = (np.array(counts).reshape(4, 32) for counts in (counted.labels, counted.events))
    assert (labels[:, 16:] == 16).all() and (labels[:, 1] == 256).all() and (labels[:, 0] == 0).all()
    assert (events[:, 16:24] == 4).all() and (events[:, 24:] == 12).all() and (events[:, 1] == 128).all()


def test_the_page_compares_each_way_with_the_product():
    rows = [
        {"way": way, "value": value, "T": "300", "runs": "12", "right": right, "right_se": "0.0005", "inverted": wrong,
         "inverted_se": "0.0010"}
        for way, value, right, wrong in (
            ("best pair, kept", "0.0", "0.0075", "0.4000"), ("share of the weight", "0.5", "0.0130", "0.0340"),
            ("share of the weight", "0.9", "0.0115", "0.0440"), ("labels a bin", "4", "0.0120", "0.0330"),
        )
    ]  # fmt: skip
    text = results_page.section("trust", rows)
    assert "2 of the 3 other rows are dearer" in text and "not worse with the inverted one: the table counts for 4" in text
    assert "| 50% of the weight for the table (the product) | 0.0130 ± 0.0005 | 0.0340 ± 0.0010 |" in text


def test_the_frontier_is_drawn(tmp_path):
    point = {"T": 300, "right": "0.0130", "inverted": "0.0340"}
    rows = [{"way": "best pair, kept", "value": 0.0, **point}, {"way": "share of the weight", "value": 0.5, **point}]
    rows += [{"way": way, "value": 4, **point} for way in ("share of the weight", "labels a bin")]
    assert trust._draw(tmp_path, rows, 13).read_bytes()[1:4] == b"PNG"


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
