"""`h2t2 convert` of Keras files and SavedModel folders, where the extra `train` (TensorFlow) is installed."""

import json

import numpy as np
import pytest

from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs

tf = pytest.importorskip("tensorflow", reason="the extra train is not installed: make train-env")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with one small model saved in three ways, and its data."""
    folder = tmp_path_factory.mktemp("keras")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 8, 8, 1)).astype(np.float32)
    y = (x[:, :4].mean((1, 2, 3)) > x[:, 4:].mean((1, 2, 3))).astype(int)
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x, y, epochs=30, verbose=0)
    model.save(folder / "m.keras")
    model.save(folder / "m.h5")
    model.export(folder / "saved")
    np.savez(folder / "data.npz", x=x, y=y)
    return folder


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "saved"])
def test_every_way_of_saving(name, trained, tmp_path, capsys):
    command = [
        "convert",
        str(trained / name),
        "--calibration",
        str(trained / "data.npz"),
        "--out",
        str(tmp_path),
        "--json",
        "-",
    ]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kind"] == ("SavedModel" if name == "saved" else "Keras model")
    assert report["float"]["accuracy"] > 0.8 and abs(report["int8"]["accuracy"] - report["float"]["accuracy"]) < 0.03
    assert report["worst_score_difference"] < 0.1 and report["bytes"]["arena_bytes"] < 400


@pytest.mark.parametrize("name", ["m.keras", "saved"])
def test_an_outlier_in_the_calibration_data_takes_no_steps(name, trained, tmp_path, capsys):
    with np.load(trained / "data.npz") as data:
        x = data["x"].copy()
    x[17] *= 1000
    np.save(tmp_path / "fit.npy", x)
    samples = "--calibration", str(tmp_path / "fit.npy"), "--test", str(trained / "data.npz")
    assert main(["convert", str(trained / name), *samples, "--out", str(tmp_path / "out"), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert abs(report["int8"]["accuracy"] - report["float"]["accuracy"]) < 0.03 and report["worst_score_difference"] < 0.1
    assert any("sample 17" in warning for warning in report["warnings"])


def test_an_input_of_no_fixed_size_is_refused(trained, tmp_path, capsys):
    inputs = tf.keras.Input((None, None, 1))
    pooled = tf.keras.layers.GlobalAveragePooling2D()(tf.keras.layers.Conv2D(2, 3)(inputs))
    tf.keras.Model(inputs, tf.keras.layers.Softmax()(pooled)).save(tmp_path / "open.keras")
    assert main(["convert", str(tmp_path / "open.keras"), "--calibration", str(trained / "data.npz")]) == 2
    assert "fixed sizes" in capsys.readouterr().err


def test_a_file_that_is_no_model(trained, tmp_path, capsys):
    (tmp_path / "bad.keras").write_bytes(b"no")
    assert main(["convert", str(tmp_path / "bad.keras"), "--calibration", str(trained / "data.npz")]) == 2
    err = capsys.readouterr().err
    assert "Keras cannot load it" in err and "Traceback" not in err


@pytest.mark.parametrize("kind", ["sequential", "functional"])
def test_scaling_layers_stay_outside_the_int8_model(kind, tmp_path, capsys):
    """Numbers of unlike ranges behind Normalization and Rescaling: as good as the float model, and a board can run it."""
    rng = np.random.default_rng(5)
    x = (rng.normal(0, 1, (400, 4)) * [1, 1000, 0.01, 50] + [0, 5000, 0, -200]).astype(np.float32)
    y = (x[:, 0] + x[:, 2] * 100 + (x[:, 1] - 5000) / 700 > 0).astype(int)
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    scaler = layers.Normalization()
    scaler.adapt(x)
    body = [scaler, layers.Rescaling(0.5, 0.1), layers.Dense(8, activation="relu"), layers.Dense(2, activation="softmax")]
    if kind == "sequential":
        model = tf.keras.Sequential([tf.keras.Input((4,)), *body])
    else:
        at = start = tf.keras.Input((4,))
        for layer in body:
            at = layer(at)
        model = tf.keras.Model(start, at)
    model.compile(tf.keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy")
    model.fit(x, y, epochs=30, verbose=0)
    model.save(tmp_path / "m.keras")
    np.savez(tmp_path / "data.npz", x=x, y=y)
    words = ["convert", str(tmp_path / "m.keras"), "--calibration", str(tmp_path / "data.npz"), "--out", str(tmp_path / "out")]
    assert main([*words, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    exact = (np.argmax(model.predict(x, verbose=0), 1) == y).mean()
    assert report["float"]["accuracy"] == pytest.approx(exact) and exact > 0.9
    assert abs(report["int8"]["accuracy"] - exact) < 0.02 and not report["not_for_a_board"]
    assert report["input"]["factor"] == pytest.approx((0.5 / x.std(0)).tolist(), rel=1e-3)
    assert report["input"]["offset"] == pytest.approx((0.1 - 0.5 * x.mean(0) / x.std(0)).tolist(), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("kind", ["sequential", "functional", "no bias"])
def test_numbers_of_unlike_ranges_get_factor_and_offset_from_the_calibration_data(kind, tmp_path, capsys):
    """A dense layer reads the raw numbers: its weights take the opposite of what stands before the int8 model."""
    rng = np.random.default_rng(5)
    z = rng.normal(0, 1, (400, 4))
    spread, middle = np.array([1, 1000, 0.01, 50]), np.array([0, 5000, 0, -200])
    x, y = (z * spread + middle).astype(np.float32), (z.sum(1) > 0).astype(int)
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    bias = kind != "no bias"
    first, last = layers.Dense(8, activation="relu", use_bias=bias), layers.Dense(2, activation="softmax")
    if kind == "functional":
        start = tf.keras.Input((4,))
        hidden = first(start)
        model = tf.keras.Model(start, last(layers.concatenate([hidden, layers.Dropout(0.1)(hidden)])))
    else:
        model = tf.keras.Sequential([tf.keras.Input((4,)), first, last])
    model.compile(tf.keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy")
    if kind != "no bias":  # trained on scaled numbers, then as if on raw ones
        model.fit(z, y, epochs=20, verbose=0)
        weights, offset = first.get_weights()
        first.set_weights([weights / spread[:, None], offset - (middle / spread) @ weights])
    else:
        first.set_weights([np.outer(1 / spread, rng.normal(1, 0.3, 8) * np.where(np.arange(8) % 2, 1, -1)).astype(np.float32)])
        x -= middle.astype(np.float32)
        last.set_weights([np.outer(np.where(np.arange(8) % 2, 1, -1), [-0.4, 0.4]), np.zeros(2)])
    model.save(tmp_path / "m.keras")
    np.savez(tmp_path / "data.npz", x=x, y=y)
    words = ["convert", str(tmp_path / "m.keras"), "--calibration", str(tmp_path / "data.npz"), "--out", str(tmp_path / "out")]
    assert main([*words, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["float"]["accuracy"] > 0.93 and not report["not_for_a_board"]
    assert abs(report["int8"]["accuracy"] - report["float"]["accuracy"]) < 0.02 and report["worst_score_difference"] < 0.15
    assert report["input"]["factor"] == pytest.approx((1 / x.std(0)).tolist(), rel=0.05)


def test_a_model_that_resizes_runs_on_a_board(tmp_path, capsys):
    layers = tf.keras.layers
    body = [layers.Resizing(4, 4), layers.Flatten(), layers.Dense(2, activation="softmax")]
    tf.keras.Sequential([tf.keras.Input((8, 8, 1)), *body]).save(tmp_path / "m.keras")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(3).random((60, 8, 8, 1), np.float32), y=np.arange(60) % 2)
    words = ["convert", str(tmp_path / "m.keras"), "--calibration", str(tmp_path / "data.npz"), "--out", str(tmp_path / "out")]
    assert main([*words, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert not report["not_for_a_board"] and (tmp_path / "out/m.h2m").exists()
    assert main(["ldl-check", str(tmp_path / "out/m_int8.tflite"), "--samples", "20", "--layers", "--json", "-"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["differ"] == 0 and checked["bytes"] > 0


def test_an_lstm_stays_one_and_runs_on_a_board(tmp_path, capsys):
    layers = tf.keras.layers
    body = [layers.Conv1D(4, 3, padding="causal"), layers.LSTM(6), layers.Dense(2, activation="softmax")]
    tf.keras.Sequential([tf.keras.Input((10, 3)), *body]).save(tmp_path / "m.keras")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(3).random((60, 10, 3), np.float32), y=np.arange(60) % 2)
    words = ["convert", str(tmp_path / "m.keras"), "--calibration", str(tmp_path / "data.npz"), "--out", str(tmp_path / "out")]
    assert main([*words, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert not report["not_for_a_board"] and (tmp_path / "out/m.h2m").exists()
    assert main(["inspect", str(tmp_path / "out/m_int8.tflite"), "--json", "-"]) == 0
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in {row["name"] for row in json.loads(capsys.readouterr().out)["operators"]}
    assert main(["ldl-check", str(tmp_path / "out/m_int8.tflite"), "--samples", "20", "--layers", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["differ"] == 0


@pytest.mark.parametrize("layer", ["GRU", "LSTM"])
def test_what_would_stay_a_loop_is_refused(layer, tmp_path, capsys):
    """TensorFlow's calibration of a loop ends the process: it is refused before, with what to do instead."""
    layers = tf.keras.layers
    made = layers.GRU(4) if layer == "GRU" else layers.LSTM(4, go_backwards=True)
    tf.keras.Sequential([tf.keras.Input((6, 3)), made, layers.Dense(2, activation="softmax")]).save(tmp_path / "m.keras")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(3).random((20, 6, 3), np.float32), y=np.arange(20) % 2)
    words = ["convert", str(tmp_path / "m.keras"), "--calibration", str(tmp_path / "data.npz"), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert f"({layer}) becomes a loop" in err and "unroll=True" in err and "Traceback" not in err


@pytest.mark.parametrize("outputs", [1, 2])
def test_either_class_may_be_the_event_of_a_pair(outputs, tmp_path):
    """One output scores the second class, as Keras numbers them: in alphabetical order."""
    tf.keras.utils.set_random_seed(1)
    x = np.random.default_rng(1).random((300, 4)).astype(np.float32)
    is_ok = x.mean(1) > 0.5
    layers = [tf.keras.Input((4,)), tf.keras.layers.Dense(outputs, activation="sigmoid" if outputs == 1 else "softmax")]
    model = tf.keras.Sequential(layers)
    loss = "binary_crossentropy" if outputs == 1 else "sparse_categorical_crossentropy"
    model.compile(tf.keras.optimizers.Adam(0.05), loss)
    model.fit(x, is_ok.astype(int), epochs=60, verbose=0)
    model.save(tmp_path / "m.keras")
    y = np.where(is_ok, "ok", "broken")
    np.savez(tmp_path / "test.npz", x=x, y=y)
    for event in ("broken", "ok"):
        command = ["pair", tmp_path / "m.keras", tmp_path / "m.keras", "--test", tmp_path / "test.npz", "--event", event]
        assert main([str(word) for word in [*command, "--out", tmp_path / event]]) == 0
        pair = pairs.load(str(tmp_path / event))
        assert pair.info.event == event and (pair.y == (y == event)).all()
        metrics = json.loads((tmp_path / event / "pair.json").read_text())["metrics"]
        assert metrics["ldl"]["int8"]["accuracy"] > 0.8 and metrics["rdl"]["int8"]["accuracy"] > 0.8
