"""`h2t2 convert`: scikit-learn and float .tflite sources to int8, what the report says, and what is refused."""

import json
import re
import sys
from dataclasses import replace

import joblib
import numpy as np
import pytest
from random_models import Maker
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC
from support import ROOT

from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2_tools.checks import ldl_check, oracle
from h2t2_tools.cli.main import main
from h2t2_tools.common import extras, prior_file
from h2t2_tools.model import tflite_write
from h2t2_tools.model.convert import compare, from_tflite
from h2t2_tools.model.convert.quiet import quiet
from h2t2_tools.model.tflite import Graph, Operator, Tensor, load

pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")

CNN = ROOT / "tests/material/float/cnn.tflite"


@pytest.fixture(scope="module")
def cancer(tmp_path_factory):
    """A folder with a scaled logistic regression and its data."""
    folder = tmp_path_factory.mktemp("cancer")
    x, y = load_breast_cancer(return_X_y=True)
    joblib.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(x[:400], y[:400]), folder / "lr.joblib")
    np.savez(folder / "train.npz", x=x[:400], y=y[:400])
    np.savez(folder / "test.npz", x=x[400:], y=y[400:])
    return folder


def converted(*arguments, capsys):
    assert main(["convert", *map(str, arguments), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(*arguments, capsys):
    assert main(["convert", *map(str, arguments)]) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err and err.startswith("h2t2: ")
    return err


@pytest.mark.slow
def test_logistic_regression_with_its_scaler(cancer, tmp_path, capsys):
    data = ("--calibration", cancer / "train.npz", "--test", cancer / "test.npz")
    report = converted(cancer / "lr.joblib", *data, "--out", tmp_path, capsys=capsys)
    assert report["float"]["accuracy"] > 0.95 and abs(report["int8"]["accuracy"] - report["float"]["accuracy"]) < 0.03
    assert report["worst_score_difference"] < 0.1 and report["policy"]["decisions_differ"] < 250
    assert report["bytes"]["bundle_bytes"] == (tmp_path / "lr.h2m").stat().st_size
    table = prior_file.read(tmp_path / "lr_prior.json", 4)
    assert table[0] < 0.1 and table[-1] > 0.9 and report["files"]["prior"].endswith("lr_prior.json")
    for file in report["files"].values():
        assert (tmp_path / file).stat().st_size > 100
    text = (tmp_path / "report.md").read_text()
    assert "x * factor + offset" in text and "| int8 |" in text
    # the bundle and the .tflite are the model: the scaler as the report gives it, then either of them
    model = joblib.load(cancer / "lr.joblib")
    with np.load(cancer / "test.npz") as data:
        x = data["x"]
    prepared = x * report["input"]["factor"] + report["input"]["offset"]
    pi = TFLiteModel(str(tmp_path / "lr_int8.tflite"), event=0)
    board = Int8Model((tmp_path / "lr.h2m").read_bytes(), event=0)
    want = model.predict_proba(x)[:, 1]
    for row, score in zip(prepared[:40], want):
        q = pi.quantise(row)
        assert abs(board.run(q.ravel().tolist()) - pi.run(q)) <= (oracle.name() != "tflite_runtime")
        assert abs(pi.score(pi.run(q)) - score) < 0.1


@pytest.mark.whole
def test_an_mlp_of_ten_classes_with_dead_units(tmp_path, capsys):
    x, y = load_digits(return_X_y=True)
    with quiet():
        model = make_pipeline(MinMaxScaler(), MLPClassifier((12,), max_iter=120, random_state=0)).fit(x[:1200], y[:1200])
    model[-1].coefs_[0][:, 3] *= 1e-30  # a unit that training switched off
    joblib.dump(model, tmp_path / "mlp.joblib")
    np.savez(tmp_path / "data.npz", x=x[1200:], y=y[1200:])
    report = converted(
        tmp_path / "mlp.joblib", "--calibration", tmp_path / "data.npz", "--event", 3, "--out", tmp_path, capsys=capsys
    )
    assert report["classes"] == 10 and report["test"]["is_calibration"] and report["bytes"]["arena_bytes"] < 200
    assert abs(report["int8"]["accuracy"] - report["float"]["accuracy"]) < 0.02
    if oracle.name() == "tflite_runtime":
        check = ldl_check.compare(tmp_path / "mlp_int8.tflite", None, 50, 1, True, lambda *_: None)
        assert check["differ"] == 0


@pytest.mark.whole
def test_a_float_tflite_without_tensorflow(tmp_path, capsys):
    x, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "images.npz", x=(x * 15.9).astype(np.uint8).reshape(-1, 8, 8), y=y % 2)
    report = converted(CNN, "--calibration", tmp_path / "images.npz", "--out", tmp_path, capsys=capsys)
    assert report["kind"] == "float .tflite" and report["bytes"]["arena_bytes"] == 320
    assert report["worst_score_difference"] < 0.05 and not report["not_for_a_board"]
    # unlabelled data: no accuracy, and the report says so
    np.save(tmp_path / "images.npy", (x / 16).astype(np.float32))
    report = converted(CNN, "--calibration", tmp_path / "images.npy", "--out", tmp_path, capsys=capsys)
    assert "int8" not in report and "no labels" in (tmp_path / "report.md").read_text()
    assert "tensorflow" not in sys.modules


def changed_cnn(path, change):
    """The float CNN with one layer's weights and bias changed: change(weights (outputs, ...), bias)."""
    graph = load(CNN)
    layer = next(o for o in graph.operators if o.name == "CONV_2D")
    tensors = list(graph.tensors)
    weights, bias = (tensors[n].data.copy() for n in layer.inputs[1:])
    change(weights, bias)
    for n, data in zip(layer.inputs[1:], (weights, bias)):
        tensors[n] = replace(tensors[n], data=data)
    path.write_bytes(tflite_write.write(replace(graph, tensors=tuple(tensors))))


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1e-9, 1e-6])
@pytest.mark.parametrize("value", [-3.0, 3.0])
def test_a_dead_channel_keeps_its_bias(size, value, tmp_path, capsys):
    """ai-edge-quantizer makes -2^31 of a bias that leaves int32, whatever its sign."""

    def kill(weights, bias):
        weights[0] *= size
        bias[0] = value

    changed_cnn(tmp_path / "dead.tflite", kill)
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "x.npz", x=rng.uniform(0, 1, (60, 8, 8, 1)).astype(np.float32))
    report = converted(tmp_path / "dead.tflite", "--calibration", tmp_path / "x.npz", "--out", tmp_path / "out", capsys=capsys)
    assert report["worst_score_difference"] < 0.05 and report["not_for_a_board"] == []
    int8 = load(tmp_path / "out/dead_int8.tflite")
    layer = next(o for o in int8.operators if o.name == "CONV_2D")
    bias = int8.tensors[layer.inputs[2]]
    assert np.isclose(bias.data[0] * float(bias.scale[0]), value, rtol=1e-5) and np.abs(bias.data).max() <= 2**27 + 100
    assert ldl_check.compare(tmp_path / "out/dead_int8.tflite", None, 5, 1, True, lambda *_: None)["differ"] == 0


@pytest.fixture
def unfit(tmp_path):
    """A float model that no board runs once it is int8, and its data: (model, data)."""
    make = Maker(1, (6, 6, 2))
    make.tensors[make.first] = replace(make.tensors[make.first], dtype="float32", scale=np.zeros(0), zero=np.zeros(0, int))
    real = {"dtype": "float32"}
    least = make.operator("REDUCE_MIN", (make.first, make.numbers(3)), make.tensor((1, 6, 6, 1), **real), keep_dims=True)
    flat = make.operator("RESHAPE", (least, make.numbers(1, 36)), make.tensor((1, 36), **real))
    weights = make.tensor((2, 36), data=make.rng.normal(0, 1, (2, 36)).astype(np.float32), **real)
    logits = make.operator("FULLY_CONNECTED", (flat, weights, -1), make.tensor((1, 2), **real), fused=0)
    y = make.operator("SOFTMAX", (logits,), make.tensor((1, 2), **real), beta=1.0)
    (tmp_path / "unfit.tflite").write_bytes(make.bytes(y))
    np.savez(tmp_path / "x.npz", x=make.rng.uniform(0.1, 1, (60, 6, 6, 2)).astype(np.float32))
    return tmp_path / "unfit.tflite", tmp_path / "x.npz"


@pytest.mark.slow
def test_without_a_bundle_the_status_is_1_and_the_reason_is_said(unfit, tmp_path, capsys):
    arguments = ["convert", str(unfit[0]), "--calibration", str(unfit[1]), "--out", str(tmp_path / "out"), "--max-loss", "10"]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert "no bundle, since no board can run it: operator 0, REDUCE_MIN: a board does not run it" in error
    assert "--no-bundle" in error and "Traceback" not in error
    assert (tmp_path / "out/unfit_int8.tflite").exists() and (tmp_path / "out/report.md").exists()
    assert main([*arguments, "--no-bundle"]) == 0


@pytest.mark.slow
def test_no_bundle_makes_none(tmp_path, capsys):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "x.npz", x=rng.uniform(0, 1, (60, 8, 8, 1)).astype(np.float32))
    report = converted(CNN, "--calibration", tmp_path / "x.npz", "--out", tmp_path, "--no-bundle", capsys=capsys)
    assert "bundle" not in report["files"] and not list(tmp_path.glob("*.h2m"))


@pytest.mark.slow
def test_a_folder_of_images(tmp_path, capsys):
    from PIL import Image

    rng = np.random.default_rng(3)
    for name in ("event", "other"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for n in range(8):
            Image.fromarray(rng.integers(0, 256, (20, 20), np.uint8)).save(tmp_path / "pictures" / name / f"{n}.png")
    report = converted(CNN, "--calibration", tmp_path / "pictures", "--out", tmp_path / "out", capsys=capsys)
    assert report["calibration"]["samples"] == 16 and report["test"]["labelled"]


BAD = {
    "constant": (np.ones((50, 30)), "every number is the same"),
    "same": (np.tile(np.arange(30.0), (50, 1)), "all samples are the same"),
    "nan": (
        np.where(np.arange(1500).reshape(50, 30) == 70, np.nan, np.arange(1500.0).reshape(50, 30)),
        "sample 2: a number is missing \\(NaN\\)",
    ),
    "shape": (np.zeros((50, 29)), r"samples of shape \(29,\); the model takes \(30,\)"),
    "few": (np.random.default_rng(1).normal(size=(3, 30)), "3 samples; at least 10"),
    "text": (np.full((20, 30), "a"), "want numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_unrepresentative_calibration_data_is_refused(name, cancer, tmp_path, capsys):
    x, reason = BAD[name]
    np.save(tmp_path / "bad.npy", x)
    err = refused(cancer / "lr.joblib", "--calibration", tmp_path / "bad.npy", "--out", tmp_path / "out", capsys=capsys)
    assert re.search(reason, err) and "bad.npy" in err
    assert not (tmp_path / "out").exists()


def test_a_users_likely_mistakes(cancer, tmp_path, capsys, monkeypatch):
    """No such file; int8 already; not a classifier; outputs that are no scores; TensorFlow missing; labels that do not fit."""
    data = ("--calibration", cancer / "train.npz", "--out", tmp_path / "out")
    assert "no such file" in refused(tmp_path / "none.keras", *data, capsys=capsys)
    (tmp_path / "m.pt").write_bytes(b"x")
    assert "export" in refused(tmp_path / "m.pt", *data, capsys=capsys)
    assert "is int8 already; `h2t2 inspect --bundle FILE`" in refused(ROOT / "models/digits/ldl.tflite", *data, capsys=capsys)
    (tmp_path / "cut.tflite").write_bytes(CNN.read_bytes()[:1000])
    assert "cut.tflite" in refused(tmp_path / "cut.tflite", *data, capsys=capsys)
    (tmp_path / "not.joblib").write_bytes(b"not a pickle")
    assert "not a model saved by joblib" in refused(tmp_path / "not.joblib", *data, capsys=capsys)
    x, y = load_breast_cancer(return_X_y=True)
    with quiet():  # they do not converge
        polynomial = make_pipeline(PolynomialFeatures(1), LogisticRegression(max_iter=1)).fit(x, y)
    for model, reason in (
        (StandardScaler().fit(x), "is not a fitted classifier"),
        (polynomial, "PolynomialFeatures is not a scaler"),
    ):
        joblib.dump(model, tmp_path / "m.joblib")
        assert reason in refused(tmp_path / "m.joblib", *data, capsys=capsys)
    (tmp_path / "empty").mkdir()
    assert "saved_model.pb" in refused(tmp_path / "empty", *data, capsys=capsys)
    assert "outputs 0..0" in refused(cancer / "lr.joblib", *data, "--event", "4", capsys=capsys)
    np.savez(tmp_path / "odd.npz", x=x, y=np.arange(len(y)) % 3 + 3)
    labels = ("--calibration", tmp_path / "odd.npz", "--out", tmp_path / "out")
    assert "labels 0..2; the model has 2 classes" in refused(cancer / "lr.joblib", *labels, capsys=capsys)
    assert "want a number, above 0" in refused(cancer / "lr.joblib", *data, "--scale", "-1", capsys=capsys)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    (tmp_path / "m.keras").write_bytes(b"x")
    assert extras.install_command("train") in refused(tmp_path / "m.keras", *data, capsys=capsys)
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    assert extras.install_command("convert") in refused(cancer / "lr.joblib", *data, capsys=capsys)


@pytest.mark.slow
def test_a_model_without_an_int8_form_is_distilled(tmp_path, capsys):
    x, y = load_breast_cancer(return_X_y=True)
    joblib.dump(make_pipeline(StandardScaler(), SVC()).fit(x[:400], y[:400]), tmp_path / "svc.joblib")
    np.save(tmp_path / "fit.npy", x[:400])
    np.savez(tmp_path / "test.npz", x=x[400:], y=y[400:])
    data = ("--calibration", tmp_path / "fit.npy", "--test", tmp_path / "test.npz", "--out", tmp_path / "out")
    assert "--distil trains trees on its scores" in refused(tmp_path / "svc.joblib", *data, capsys=capsys)
    report = converted(tmp_path / "svc.joblib", *data, "--distil", capsys=capsys)
    assert report["kind"] == "trees distilled from SVC" and report["float"]["accuracy"] > 0.95
    assert report["int8"]["accuracy"] > report["float"]["accuracy"] - 0.03 and not report["not_for_a_board"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SQUARED_DIFFERENCE", "L2_NORMALIZATION"])
def test_a_compound_operator_becomes_plain_ones(name, tmp_path):
    """Keras writes SQUARED_DIFFERENCE for its LayerNormalization."""
    rng = np.random.default_rng(3)
    shapes = [(1, 6), (8, 6), (8,), (1, 8), (1, 8), (3, 8), (3,), (1, 3), (1, 3), (1, 8)]
    data = {n: rng.normal(0, 1, shapes[n]).astype(np.float32) for n in (1, 2, 5, 6, 9)}
    tensors = [Tensor(n, f"t{n}", shape, "float32", data.get(n)) for n, shape in enumerate(shapes)]
    operators = [
        Operator("FULLY_CONNECTED", 1, (0, 1, 2), (3,), {"fused": 0}),
        Operator(name, 1, (3, 9) if name == "SQUARED_DIFFERENCE" else (3,), (4,), {}),
        Operator("FULLY_CONNECTED", 1, (4, 5, 6), (7,), {"fused": 0}),
        Operator("SOFTMAX", 1, (7,), (8,), {"beta": 1.0}),
    ]
    content = tflite_write.write(Graph("compound", 0, tuple(tensors), tuple(operators), (0,), (8,)))
    x = rng.normal(0, 1, (200, 6)).astype(np.float32)
    exact = from_tflite._all_scores(content, x)
    (tmp_path / "float.tflite").write_bytes(content)
    source = from_tflite.tflite_file(tmp_path / "float.tflite")
    assert np.allclose(source.scores(x), exact, atol=1e-5)
    (tmp_path / "int8.tflite").write_bytes(source.quantise(x))
    assert np.abs(from_tflite._all_scores((tmp_path / "int8.tflite").read_bytes(), x) - exact).mean() < 0.02
    assert ldl_check.compare(tmp_path / "int8.tflite", None, 5, 1, True, lambda *_: None)["differ"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("outputs, end", [(1, ""), (3, ""), (3, "LOG_SOFTMAX")])
def test_scores_are_made_of_logits(outputs, end, tmp_path, capsys):
    rng = np.random.default_rng(3)
    weights = rng.normal(0, 1, (outputs, 5)).astype(np.float32)
    shapes = [(1, 5), weights.shape, (outputs,), (1, outputs)]
    data = {1: weights, 2: np.zeros(outputs, np.float32)}
    tensors = [Tensor(n, f"t{n}", shape, "float32", data.get(n)) for n, shape in enumerate(shapes)]
    tensors += [Tensor(4, "t4", (1, outputs), "float32")] if end else []
    operators = Operator("FULLY_CONNECTED", 1, (0, 1, 2), (3,), {"fused": 0}), Operator(end, 1, (3,), (4,), {})
    graph = Graph("logits", 0, tuple(tensors), operators[: len(tensors) - 3], (0,), (len(tensors) - 1,))
    (tmp_path / "logits.tflite").write_bytes(tflite_write.write(graph))
    x = rng.normal(0, 1, (100, 5)).astype(np.float32)
    y = (x @ weights.T).argmax(1) if outputs > 1 else (x @ weights[0] > 0).astype(int)
    np.savez(tmp_path / "x.npz", x=x, y=y)
    data = ("--calibration", tmp_path / "x.npz", "--out", tmp_path / "out", "--event", outputs - 1)
    assert "--logits does" in refused(tmp_path / "logits.tflite", *data, capsys=capsys)
    report = converted(tmp_path / "logits.tflite", *data, "--logits", capsys=capsys)
    assert report["float"]["accuracy"] > 0.85 and report["int8"]["accuracy"] > report["float"]["accuracy"] - 0.03
    assert [o.name for o in load(tmp_path / "out/logits_int8.tflite").operators][1:] == [
        "SOFTMAX" if outputs > 1 else "LOGISTIC"
    ]


def test_logits_are_no_scores(tmp_path, capsys):
    import random_models

    from h2t2_tools.model.tflite import Graph, Operator, Tensor
    from h2t2_tools.model.tflite_write import write

    w = np.random.default_rng(1).normal(size=(2, 5)).astype(np.float32)
    tensors = (
        Tensor(0, "x", (1, 5), "float32"), Tensor(1, "w", (2, 5), "float32", w),
        Tensor(2, "y", (1, 2), "float32"),
    )  # fmt: skip
    layer = Operator("FULLY_CONNECTED", 1, (0, 1, -1), (2,), {"fused": random_models.NONE})
    (tmp_path / "logits.tflite").write_bytes(write(Graph("logits", 0, tensors, (layer,), (0,), (2,))))
    np.save(tmp_path / "x.npy", np.random.default_rng(2).normal(size=(40, 5)))
    err = refused(tmp_path / "logits.tflite", "--calibration", tmp_path / "x.npy", "--out", tmp_path, capsys=capsys)
    assert "end the model with a softmax or a sigmoid" in err


def test_calibration_error_and_decisions():
    """A calibrated score has an ECE near 0, an overconfident one its distance; equal scores give equal decisions."""
    rng = np.random.default_rng(4)
    score = rng.random(20000)
    label = (rng.random(20000) < score).astype(int)
    assert compare.errors(score, label)["ece"] < 0.02
    assert compare.errors(np.where(label == 1, 0.9, 0.1), label)["ece"] == pytest.approx(0.1)
    report = compare.decisions(score[:500], score[:500], label[:500])
    assert report["decisions_differ"] == 0 and 0 < report["offloads"][0] < 1
    assert compare.decisions(score[:500], 1 - score[:500], label[:500])["decisions_differ"] > 500


@pytest.mark.slow
def test_a_float_model_without_a_signature_or_names(tmp_path, capsys):
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(CNN.read_bytes(), 0)
    model.signatureDefs = None
    for tensor in model.subgraphs[0].tensors:
        tensor.name = b""
    bare = tmp_path / "bare.tflite"
    bare.write_bytes(tflite_write.pack(model))
    images = np.random.default_rng(1).random((20, *load(CNN).tensors[load(CNN).inputs[0]].shape[1:])).astype(np.float32)
    np.savez(tmp_path / "images.npz", x=images)
    for path in (bare, CNN):
        converted(path, "--calibration", tmp_path / "images.npz", "--out", tmp_path / path.stem, capsys=capsys)
    assert (tmp_path / "bare/bare.h2m").read_bytes() == (tmp_path / "cnn/cnn.h2m").read_bytes()


@pytest.mark.slow
def test_a_file_of_an_older_converter(tmp_path, capsys):
    """It has its operators' codes in the deprecated field alone, where the quantizer reads each of them as ADD."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(CNN.read_bytes(), 0)
    for code in model.operatorCodes:
        assert 0 < code.builtinCode < 127
        code.deprecatedBuiltinCode, code.builtinCode = code.builtinCode, 0
    older = tmp_path / "cnn.tflite"
    older.write_bytes(tflite_write.pack(model))
    images = np.random.default_rng(1).random((20, *load(CNN).tensors[load(CNN).inputs[0]].shape[1:])).astype(np.float32)
    np.savez(tmp_path / "images.npz", x=images)
    for name, path in (("older", older), ("newer", CNN)):
        converted(path, "--calibration", tmp_path / "images.npz", "--out", tmp_path / name, capsys=capsys)
    assert (tmp_path / "older/cnn.h2m").read_bytes() == (tmp_path / "newer/cnn.h2m").read_bytes()


def test_an_error_leaves_no_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(from_tflite, "quantise", lambda content, *_: content)
    images = np.random.default_rng(1).random((20, *load(CNN).tensors[load(CNN).inputs[0]].shape[1:])).astype(np.float32)
    np.savez(tmp_path / "images.npz", x=images)
    error = refused(CNN, "--calibration", tmp_path / "images.npz", "--out", tmp_path / "out", capsys=capsys)
    assert "ends as float" in error and not (tmp_path / "out").exists()
