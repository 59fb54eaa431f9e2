"""Classifiers of LightGBM, XGBoost and CatBoost as objects, and their binary files. Runs in .venv-torch: make test-torch."""

import json

import joblib
import lightgbm
import numpy as np
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from pandas import DataFrame
from sklearn.datasets import load_breast_cancer, load_wine
from xgboost import XGBClassifier

from h2t2_tools.cli.main import main
from h2t2_tools.common import trust
from h2t2_tools.common.errors import UserError
from h2t2_tools.model.convert.distil import student
from h2t2_tools.model.convert.readers import open_source
from h2t2_tools.model.convert.teachers import teacher
from h2t2_tools.model.exact import open_exact

MODELS = {
    "lightgbm": lambda: LGBMClassifier(n_estimators=10, num_leaves=8, verbose=-1),
    "xgboost": lambda: XGBClassifier(n_estimators=10, max_depth=4),
    "catboost": lambda: CatBoostClassifier(iterations=15, depth=4, verbose=False, allow_writing_files=False),
}
FILES = [("xgboost", "ubj"), ("xgboost", "json"), ("catboost", "cbm"), ("catboost", "json")]


def fitted(name, data):
    x, y = data(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(x))
    x, y = x[order].astype(np.float32), y[order]
    half = len(x) * 2 // 3
    return MODELS[name]().fit(x[:half], y[:half]), x, half


def check(source, model, x, half, tmp_path):
    """The source says what the library says, and int8 decides alike."""
    expected = model.predict_proba(x)
    expected = expected[:, 1:] if expected.shape[1] == 2 else expected
    assert np.allclose(source.scores(x), expected, atol=1e-5)
    path = tmp_path / "int8.tflite"
    path.write_bytes(source.quantise(source.prepared(x[:half])))
    exact = open_exact(path)
    rounded = np.array([exact.scores(exact.quantise(row)) for row in source.prepared(x)])
    alike = (rounded >= 0.5) == (expected >= 0.5) if expected.shape[1] == 1 else rounded.argmax(1) == expected.argmax(1)
    assert alike.mean() > 0.98 and np.abs(rounded - expected).mean() < 0.02


@pytest.mark.parametrize("data", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("name", MODELS)
def test_an_object_is_a_source(name, data, tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "demand", lambda *_: None)
    model, x, half = fitted(name, data)
    joblib.dump(model, tmp_path / "model.joblib")
    check(open_source(tmp_path / "model.joblib"), model, x, half, tmp_path)


@pytest.mark.parametrize("data", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("name, ending", FILES)
def test_a_file_is_a_source(name, ending, data, tmp_path):
    model, x, half = fitted(name, data)
    options = {"format": ending} if name == "catboost" else {}
    model.save_model(str(tmp_path / f"model.{ending}"), **options)
    check(open_source(tmp_path / f"model.{ending}"), model, x, half, tmp_path)


@pytest.mark.parametrize("ending", ["joblib", "json", "ubj", "txt"])
def test_rounds_after_the_best_one_do_not_count(ending, tmp_path, monkeypatch):
    """As predict_proba() leaves them out; --distil, which asks the library, too."""
    monkeypatch.setattr(trust, "demand", lambda *_: None)
    x, y = load_wine(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(x))
    x, y, path = x[order].astype(np.float32), y[order], tmp_path / f"model.{ending}"
    if ending == "txt":
        model = LGBMClassifier(n_estimators=60, learning_rate=0.5, num_leaves=5, verbose=-1)
        model.fit(x[:118], y[:118], eval_X=x[118:], eval_y=y[118:], callbacks=[lightgbm.early_stopping(3, verbose=False)])
        model.booster_.save_model(path)
        assert model.best_iteration_ < 60
    else:
        model = XGBClassifier(n_estimators=60, max_depth=2, learning_rate=0.9, early_stopping_rounds=5)
        model.fit(x[:118], y[:118], eval_set=[(x[118:], y[118:])], verbose=False)
        joblib.dump(model, path) if ending == "joblib" else model.save_model(path)
        assert model.best_iteration + 5 < model.get_booster().num_boosted_rounds()
    check(open_source(path), model, x, 118, tmp_path)
    assert np.allclose(teacher(path).scores(x), model.predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("missing", [0.0, -1.0])
@pytest.mark.parametrize("ending", ["joblib", "json", "ubj"])
def test_a_number_that_counts_as_missing_goes_its_own_way(ending, missing, tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "demand", lambda *_: None)
    x, y = load_wine(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(x))
    x, y, path = x[order].astype(np.float32), y[order], tmp_path / f"model.{ending}"
    x[np.random.default_rng(2).random(x.shape) < 0.4] = missing
    model = XGBClassifier(n_estimators=8, max_depth=4, missing=missing).fit(x, y)
    joblib.dump(model, path) if ending == "joblib" else model.save_model(path)
    source = open_source(path) if ending == "joblib" else open_source(path, missing)
    check(source, model, x, 118, tmp_path)
    if ending != "joblib":
        assert np.allclose(teacher(path, missing).scores(x), model.predict_proba(x), atol=1e-5)


NAMED = [*((name, "joblib") for name in MODELS), *FILES, ("lightgbm", "txt")]


@pytest.mark.parametrize("name, ending", NAMED)
def test_a_command_reads_the_columns_that_a_data_frame_had(name, ending, tmp_path, capsys):
    """In whichever order the file of samples has them."""
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    x.columns = [text.replace(" ", "_") for text in x.columns]
    model, path = MODELS[name]().fit(x[:380], y[:380]), tmp_path / f"model.{ending}"
    if ending == "joblib":
        joblib.dump(model, path)
    elif name == "lightgbm":
        model.booster_.save_model(path)
    else:
        model.save_model(str(path), **({"format": ending} if name == "catboost" else {}))
    for part, rows in (("fit", slice(380)), ("test", slice(380, None))):
        x[rows][x.columns[::-1]].assign(label=y[rows]).to_csv(tmp_path / f"{part}.csv", index=False)
    files = ("--calibration", tmp_path / "fit.csv", "--test", tmp_path / "test.csv", "--out", tmp_path / "out", "--trust")
    assert main([str(word) for word in ("convert", path, *files, "--json", "-")]) == 0
    report = json.loads(capsys.readouterr().out)
    accuracy = (model.predict(x[380:]) == y[380:]).mean()
    assert report["float"]["accuracy"] == pytest.approx(accuracy) and report["int8"]["accuracy"] > accuracy - 0.01


REFUSED = [("lightgbm", "txt"), ("xgboost", "ubj"), ("xgboost", "json"), ("catboost", "cbm"), ("catboost", "json")]


@pytest.mark.parametrize("name, ending", REFUSED)
def test_a_file_of_trees_that_int8_has_not_is_distilled(name, ending, tmp_path):
    """Categories, as each library has them; the library itself gives the scores."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(600, 3)), rng.integers(0, 4, 600)]).astype(np.float32)
    y, path = (x[:, 0] + (x[:, 3] == 2) + 0.2 * x[:, 1] > 0.5).astype(int), tmp_path / f"model.{ending}"
    frame = DataFrame(x).astype({3: int}).astype({3: "category"})
    if name == "lightgbm":
        LGBMClassifier(n_estimators=10, verbose=-1).fit(frame, y).booster_.save_model(path)
    elif name == "xgboost":
        XGBClassifier(n_estimators=10, enable_categorical=True, max_cat_to_onehot=1).fit(frame, y).save_model(path)
    else:
        leafwise = MODELS[name]().set_params(grow_policy="Lossguide", iterations=30)
        leafwise.fit(x, y).save_model(str(path), format=ending)
    with pytest.raises(UserError, match="categories.*; --distil trains trees on its scores"):
        open_source(path)
    source = student(path, x[:300])
    path = tmp_path / "int8.tflite"
    path.write_bytes(source.quantise(source.prepared(x[:300])))
    exact = open_exact(path)
    found = np.array([exact.scores(exact.quantise(row))[-1] for row in source.prepared(x)])
    assert ((found >= 0.5) == (source.scores(x)[:, 0] >= 0.5)).mean() > 0.95
