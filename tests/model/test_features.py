"""`h2t2 pair --features`: a second output of the local model, from which a head on the device learns."""

import json

import joblib
import numpy as np
import pytest
import replayed
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.head_sample import HeadSample
from h2t2_tools.boards import project
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, policies
from h2t2_tools.model.exact import open_exact
from h2t2_tools.proof import run

pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")
FEATURES = 6
SMALL = {
    "network": make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=800, random_state=1)),
    "linear": make_pipeline(StandardScaler(), LogisticRegression()),
}


@pytest.fixture(scope="module", params=SMALL)
def pair(request, tmp_path_factory):
    """A pair of digits ("is it an 8") whose local model has seen 100 of them and gives features."""
    folder = tmp_path_factory.mktemp(request.param)
    x, y = load_digits(return_X_y=True)
    y = (y == 8).astype(int)
    joblib.dump(SMALL[request.param].fit(x[:100], y[:100]), folder / "small.joblib")
    joblib.dump(
        make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=800, random_state=1)).fit(x, y), folder / "big.joblib"
    )
    np.savez(folder / "train.npz", x=x[:200])
    np.savez(folder / "test.npz", x=x[200:600], y=y[200:600])
    words = ["pair", folder / "small.joblib", folder / "big.joblib", "--test", folder / "test.npz", "--beta", "0.15"]
    words += ["--calibration", folder / "train.npz", "--features", FEATURES, "--out", folder / "mypair"]
    assert main([*map(str, words)]) == 0
    return pairs.load(str(folder / "mypair"))


def inputs(pair, model, rows):
    scale, zero_point = model.input_quantisation()
    prepared = pair.info.prepared["ldl"].apply(rows)
    return np.clip(np.round(prepared / scale) + zero_point, -128, 127).astype(np.int8)


@pytest.mark.slow
def test_the_features_are_whitened_and_the_same_bytes_everywhere(pair):
    assert pair.info.features == FEATURES
    bundle = Int8Model((pair.folder / "ldl.h2m").read_bytes(), 0)
    models = bundle, open_exact(pair.ldl), TFLiteModel(str(pair.ldl))
    rows, scores = [], []
    calibration = load_digits().data[:200].astype(np.float32)
    for x in inputs(pair, bundle, calibration):
        scores.append([model.run(x.reshape(model.input_shape) if model is models[2] else x) for model in models])
        rows.append([[model.feature(n) for n in range(FEATURES)] for model in models])
    assert all(model.features == FEATURES for model in models)
    rows = np.array(rows)
    assert np.array_equal(rows[:, 0], rows[:, 1]) and np.abs(rows[:, 0] - rows[:, 2]).max() <= 4  # LiteRT may differ by a step
    assert np.ptp(np.array(scores)[:, :2], 1).max() == 0 and np.ptp(np.array(scores), 1).max() <= 4
    values = rows[:, 0] / 32
    covariance = np.cov(values, rowvar=False)
    assert np.abs(values.mean(0)).max() < 0.05 and np.abs(covariance - np.eye(FEATURES)).max() < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    "board", ["unix", pytest.param("arm32", marks=pytest.mark.whole), pytest.param("pico", marks=pytest.mark.whole)]
)
def test_a_node_with_a_head_decides_as_the_host_does(pair, board, tmp_path, capsys):
    emulator = run.EMULATED[board]
    if emulator.missing():
        pytest.skip(emulator.missing())
    porch = tmp_path / "porch"
    assert main(["new", str(porch), "--from", str(pair.folder), "--board", board]) == 0
    capsys.readouterr()
    assert main(["run", str(porch), "--board", board, "--json", str(tmp_path / "report.json")]) == 0
    lines = replayed.printed_decisions(capsys.readouterr().out)
    configuration = project.load(porch, board).contents.config
    arguments = configuration.arguments()
    assert arguments["features"] == FEATURES
    csv = (porch / "samples.csv").read_text()
    expected, _ = replayed.decisions(pair.folder, csv, arguments, configuration.event, [source for _, source in lines])
    assert lines == [row[:2] for row in expected] and len(lines) == 400
    report = json.loads((tmp_path / "report.json").read_text())
    assert 0 < report["summary"]["head_share"] <= 32768 and not report["trouble"]


@pytest.mark.slow
def test_features_off_and_policies_without_a_head(pair, tmp_path):
    porch = tmp_path / "porch"
    assert main(["new", str(porch), "--from", str(pair.folder)]) == 0
    text = (porch / "h2t2.toml").read_text()

    def policy(lines):
        (porch / "h2t2.toml").write_text(lines + text)
        return policies.core.make("adaptive", project.load(porch, "unix").contents.config.arguments())

    assert isinstance(policy(""), AdaptiveHead)
    assert type(policy("features = 0\n")) is Adaptive
    assert "features" not in policy("miss_rate = 0.02\n").__dict__


class Model:
    """A local model with two features."""

    features, input_size = 2, 1

    def run(self, x):
        return x

    def level(self, q):
        return q + 128

    def feature(self, n):
        return 10 * n


def test_an_app_adds_numbers_to_the_features():
    sample = HeadSample(Model(), 4)
    with pytest.raises(ValueError, match="returned 0 numbers, want 2"):
        sample.run(5)
    sample.context = lambda: (300, -1)
    assert sample.run(5).tolist() == [133, 0, 10, 127, -1]
    with pytest.raises(ValueError, match="a model of 2 features"):
        HeadSample(Model(), 1)


def test_another_local_model_gets_another_head():
    policy = AdaptiveHead(2)
    policy.adopt(5)
    heads = policy.forecaster.heads
    for n in range(200):
        if policy.decide([n % 256, 20, -20]) < 0:
            policy.learn(policy.ticket, n & 1)
    labels = sum(policy.forecaster.labels)
    assert heads.taught and labels
    policy.adopt(5)
    assert heads.taught
    policy.adopt(6)
    assert not heads.taught and not any(heads.weights) and sum(policy.forecaster.labels) == labels
