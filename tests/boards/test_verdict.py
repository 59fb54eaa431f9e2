"""What `h2t2 run` makes of a run: trouble on the board is exit status 1, labels give accuracy and cost."""

import json

import pytest
from support import need

from h2t2_tools.boards import project
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.verdict import Verdict
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle

CONFIG = NodeConfig(remote_shape=[4], model_id=1, beta=0.2, delta_fp=0.7, delta_fn=1)
CALM = {"start": "", "errors": 0, "sensor_errors": 0, "act_errors": 0, "unsaved": 0}


def decided(n, decision, source="local"):
    return {"n": n, "bin": 3, "decision": decision, "source": source}


def test_labels_give_accuracy_and_cost():
    verdict = Verdict(CONFIG, [0, 1, 1, 0])
    for line in (decided(0, 0), decided(1, 0), decided(2, 1, "remote"), decided(3, 1, "fallback"), decided(4, 1)):
        verdict.take(line)
    report = verdict.report()
    assert report["decisions"] == {"local": 3, "remote": 1, "fallback": 1} and report["labelled"] == 4
    assert report["accuracy"] == 0.5 and report["cost"] == pytest.approx((0 + 1 + 0.2 + 0.7) / 4)


def test_after_a_failure_of_sense_nobody_knows_which_label_is_whose():
    """An app that fails after it has read a line: every later decision is about the sample after its label's."""
    verdict = Verdict(CONFIG, [0, 1, 0, 1])
    verdict.take(decided(0, 0))
    verdict.hear("h2t2: sensor: OSError: EIO")
    for line in (decided(1, 0), decided(2, 1)):
        verdict.take(line)
    report = verdict.report()
    assert (report["labelled"], report["accuracy"]) == (1, 1.0) and report["decisions"] == {"local": 3}
    assert verdict.trouble({**CALM, "sensor_errors": 1})[0].startswith("labels after the first failure of sense()")


def test_of_many_classes_the_matrix_says_what_a_mistake_costs():
    config = NodeConfig(remote_shape=[4], model_id=1, beta=0.1, class_costs=[[0, 0.3, 0.4], [0.5, 0, 0.6], [0.7, 0.8, 0]])
    verdict = Verdict(config, [0, 2])
    verdict.take(decided(0, 1))
    verdict.take(decided(1, 0, "remote"))
    assert verdict.report()["cost"] == pytest.approx((0.3 + 0.1 + 0.7) / 2)


@pytest.mark.parametrize(
    "summary, said, words",
    [
        ({}, [], []),
        ({"start": "deepsleep"}, [], []),
        ({"start": "wdt"}, [], ["the board started again (wdt)"]),
        (
            {"start": "MemoryError: memory allocation failed"},
            ["Traceback (most recent call last):"],
            ["the board started again"],
        ),
        ({}, ["h2t2: starting again in 1 s"], ["the board started again"]),
        ({}, ["Traceback (most recent call last):"], ["the board printed a traceback"]),
        ({"sensor_errors": 3, "act_errors": 2}, [], ["3 failures of sense()", "2 failures of act()"]),
        ({"unsaved": 1}, [], ["1 snapshots that could not be written"]),
    ],
)
def test_trouble_is_said(summary, said, words):
    verdict = Verdict(CONFIG)
    for text in said:
        verdict.hear(text)
    trouble = verdict.trouble({**CALM, **summary})
    assert len(trouble) == len(words) and all(text.startswith(word) for text, word in zip(trouble, words))


def test_labels_of_a_project(tmp_path):
    pair = pairs.load("breast_cancer")
    project.write(tmp_path / "mine", pair, bundle=bundle.from_tflite(pair.ldl), board="unix")
    made = project.load(tmp_path / "mine")
    assert made.labels == pair.y.tolist()[: len(made.labels)] and len(made.labels) == 228
    assert project.LABELS not in made.contents.own
    (tmp_path / "mine" / project.LABELS).write_text("1\nyes\n")
    with pytest.raises(UserError, match=r"labels.csv, line 2: 'yes' is not a class"):
        project.load(tmp_path / "mine")


@pytest.fixture
def mine(tmp_path):
    """The folder of a project that runs on the unix port."""
    need(catalogue.UNIX)
    pair = pairs.load("breast_cancer")
    project.write(tmp_path / "mine", pair, bundle=bundle.from_tflite(pair.ldl), board="unix")
    return tmp_path / "mine"


@pytest.mark.whole
def test_an_actuator_that_fails_is_exit_status_1(mine, tmp_path, capsys):
    assert main(["run", str(mine), "--json", str(tmp_path / "good.json")]) == 0
    good = json.loads((tmp_path / "good.json").read_text())
    assert good["labelled"] == 228 and good["accuracy"] > 0.9 and 0 < good["cost"] < 0.3 and good["trouble"] == []
    assert "accuracy 9" in capsys.readouterr().err
    assert main(["run", str(mine), "--fresh", "--samples", "30", "--json", str(tmp_path / "short.json")]) == 0
    assert json.loads((tmp_path / "short.json").read_text())["summary"]["samples"] == 30
    capsys.readouterr()
    app = mine / "app.py"
    app.write_text(app.read_text() + "\n\ndef act(decision):\n    raise ValueError('stuck')\n")
    assert main(["run", str(mine), "--fresh", "--json", str(tmp_path / "bad.json")]) == 1
    assert "228 failures of act()" in capsys.readouterr().err
    assert json.loads((tmp_path / "bad.json").read_text())["trouble"] == ["228 failures of act()"]


@pytest.mark.whole
def test_what_an_app_prints_is_no_decision(mine, tmp_path, capsys):
    """An app that prints JSON of its own, with the names of a decision and of a summary among others."""
    app = mine / "app.py"
    act = 'def act(decision):\n    print(\'{"bin": 3, "t": 21.5}\')\n    print(\'{"summary": 1, "day": 2}\')\n'
    app.write_text(app.read_text() + "\n\n" + act)
    assert main(["run", str(mine), "--json", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert sum(report["decisions"].values()) == report["labelled"] == report["summary"]["samples"] == 228


@pytest.mark.whole
def test_the_heap_of_another_board_is_an_option(mine, capsys):
    app = mine / "app.py"
    app.write_text(app.read_text() + "\nlarge = bytearray(600 << 10)\n")
    assert main(["run", str(mine), "--heap", "any"]) == 0
    capsys.readouterr()
    assert main(["run", str(mine), "--heap", "esp32", "--fresh"]) == 1
    assert "restarts again and again: h2t2: MemoryError: memory allocation failed" in capsys.readouterr().err
