"""Traces and data sets whose labels are words: the event is named or asked for, and every report says it."""

import json
import re
import shutil

import numpy as np
import pytest

from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, places
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.gate import presets
from h2t2_tools.replay import trace_names, traces

MODELS = places.models()
WORDS = "Event: broken. A missed broken costs 1, a false alarm 0.7."


def h2t2(*words):
    return main([str(word) for word in words])


def trace_of(folder, labels, ending="csv"):
    """A trace of 200 samples with scores of the label in labels[1]."""
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    score = np.clip(rng.normal(0.3 + 0.4 * y, 0.2), 0, 1).round(6)
    path = folder / f"t.{ending}"
    if ending == "npz":
        np.savez(path, score=score, label=np.array(labels)[y])
    else:
        rows = [f"{s},{labels[k]}" for s, k in zip(score, y, strict=True)]
        path.write_text("\n".join(["score,label", *rows]))
    return path, score, y


@pytest.mark.parametrize("ending", ["csv", "npz"])
@pytest.mark.parametrize("labels", [("ok", "broken"), ("broken", "ok"), (2, 1), (1, 2), ("no", "broken")])
def test_a_trace_takes_words_and_its_event_is_named(labels, ending, tmp_path):
    path, score, y = trace_of(tmp_path, labels, ending)
    with pytest.raises(UserError, match=r"it has the classes .*; add --event CLASS, the one whose miss costs most"):
        traces.load(path)
    trace = traces.load(path, event=str(labels[1]))
    assert (trace.label == y).all() and trace.score == pytest.approx(score)
    assert trace.names == [str(label) for label in labels] and trace.event == str(labels[1])
    contradiction = f"its scores are higher for {labels[1]} than for {labels[0]}, which shall be the event"
    with pytest.raises(UserError, match=contradiction):
        traces.load(path, event=str(labels[0]))


@pytest.mark.parametrize("labels", [(0, 1), ("False", "True")])
def test_a_plain_event_needs_no_name_and_the_other_class_turns_scores_round(labels, tmp_path):
    path, score, y = trace_of(tmp_path, labels)
    trace = traces.load(path)
    assert (trace.label == y).all() and trace.event == "class 1"
    turned = traces.load(path, event="0")
    assert (turned.label == 1 - y).all() and turned.score == pytest.approx(1 - score) and turned.event == "class 0"
    with pytest.raises(UserError, match="--event broken: there is no such class"):
        traces.load(path, event="broken")


def test_scores_of_every_class_have_no_words(tmp_path):
    (tmp_path / "t.csv").write_text("score0,score1,label\n.2,.8,ok\n.6,.4,broken\n")
    with pytest.raises(UserError, match="the labels are broken, ok; a trace numbers its classes as its scores, 0 to 1"):
        traces.load(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("score0,score1,score2,label\n.2,.7,.1,1\n")
    with pytest.raises(UserError, match="--event: of 3 classes none is the event"):
        traces.load(tmp_path / "t.csv", event="1")


@pytest.mark.parametrize("command", ["replay", "recommend"])
def test_reports_say_the_event_in_words(command, tmp_path, capsys):
    path, _, _ = trace_of(tmp_path, ("ok", "broken"))
    options = ("--beta", 0.2, "--runs", 1, "--bits", 3, "--out", tmp_path / "out")
    assert h2t2(command, path, *options) == 2 and "add --event CLASS" in capsys.readouterr().err
    assert h2t2(command, path, *options, "--event", "broken") == 0
    assert capsys.readouterr().out.startswith(WORDS)
    assert h2t2(command, path, *options, "--event", "broken", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["event"] == "broken"
    assert h2t2(command, "phishing", *options, "--event", "broken") == 2
    assert "--event: the trace phishing numbers its classes" in capsys.readouterr().err


@pytest.mark.parametrize("event", ["broken", "ok"])
@pytest.mark.parametrize("has_pair", [True, False])
def test_score_numbers_words_by_the_event(event, has_pair, tmp_path, capsys):
    """Not by the alphabet: there broken is class 0. The model's outputs are in the order of scikit-learn's, the alphabet's."""
    pair = pairs.load("breast_cancer")
    other = "ok" if event == "broken" else "broken"
    words = np.where(pair.y == 1, event.upper(), other) if has_pair else np.where(pair.y == 1, "ok", "broken")
    np.savez(tmp_path / "test.npz", x=pair.x, y=words)
    out, columns = tmp_path / "t.npz", pair.info.columns["ldl"]
    if has_pair:
        shutil.copytree(pair.folder, tmp_path / "pair")
        content = json.loads((tmp_path / "pair/pair.json").read_text()) | {"class_names": [other, event]}
        (tmp_path / "pair/pair.json").write_text(json.dumps(content))
        assert h2t2("score", tmp_path / "pair", tmp_path / "test.npz", "--out", out) == 0
    else:
        shutil.copy(pair.ldl, tmp_path / "m.tflite")
        command = ("score", tmp_path / "m.tflite", tmp_path / "test.npz", "--out", out, "--columns", *columns)
        assert h2t2(*command) == 2 and "it has the classes broken, ok; add --event CLASS" in capsys.readouterr().err
        assert h2t2(*command, "--event", event) == 0
    assert capsys.readouterr().out.startswith(f"Event: {event}. A missed {event} costs 1, a false alarm 0.7.")
    made = traces.load(out)
    assert made.event == event and (made.label == (np.char.lower(words) == event)).all()
    assert made.score[made.label == 1].mean() > made.score[made.label == 0].mean() + 0.2


@pytest.mark.parametrize("name", trace_names.names())
def test_a_shipped_trace_names_its_event(name):
    """As its page does; a pair's as the pair does."""
    trace = trace_names.find(name)
    if trace.classes > 2:
        return
    card = MODELS / name / "README.md"
    event = re.search(r"^- Event \(class 1\): (.*)$", card.read_text(), re.M) if card.is_file() else None
    wanted = pairs.load(name).info.event_name if (MODELS / name / "pair.json").is_file() else event and event[1]
    assert trace.event == wanted if wanted else trace.event in ("malignant", "pneumonia", "a made-up event")


def test_a_preset_names_its_event(tmp_path):
    for name, classes in (("frigate", ["nobody", "person"]), ("birdnet-go", ["no bird", "bird"])):
        config = presets.write(name, "worker:1", "", "", tmp_path / f"{name}.toml")
        assert config.class_names == classes
