"""`h2t2 recommend`: it chooses as the figures say, warns where they disagree, and what it writes is a configuration."""

import json

import numpy as np
import pytest

from h2t2_tools.cli.main import main
from h2t2_tools.fleet import config
from h2t2_tools.replay import recommend
from h2t2_tools.replay.traces import Trace


def h2t2(*words):
    return main([str(word) for word in words])


def saved(path, score, label):
    np.savez(path, score=score, label=label.astype(int))
    return path


@pytest.fixture
def asked(tmp_path, capsys):
    """The report on a trace."""

    def ask(path, *options):
        common = "--beta", 0.2, "--runs", 2, "--bits", 3, 4, "--out", tmp_path, "--json", "-"
        assert h2t2("recommend", path, *common, *options) == 0
        return json.loads(capsys.readouterr().out)

    return ask


@pytest.mark.whole
def test_what_it_chooses_is_a_nodes_configuration(asked, tmp_path, capsys):
    report = asked("phishing")
    cost = {row["what"]: row for row in report["rows"]}
    least = min(row["shuffled"] for what, row in cost.items() if what.startswith(("adaptive", "H2T2")))
    assert cost[report["chosen"]]["shuffled"] <= 1.02 * least and report["decided_by"] == "shuffled"
    assert (tmp_path / "recommend_Phishing.png").exists()
    assert h2t2("recommend", "phishing", "--runs", 2, "--out", tmp_path) == 0
    lines = capsys.readouterr().out.split("h2t2.toml\n")[1]
    (tmp_path / "c.toml").write_text(f"remote_shape = [30]\nmodel_id = 1\n{lines}")
    assert config.load(tmp_path / "c.toml").policy == "adaptive"


def test_a_model_that_says_too_little_gets_a_table(asked, tmp_path):
    """Scores that are all below one half, and tell the classes apart: 200 labels know that at once."""
    rng = np.random.default_rng(1)
    label = rng.random(1000) < 0.5
    report = asked(saved(tmp_path / "shy.npz", np.where(label, 0.45, 0.3), label), "--horizon", 200)
    assert report["chosen"].endswith("with a table") and len(report["config"]["prior"]) == 2 ** report["config"]["bits"]
    assert report["labelled"] == 200


@pytest.mark.whole
def test_where_the_local_model_is_right_it_says_do_not_ask(asked, tmp_path, capsys):
    rng = np.random.default_rng(1)
    label = rng.random(600) < 0.5
    path = saved(tmp_path / "right.npz", np.where(label, 0.55, 0.45), label)
    report = asked(path)
    assert report["chosen"] == "do not ask" and report["config"] == {}
    assert "the local model alone costs 0.0000 a sample" in report["why"]
    assert h2t2("recommend", path, "--runs", 1, "--bits", 4, "--out", tmp_path) == 0
    out = capsys.readouterr().out
    assert "do not ask: " in out and "h2t2.toml" not in out
    assert asked(path, "--miss-rate", 0.02)["chosen"].startswith("adaptive")  # which keeps the limit


def test_a_stream_that_changes_is_told(asked, tmp_path):
    """The meaning of the scores turns in the middle: shuffled they say nothing."""
    rng = np.random.default_rng(2)
    score = rng.random(4000)
    label = (score > 0.5) ^ (np.arange(4000) >= 2000)
    report = asked(saved(tmp_path / "turns.npz", score, label), "--ordered")
    assert any("the stream changes" in warning for warning in report["warnings"]) and report["decided_by"] == "in order"


def test_where_learning_saves_nothing_it_says_so(asked, tmp_path):
    rng = np.random.default_rng(2)
    report = asked(saved(tmp_path / "noise.npz", rng.random(600), rng.random(600) < 0.5), "--horizon", 9000)
    assert any("asking always costs as little" in warning for warning in report["warnings"])
    assert any("drew 9,000 samples from 480, each 18.8 times" in warning for warning in report["warnings"])


@pytest.mark.parametrize(
    "score, label, why",
    [(np.zeros(20), np.arange(20) % 2, "want 40"), (np.zeros(60), np.zeros(60), "all of one class")],
)
def test_too_little_is_refused(score, label, why, tmp_path, capsys):
    assert h2t2("recommend", saved(tmp_path / "t.npz", score, label), "--runs", 1) == 2
    assert why in capsys.readouterr().err


@pytest.mark.whole
def test_many_classes_get_bits_and_their_costs(asked, tmp_path):
    report = asked("digits_4", "--beta", 0.05)
    assert report["chosen"] == f"adaptive, b = {report['config']['bits']}"
    assert report["config"]["class_costs"] == [[float(i != j) for j in range(4)] for i in range(4)]
    cost = {row["what"]: row["shuffled"] for row in report["rows"]}
    assert cost[report["chosen"]] < min(cost["asking always"], cost["asking never"])
    (tmp_path / "costs.csv").write_text("0,0,0,0\n" * 4)  # no mistake costs anything
    assert asked("digits_4", "--class-costs", tmp_path / "costs.csv")["chosen"] == "do not ask"


@pytest.mark.parametrize(
    "trace, options, why",
    [
        ("digits_4", ["--rdl-fp", "0.1"], "4 classes; rdl_fp is of two"),
        ("digits_4", ["--bits", "8"], "with 4 classes at most 6"),
        ("phishing", ["--class-costs", "costs.csv"], "of two, --delta-fp and --delta-fn say it"),
    ],
)
def test_options_that_do_not_fit_the_classes_are_refused(trace, options, why, capsys):
    assert h2t2("recommend", trace, *options) == 2 and why in capsys.readouterr().err


@pytest.mark.whole
def test_a_limit_and_a_remote_model_that_errs_are_played_and_written(asked):
    free, limited = asked("resnet_dogs"), asked("resnet_dogs", "--miss-rate", 0.02)
    assert limited["config"]["miss_rate"] == 0.02 and "miss_rate" not in free["config"]
    assert not [row for row in limited["rows"] if row["what"].startswith("H2T2")]
    cost = [{row["what"]: row["shuffled"] for row in report["rows"]}["adaptive, b = 4"] for report in (free, limited)]
    assert cost[1] > cost[0]
    config_lines = asked("phishing", "--rdl-fp", 0.05)["config"]
    assert config_lines["rdl_fp"] == 0.05 and "rdl_fn" not in config_lines


@pytest.mark.parametrize(
    ("in_order", "options", "ordered"), [(True, {}, False), (False, {}, None), (True, {"miss_rate": 0.1}, None)]
)
def test_a_policy_that_was_played_in_order_without_its_past_is_written_so(in_order, options, ordered):
    """An app's samples have a past by default. Shuffled ones say nothing of it, so the default holds."""
    trace = Trace("t", np.linspace(0, 1, 60), np.arange(60) % 2)
    scenario = recommend.Scenario(
        trace=trace, beta=0.3, delta_fp=0.7, delta_fn=1.0, horizon=0, in_order=in_order, bits=(4,), runs=1, options=options
    )
    adaptive = [c.settings for c in recommend.candidates(trace, scenario) if c.title.startswith("adaptive, b = 4")]
    assert [settings.get("ordered") for settings in adaptive] == [ordered] * 2 + [True] * (ordered is False)


@pytest.mark.whole
def test_a_stream_that_repeats_itself_gets_a_past(asked, tmp_path):
    """States that last 100 samples, and scores that say nothing: --ordered recommends ordered = true, and a node takes it."""
    rng = np.random.default_rng(3)
    label = np.cumsum(rng.random(4000) < 0.01) % 2 == 1
    path = saved(tmp_path / "lasting.npz", rng.random(4000), label)
    report = asked(path, "--ordered")
    assert report["config"]["ordered"] is True and "rounds tells the rest; the past saves" in report["why"]
    assert not any("Give --ordered" in warning for warning in report["warnings"])
    assert "ordered" not in asked(path)["config"]  # shuffled, nobody knows the device's order: its default holds
    (tmp_path / "c.toml").write_text(f"remote_shape = [30]\nmodel_id = 1\n{recommend.lines(report['config'])}\n")
    assert config.load(tmp_path / "c.toml").arguments()["ordered"] is True
