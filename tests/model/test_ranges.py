"""Calibration data as users have it, of one class, with an outlier, unscaled, with a constant number: int8 decides as float."""

import json
from dataclasses import replace

import numpy as np
import pytest
from on_boards import compared, network, pipeline
from samples import draw
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from h2t2_tools.cli.main import main
from h2t2_tools.model.convert import from_tflite
from h2t2_tools.model.convert.from_scikit import _tflite
from h2t2_tools.model.convert.logits import opposed
from h2t2_tools.model.convert.quiet import quiet
from h2t2_tools.model.convert.readers import open_source
from h2t2_tools.model.convert.scaling import scaled
from h2t2_tools.model.convert.tensor_bounds import bounds
from h2t2_tools.model.exact import open_exact
from h2t2_tools.model.tflite import Graph, Operator, Tensor, read
from h2t2_tools.model.tflite_edit import normalise, with_constants
from h2t2_tools.model.tflite_write import write

pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")

ENDS = "logistic", "softmax"
POINTS = 0.03  # of accuracy that int8 may lose


def last_layer(weights, bias, end):
    """The last layer of a classifier of two classes: one logit, or the two of a softmax."""
    if end == "logistic":
        return weights, bias, end
    return np.concatenate([-weights / 2, weights / 2]), np.concatenate([-bias / 2, bias / 2]), end


@pytest.fixture(scope="module")
def tumours():
    """(samples scaled, labels, layers of a perceptron for them), the training samples first."""
    x, y = load_breast_cancer(return_X_y=True)
    scaler = StandardScaler().fit(x[:350])
    x = scaler.transform(x)
    with quiet():
        model = MLPClassifier((12,), max_iter=80, random_state=0).fit(x[:350], y[:350])
    layers = [(w.T, b) for w, b in zip(model.coefs_, model.intercepts_)]
    return x, y, layers, scaler


def logits_of(layers, x):
    (w, b), (w2, b2) = layers
    return (np.maximum(x @ w.T + b, 0) @ w2.T + b2)[:, 0]


def perceptron(layers, end):
    (w, b), (w2, b2) = layers
    return _tflite([(w, b, "relu"), last_layer(w2, b2, end)])


@pytest.fixture(scope="module")
def digits():
    """(pictures (n, 8, 8, 1), whether the digit is 5 or more, filters, the last layer) of a CNN with random filters."""
    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).reshape(-1, 8, 8, 1).astype(np.float32), (y >= 5).astype(int)
    filters = np.random.default_rng(2).normal(size=(16, 3, 3, 1)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x[..., 0], (3, 3), axis=(1, 2))
    maps = np.maximum(np.einsum("nhwij,cij->nhwc", windows, filters[..., 0]), 0)
    pooled = maps.reshape(-1, 3, 2, 3, 2, 16).mean((2, 4)).reshape(len(x), -1)
    with quiet():
        model = LogisticRegression(max_iter=300).fit(pooled[:1000], y[:1000])
    return x, y, filters, (model.coef_, model.intercept_)


def cnn(filters, last, end):
    weights, bias, _ = last_layer(*last, end)
    count = len(bias)
    shapes = [(1, 8, 8, 1), filters.shape, (16,), (1, 6, 6, 16), (1, 3, 3, 16), (2,), (1, 144), weights.shape, (count,)]
    data = {1: filters, 2: np.zeros(16), 5: np.array([1, 144]), 7: weights, 8: bias}
    shapes += [(1, count), (1, count)]
    tensors = []
    for n, shape in enumerate(shapes):
        kind = "int32" if n == 5 else "float32"
        tensors.append(Tensor(n, f"t{n}", shape, kind, np.asarray(data[n], kind) if n in data else None))
    window = {"padding": 1, "stride_w": 1, "stride_h": 1, "fused": 1, "dilation_w": 1, "dilation_h": 1}
    pooling = {"padding": 1, "stride_w": 2, "stride_h": 2, "filter_w": 2, "filter_h": 2, "fused": 0}
    operators = [
        Operator("CONV_2D", 1, (0, 1, 2), (3,), window),
        Operator("AVERAGE_POOL_2D", 1, (3,), (4,), pooling),
        Operator("RESHAPE", 1, (4, 5), (6,), {}),
        Operator("FULLY_CONNECTED", 1, (6, 7, 8), (9,), {"fused": 0}),
        Operator(end.upper(), 1, (9,), (10,), {"beta": 1.0} if end == "softmax" else {}),
    ]
    return write(Graph("cnn", 0, tuple(tensors), tuple(operators), (0,), (10,)))


def convert(folder, content, fit, x, y, capsys):
    """The report of a conversion that succeeds."""
    (folder / "model.tflite").write_bytes(content)
    np.save(folder / "fit.npy", fit.astype(np.float32))
    np.savez(folder / "test.npz", x=x.astype(np.float32), y=y)
    arguments = [folder / "model.tflite", "--calibration", folder / "fit.npy", "--test", folder / "test.npz"]
    code = main(["convert", *map(str, arguments), "--out", str(folder / "out"), "--json", "-"])
    output, error = capsys.readouterr()
    assert code == 0, error
    return json.loads(output)


def assert_sound(report):
    assert report["float"]["accuracy"] > 0.85
    assert report["int8"]["accuracy"] > report["float"]["accuracy"] - POINTS


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("kind", ["perceptron", "linear"])
def test_a_dense_model_calibrated_on_one_class(kind, label, end, tumours, tmp_path, capsys):
    """On samples that the model is sure of, as rare events are left out of calibration data."""
    x, y, layers, _ = tumours
    if kind == "linear":
        model = LogisticRegression().fit(x[:350], y[:350])
        logits, content = model.decision_function(x[:350]), _tflite([last_layer(model.coef_, model.intercept_, end)])
    else:
        logits, content = logits_of(layers, x[:350]), perceptron(layers, end)
    fit = x[:350][(logits * (1 if label else -1)) > 1]
    assert_sound(convert(tmp_path, content, fit, x[350:], y[350:], capsys))


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("label", [0, 1])
def test_a_cnn_calibrated_on_one_class(label, end, digits, tmp_path, capsys):
    x, y, filters, last = digits
    assert_sound(convert(tmp_path, cnn(filters, last, end), x[:1000][y[:1000] == label], x[1000:], y[1000:], capsys))


@pytest.mark.slow
def test_calibration_samples_of_one_decision_are_a_warning(tumours, tmp_path, capsys):
    x, y, layers, _ = tumours
    content = perceptron(layers, "logistic")
    negative = x[:350][logits_of(layers, x[:350]) < 0]
    report = convert(tmp_path, content, negative, x[350:], y[350:], capsys)
    assert any(f"all {len(negative)} calibration samples" in warning for warning in report["warnings"])
    report = convert(tmp_path, content, x[:350], x[350:], y[350:], capsys)
    assert not any("calibration samples" in warning for warning in report["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("factor", [1e3, 1e9])
@pytest.mark.parametrize("kind", ["perceptron", "cnn"])
def test_an_outlier_in_the_calibration_data(kind, factor, end, tumours, digits, tmp_path, capsys):
    if kind == "perceptron":
        x, y, layers, _ = tumours
        content, fit = perceptron(layers, end), x[:350].copy()
    else:
        x, y, filters, last = digits
        content, fit = cnn(filters, last, end), x[:350].copy()
    fit[17] *= factor
    report = convert(tmp_path, content, fit, x[-200:], y[-200:], capsys)
    assert_sound(report)
    assert any("sample 17" in warning for warning in report["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("constant", [None, 5000.0])
def test_an_unscaled_perceptron_gets_the_scale_of_its_numbers(constant, end, tumours, tmp_path, capsys):
    """Its first layer holds the scaler; constant: a number that is always the same."""
    x, y, ((w, b), last), scaler = tumours
    x = scaler.inverse_transform(x)
    w = w / scaler.scale_
    b = b - w @ scaler.mean_
    if constant:
        x = np.column_stack([x, np.full(len(x), constant)])
        w = np.column_stack([w, np.full(len(w), 0.3)])
        b = b - 0.3 * constant
    report = convert(tmp_path, perceptron([(w, b), last], end), x[:350], x[350:], y[350:], capsys)
    assert_sound(report)
    assert (
        len(report["input"]["factor"]) >= x.shape[1] and abs(report["int8"]["accuracy"] - report["float"]["accuracy"]) < 0.015
    )


@pytest.mark.slow
def test_a_number_that_weighs_much_has_several_inputs(tmp_path):
    """The weights of a regression on raw numbers are of both signs and nearly cancel: one weighs as much as the other 29.

    Each of the inputs is a part of a step beside the last, and has a part of the weight.
    """
    case = pipeline("LogisticRegression of raw numbers", tmp_path)
    fit, x = (samples[0].astype(np.float32) for samples in (case.fit, case.test))
    source = scaled(open_source(case.path), fit)
    counts = np.bincount(source.encoding.columns)
    assert counts.max() > 8 and np.median(counts) == 1
    assert from_tflite._all_scores(source.content, source.prepared(x))[:, -1] == pytest.approx(case.scores, abs=1e-4)
    (tmp_path / "m.tflite").write_bytes(source.quantise(source.prepared(fit)))
    model = open_exact(tmp_path / "m.tflite")
    row = compared(case.scores, np.array([model.scores(model.quantise(r))[-1] for r in source.prepared(x)]), case.test[1])
    assert row["beyond"] == 0 and row["changed"] <= 0.005 and row["mean"] < 0.004
    np.save(tmp_path / "fit.npy", fit)
    assert main(["convert", str(case.path), "--calibration", str(tmp_path / "fit.npy"), "--out", str(tmp_path / "out")]) == 0
    assert "each input takes a column of the sample" in (tmp_path / "out/report.md").read_text()  # it named NaN and categories


def by_channel(content, factor):
    """The CNN of cnn() for pictures of three channels, of which each stands for the picture's number times a factor."""
    graph = read(content)
    filters = graph.tensors[1].data
    spread = np.concatenate([filters / 3 / f for f in factor], axis=3).astype(np.float32)
    tensors = [replace(t, shape=(1, 8, 8, 3)) if t.index == 0 else t for t in graph.tensors]
    tensors[1] = replace(tensors[1], shape=spread.shape, data=spread)
    return write(replace(graph, tensors=tuple(tensors)))


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["unscaled", "constant"])
def test_a_cnn_of_channels_of_unlike_ranges_or_a_constant_one(kind, end, digits, tmp_path, capsys):
    """A channel of thousands beside one of thousandths; a channel that is always 5000."""
    x, y, filters, last = digits
    factor = (1.0, 4000.0, 0.003) if kind == "unscaled" else (1.0, 1.0, 1.0)
    content, pictures = by_channel(cnn(filters, last, end), factor), x * np.array(factor, np.float32)
    if kind == "constant":
        graph = read(content)
        spread = graph.tensors[1].data.copy()
        spread[..., 2] = 1e-4
        bias = graph.tensors[2].data - 9 * 1e-4 * 5000
        spread[..., :2] *= 1.5
        content = with_constants(content, {1: (spread, np.zeros(0)), 2: (bias.astype(np.float32), np.zeros(0))})
        pictures[..., 2] = 5000
    assert_sound(convert(tmp_path, content, pictures[:600], pictures[1000:], y[1000:], capsys))


@pytest.mark.parametrize("name", ["grouped", "mobile", "select"])
def test_a_network_of_pytorch_gets_the_scale_of_its_channels(name, tmp_path):
    """Channels come first, and zeros may stand around a sample: what the first convolution takes has like ranges."""
    case = network(name, 40)
    graph = read(open_source(case.path).content)
    first = next(o for o in graph.operators if o.name == "CONV_2D")
    weights = graph.tensors[first.inputs[1]]
    factor = 10.0 ** np.linspace(-3, 3, weights.shape[-1])
    unscaled = with_constants(
        open_source(case.path).content, {weights.index: ((weights.data / factor).astype(np.float32), np.zeros(0))}
    )
    x = (case.test[0] * factor.reshape(-1, *[1] * (case.test[0].ndim - 2))).astype(np.float32)
    source = scaled(from_tflite.from_bytes("network", tmp_path, unscaled, len(unscaled)), x)
    prepared = source.prepared(x)
    spread = prepared.swapaxes(0, 1).reshape(prepared.shape[1], -1).std(1)
    assert source.factor.shape == x.shape[1:] and spread.max() < 2 * spread.min()
    assert from_tflite._all_scores(source.content, prepared)[:, -1] == pytest.approx(case.scores, abs=1e-4)


def test_what_a_function_does_not_tell_apart_takes_no_steps_of_int8():
    """HARD_SWISH is 0 below -3, a logistic 1 above 8, two logits are opposites. Without, 1.7 % were beyond .05."""
    cases = ("mobile", "HARD_SWISH", -3.1, np.inf), ("squeeze", "LOGISTIC", -8.1, 8.1)
    for name, function, low, high in cases:
        case = network(name, 40)
        graph = read(open_source(case.path).quantise(case.fit[0]))
        scale, zero = next(graph.tensors[o.inputs[0]].quantisation for o in graph.operators if o.name == function)
        assert low <= scale * (-128 - zero) and scale * (127 - zero) <= high
    logits = next(graph.tensors[o.inputs[0]].quantisation for o in graph.operators if o.name == "SOFTMAX")
    assert logits[0] <= 4.1 / 127 and abs(logits[1]) <= 1
    x, y = draw("squeeze", 800, 77)
    source = open_source(case.path)
    row = compared(source.scores(x)[:, -1], from_tflite._all_scores(source.quantise(case.fit[0]), x)[:, -1], y)
    assert row["beyond"] <= 0.01 and row["changed"] <= 0.01


@pytest.mark.parametrize("name", ["squeeze", "attention", "lstm"])
def test_logits_without_what_they_have_in_common_give_the_same_scores(name):
    case = network(name, 40)
    content = normalise(open_source(case.path).content)
    assert from_tflite._all_scores(opposed(content), case.test[0])[:, -1] == pytest.approx(case.scores, abs=1e-5)


def test_a_tensor_is_bounded_only_where_all_its_readers_are():
    """x times its logistic needs no number far below 0; what an ELU's RELU and SUB read is whole."""
    graph = read(open_source(network("activations", 10).path).content)
    found = {}
    for tensor in graph.tensors:
        readers = frozenset(o.name for o in graph.operators if tensor.index in o.inputs)
        found.setdefault(readers, bounds(graph, tensor.index))
    assert found[frozenset(["LOGISTIC", "MUL"])] == (-8, np.inf) and found[frozenset(["GELU"])] == (-4, np.inf)
    assert found[frozenset(["RELU", "SUB"])] == found[frozenset(["RELU", "ABS", "MUL"])] == (-np.inf, np.inf)


@pytest.mark.slow
def test_ranges_span_the_samples_whose_scores_are_in_doubt():
    """Sure samples reach ten times as far in the network of six activations. With theirs, 1.6 % were beyond .05."""
    x, y = draw("activations", 1500, 77)
    case = network("activations", 10)
    source = open_source(case.path)
    row = compared(source.scores(x)[:, -1], from_tflite._all_scores(source.quantise(case.fit[0]), x)[:, -1], y)
    assert row["beyond"] <= 0.012 and row["mean"] <= 0.0042 and row["changed"] <= 0.005
