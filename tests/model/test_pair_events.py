"""Every kind of model with every kind of label and each class as the event: the pair scores the class that was named."""

import json

import numpy as np
import pytest
from support import ROOT

from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, trust
from h2t2_tools.fleet.rdl import models

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

# in the order of the numbers 0 and 1 and of the alphabet, which models follow
LABELS = {"words": ["broken", "ok"], "numbers": [0, 1], "numbers from 1": [1, 2], "booleans": [False, True]}
FITTED = "one output", "isotonic", "forest", "HistGB"
BOOSTERS = {name: ROOT / f"tests/material/trees/cancer_{name}" for name in ("xgboost_gbtree.json", "lightgbm_gbdt.txt")}
BOOSTERS["catboost.json"] = ROOT / "tests/material/trees/cancer_catboost.json"
SHIPPED = {"TFLite, two outputs": "digits", "TFLite, one output": "breast_cancer"}
KINDS = [*FITTED, *BOOSTERS, *SHIPPED, "ONNX, one output", "pictures"]
CASES = [(kind, labels) for kind in KINDS for labels in LABELS if labels in ("words", "numbers") or kind == "one output"]


def fitted(kind, x, y):
    """A classifier of scikit-learn."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    linear = LogisticRegression(max_iter=5000)
    model = {
        "one output": linear,
        "isotonic": CalibratedClassifierCV(linear, method="isotonic", ensemble=False),
        "forest": RandomForestClassifier(5, max_depth=3, random_state=1),
        "HistGB": HistGradientBoostingClassifier(max_iter=5, max_depth=3),
    }[kind]
    return model.fit(x, y)


def make(kind, labels, folder):
    """Write both models and the samples with these labels. Return the two models, options, and y of 0 and 1."""
    names, options = np.array(labels), []
    if kind in SHIPPED:
        pair = pairs.load(SHIPPED[kind])
        columns = {"--ldl-columns": pair.info.columns["ldl"], "--rdl-columns": pair.info.columns["rdl"]}
        options = [str(word) for option, numbers in columns.items() if numbers for word in (option, *numbers)]
        x, y, local, remote = pair.x, pair.y, pair.ldl, pair.folder / "rdl.tflite"
    elif kind == "ONNX, one output":
        x = np.random.default_rng(1).random((300, 4)).astype(np.float32)
        y = (x.mean(1) > 0.5).astype(int)
        local = remote = ROOT / "tests/material/mean.onnx"
    else:
        joblib = pytest.importorskip("joblib")
        from sklearn.datasets import load_breast_cancer
        from sklearn.naive_bayes import GaussianNB

        x, y = load_breast_cancer(return_X_y=True)
        x = x.astype(np.float32)
        local = BOOSTERS.get(kind, folder / "small.joblib")
        remote = folder / "big.joblib"
        joblib.dump(GaussianNB().fit(x, names[y]), remote)
        if kind in FITTED:
            joblib.dump(fitted(kind, x, names[y]), local)
        trust.remember_models(folder)
    np.savez(folder / "test.npz", x=x, y=names[y])
    return local, remote, options, y


def make_pictures(labels, folder):
    """The same of a folder of pictures for each class; pairs of digits."""
    pillow = pytest.importorskip("PIL.Image")
    pair = pairs.load("digits")
    for n, (x, y) in enumerate(zip(pair.x, pair.y, strict=True)):
        place = folder / "test" / str(labels[y])
        place.mkdir(parents=True, exist_ok=True)
        pillow.fromarray((x[:, :, 0] * 255).astype(np.uint8)).save(place / f"{n:03}.png")
    return pair.ldl, pair.folder / "rdl.tflite", [], np.sort(pair.y)


@pytest.mark.parametrize("kind, labels", CASES)
def test_the_event_that_is_named_is_scored(kind, labels, tmp_path):
    """Both models, as int8 or as a worker asks them, and what the report says."""
    names = LABELS[labels]
    writing = make_pictures if kind == "pictures" else lambda *words: make(kind, *words)
    local, remote, options, y = writing(names, tmp_path)
    samples = tmp_path / ("test" if kind == "pictures" else "test.npz")
    for number, name in enumerate(names):
        out = tmp_path / f"p{number}"
        words = ["pair", local, remote, "--test", samples, "--out", out, "--event", str(name), *options]
        assert main([str(word) for word in words]) == 0
        pair = pairs.load(str(out))
        assert (pair.y == (y == number)).all()
        metrics = json.loads((out / "pair.json").read_text())["metrics"]
        assert metrics["ldl"]["int8"]["accuracy"] > 0.75 and metrics["rdl"]["int8"]["accuracy"] > 0.85
        assert ((models.answers(pair) > 0.5) == pair.y).mean() > 0.85
        is_named = kind == "pictures" or labels in ("words", "numbers from 1")
        title = str(name) if is_named else f"class {number}"
        assert f"- Event: {title}. A missed {title} costs 1, a false alarm 0.7." in (out / "README.md").read_text()
        assert pair.info.class_names == ([str(names[1 - number]), title] if is_named else None)


def test_a_model_that_numbers_the_classes_otherwise_is_refused(tmp_path, capsys):
    """Of words their order; of numbers nothing but the scores tells it. Both inverted the decisions without a word."""
    joblib = pytest.importorskip("joblib")
    x = np.random.default_rng(1).random((300, 4)).astype(np.float32)
    is_broken = x.mean(1) > 0.5
    words = np.where(is_broken, "broken", "ok")
    labels = {"words": words, "numbers": is_broken.astype(int), "others": np.where(is_broken, "bad", "good")}
    for name, y in labels.items():
        joblib.dump(fitted("one output", x, y), tmp_path / f"{name}.joblib")
    trust.remember_models(tmp_path)
    np.savez(tmp_path / "test.npz", x=x, y=words)

    def pair(local, remote):
        command = ["pair", tmp_path / f"{local}.joblib", tmp_path / f"{remote}.joblib", "--test", tmp_path / "test.npz"]
        command += ["--event", "broken", "--out", tmp_path / f"{local}-{remote}"]
        return main([str(word) for word in command]), capsys.readouterr().err

    assert pair("words", "words")[0] == 0
    for local, remote, wrong in (("numbers", "words", "numbers"), ("words", "numbers", "numbers")):
        status, err = pair(local, remote)
        assert status == 2 and f"{wrong}.joblib: its scores are higher for ok than for broken, which is the event" in err
    for remote in ("numbers", "others"):
        status, err = pair("others", remote)
        assert status == 2 and "test.npz: the labels are broken, ok, the model's classes bad, good" in err
