"""`h2t2 retrain`: a weak local model, what the field has sent, a better one; and one that is worse, which is not written."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import weak_pair
from weak_pair import FIRST_SAMPLES, RECIPE, draw_samples

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.samples.sample_store import Keeper
from h2t2_tools.model.retrain import evaluate, retrain


@pytest.fixture(scope="module")
def field(tmp_path_factory):
    """A pair with a weak local model, its recipe, and 1,200 kept samples of what the field sent."""
    folder = tmp_path_factory.mktemp("field")
    pair = weak_pair.make(folder)
    keep_samples(pair, folder / "kept", *draw_samples(np.random.default_rng(4), 1200))
    return folder


def keep_samples(pair, folder, x, y, model=None):
    """Sure samples are asked about one in ten times, the others always, as a policy would."""
    rng, lines = np.random.default_rng(5), []
    keeper = Keeper(folder, 100.0, lines.append)
    remote = pair.info.remote
    score = evaluate.scores(pair, x)
    for n in range(len(x)):
        chance = ONE // 10 if abs(score[n] - 0.5) > 0.35 else ONE
        if rng.random() < chance / ONE:
            data = pair.remote_payload(x[n])
            number = model or pair.info.model_id
            request = wire.encode_request(number, 1, n, remote.shape, data, chance=chance, k=int(score[n] * 15))
            keeper.keep("kitchen", worker_wire.decode_request(request), worker_wire.encode_reply(wire.OK, 1, n, int(y[n]), ONE))
    keeper.close()
    assert not lines


@pytest.mark.whole
def test_a_better_model_of_what_the_field_sent(field, tmp_path, capsys):
    """Learned from twelve samples, then from hundreds: the new pair is whole, runs, and is better on data nobody was shown."""
    out = tmp_path / "again"
    assert main(["retrain", str(field / "pair"), "--samples", str(field / "kept"), "--out", str(out), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (
        report["training"] == FIRST_SAMPLES
        and report["kept"] == report["taught"] + report["judging"] > 300
        and not report["skipped"]
    )
    assert report["new"]["cost"] < report["old"]["cost"] and report["new"]["brier"] < report["old"]["brier"]
    old, new = pairs.load(str(field / "pair")), pairs.load(str(out))
    assert new.info.model_id == old.info.model_id and new.info.remote == old.info.remote
    right = [(models.labels(evaluate.scores(pair, old.x)) == old.y).mean() for pair in (old, new)]
    assert right[1] > right[0] + 0.05 and right[1] > 0.95
    assert models.answers(new).tolist() == models.answers(old).tolist()
    assert (out / "retrain.png").read_bytes()[1:4] == b"PNG" and "Trained again" in (out / "README.md").read_text()
    assert (out / "ldl.h2m").exists() and (out / "prior.json").exists() and (out / "train.py").exists()
    again = tmp_path / "third"  # a pair that was trained again can be
    assert main(["retrain", str(out), "--samples", str(field / "kept"), "--out", str(again)]) in (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("labels, why", [("np.arange(len(y)) % 2", "cost"), ("1 - y", "brier")])
def test_a_worse_model_is_not_written(field, tmp_path, capsys, labels, why):
    """One that learned noise; and one that says the opposite, which a policy learns to read, and nobody else would."""
    (tmp_path / "wrong.py").write_text(RECIPE.format(path=str(field / "few.npz"), y=labels))
    out = tmp_path / "worse"
    command = ["retrain", str(field / "pair"), "--samples", str(field / "kept"), "--out", str(out)]
    assert main([*command, "--recipe", str(tmp_path / "wrong.py")]) == 1
    lines = capsys.readouterr().err
    assert "the new model is worse" in lines and why in lines
    assert {path.name for path in tmp_path.iterdir()} <= {"wrong.py", "__pycache__"}


@pytest.mark.parametrize(
    "recipe, why",
    [
        (None, "a recipe has training_data"),
        ("", "no attribute"),
        ("def training_data(): return 5", "want (x, y), or the path of a file of both"),
        ("def training_data(): return 'none.csv'", "none.csv: no such file"),
        (
            "import numpy as np\ndef training_data(): return np.zeros((3, 6)), np.array(['ok', 'bad', 'ok'])",
            "has the labels bad, ok",
        ),
        ("import numpy as np\ndef training_data(): return np.zeros((3, 6)), np.array([0, np.nan, 1])", "sample 1 has no label"),
        ("import numpy as np\ndef training_data(): return np.zeros((3, 6)), 1", "labels of shape ()"),
        ("def training_data(): raise KeyError('no')", "training_data: KeyError"),
        ("import numpy as np\ndef training_data(): return np.zeros((3, 5)), np.zeros(3)", "want samples of shape (6,)"),
        ("import numpy as np\ndef training_data(): return np.zeros((3, 6)), np.full(3, 7)", "want 0 to 1"),
        ("import numpy as np\ndef training_data(): return np.full((3, 6), np.nan), np.zeros(3)", "NaN"),
        (
            "import numpy as np\ndef training_data(): return np.zeros((3, 6)), np.zeros(3)\ndef local_model(*_): return 5",
            "want a Keras or scikit-learn model",
        ),
    ],
)
def test_recipes_that_are_none(field, tmp_path, capsys, recipe, why):
    path = tmp_path / "recipe.py"
    if recipe is not None:
        path.write_text(recipe)
    command = ["retrain", str(field / "pair"), "--samples", str(field / "kept"), "--out", str(tmp_path / "new")]
    assert main([*command, "--recipe", str(path)]) == 2
    assert why in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_samples_that_do_not_suit(field, tmp_path, capsys):
    """Too few, of another model, of another shape; a folder that is there already."""
    pair, rng = pairs.load(str(field / "pair")), np.random.default_rng(9)
    command = ["retrain", str(field / "pair"), "--out", str(tmp_path / "new"), "--samples"]
    keep_samples(pair, tmp_path / "few", *draw_samples(rng, 30))
    assert main([*command, str(tmp_path / "few")]) == 2 and "want 60 or more" in capsys.readouterr().err
    keep_samples(pair, tmp_path / "other", *draw_samples(rng, 30), model=7)
    assert main([*command, str(tmp_path / "other")]) == 2 and "no samples of the pair's model" in capsys.readouterr().err
    (tmp_path / "new").mkdir()
    assert main([*command, str(field / "kept")]) == 2 and "is there already" in capsys.readouterr().err


def test_its_report_says_the_event_in_words(tmp_path, monkeypatch, capsys):
    figures = dict.fromkeys(("accuracy", "brier", "cost", "sd"), 0.5)
    report = {"old": figures, "new": figures, "judging": 9, "training": 9, "taught": 9}
    monkeypatch.setattr(retrain, "retrain", lambda *_, **__: report)
    for pair, lines in (
        ("breast_cancer", ["Event: malignant. A missed malignant costs 1, a false alarm 0.7."]),
        ("ten_digits", []),
    ):
        assert main(["retrain", pair, "--samples", str(tmp_path), "--out", str(tmp_path / "new")]) == 0
        assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("Event")] == lines


@pytest.mark.parametrize("names, numbers", [(["ok", "broken"], [0, 1, 0]), (["not broken", "broken"], [0, 1, 0])])
def test_a_recipes_words_are_the_pairs_classes(names, numbers):
    info = SimpleNamespace(classes=2, class_names=names)
    assert retrain._labels("recipe.py", np.array(["ok", "broken", "ok"]), info).tolist() == numbers


def test_a_recipe_may_give_the_csv_of_a_logger(field, tmp_path, capsys):
    """The options read it: it goes on to local_model(), which refuses here; without them the error names one."""
    with np.load(field / "few.npz") as few:
        rows = [",".join(["05:00", *map(str, x), str(bool(y))]) for x, y in zip(few["x"], few["y"])]
        header = ["time", *"abcdef", "broken"]
        (tmp_path / "few.csv").write_text("\n".join([",".join(header), *rows, ",".join(["05:01", "", *"23456", "True"])]))
        count, events = len(few["y"]), int(few["y"].sum())
    (tmp_path / "recipe.py").write_text(
        f"def training_data(): return {str(tmp_path / 'few.csv')!r}\n"
        "def local_model(x, y, weight):\n"
        f"    raise ValueError(f'{{x.shape[1]}} numbers, {{y[:{count}].sum()}} of {{{count}}} broken')\n"
    )
    command = ["retrain", str(field / "pair"), "--samples", str(field / "kept"), "--out", str(tmp_path / "new")]
    command += ["--recipe", str(tmp_path / "recipe.py"), "--label", "broken"]
    assert main(command) == 2 and "few.csv, line 2: time: '05:00' is no number; --drop time" in capsys.readouterr().err
    assert main([*command, "--drop", "time"]) == 2
    assert f"line {count + 2}: a: a number is missing" in capsys.readouterr().err
    assert main([*command, "--drop", "time", "--missing", "skip"]) == 2
    assert f"6 numbers, {events} of {count} broken" in capsys.readouterr().err
