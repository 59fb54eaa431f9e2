"""The whole way as a user goes it, outside the repository: two trained models, a pair, a project, an app, an emulated board."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import replayed
from support import need

from h2t2_tools.boards import run_emulated
from h2t2_tools.fleet import broker, config

keras = pytest.importorskip("keras", reason="the extra train is not installed: pip install -e .[train]")
pytestmark = pytest.mark.timeout(1200)
HARD = (1, 3, 5, 8, 9)
ACTUATOR = '''

def act(decision):
    """A door in place of a file of decisions: what it was told, a line each."""
    with open("door.txt", "a") as door:
        door.write("%s\\n" % ("open" if decision.label else "shut"))
    note(decision)
'''


def h2t2(*words, folder):
    """Output of a command, run as a user runs it there."""
    command = [sys.executable, "-m", "h2t2_tools", *map(str, words)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}, timeout=600)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


@pytest.fixture(scope="module")
def trained_pair(tmp_path_factory):
    """A folder with mypair, and the accuracy of the local model as it was trained, on the test samples."""
    import joblib
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folder = tmp_path_factory.mktemp("user")
    keras.utils.set_random_seed(3)
    data = load_digits()
    keep = np.isin(data.target, HARD)
    x, y = data.images[keep].astype(np.float32)[..., None], (data.target[keep] == 8).astype(int)
    x, xt, y, yt = train_test_split(x, y, test_size=0.4, random_state=7, stratify=y)
    few = [0, *range(18, 46)]
    small = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    small.fit(x.reshape(len(x), -1)[:, few], y)
    joblib.dump(small, folder / "small.joblib")
    layers = [keras.Input((8, 8, 1)), keras.layers.Rescaling(1 / 16), keras.layers.Conv2D(12, 3, activation="relu")]
    big = keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(2, activation="softmax")])
    big.compile(optimizer=keras.optimizers.Adam(0.003), loss="sparse_categorical_crossentropy")
    big.fit(x, y, epochs=20, batch_size=32, verbose=0)
    big.save(folder / "big.keras")
    flat, flat_t = x.reshape(len(x), -1), xt.reshape(len(xt), -1)
    np.savez(folder / "train.npz", x=flat)
    np.savez(folder / "test.npz", x=flat_t, y=yt)
    columns = ["--ldl-columns", *few]
    words = ["pair", "small.joblib", "big.keras", "--test", "test.npz", "--calibration", "train.npz", *columns]
    report = json.loads(h2t2(*words, "--beta", 0.1, "--out", "mypair", "--json", "-", folder=folder))
    exact = (np.argmax(big.predict(xt, verbose=0), 1) == yt).mean()
    assert report["rdl"]["float"]["accuracy"] == pytest.approx(exact) and exact > 0.93
    assert abs(report["rdl"]["int8"]["accuracy"] - exact) < 0.02
    trained = small.score(flat_t[:, few], yt)
    assert report["ldl"]["float"]["accuracy"] == pytest.approx(trained)
    return folder, trained, report


@pytest.mark.parametrize("board", ["unix", "arm32"])
def test_from_two_trained_models_to_a_board_that_acts(trained_pair, board):
    need(run_emulated.EMULATED[board])
    if broker.mosquitto() is None and find_spec("amqtt") is None:
        pytest.skip("no broker beside TensorFlow; run: sudo apt-get install mosquitto")
    folder, trained, report = trained_pair
    project = folder / f"door-{board}"
    assert "next, run it on an emulated board:\n  h2t2 run" in h2t2("new", project.name, "--from", "mypair", folder=folder)
    app = (project / "app.py").read_text().replace("def act(", "def note(")
    app = replayed.patient(app) + ACTUATOR
    (project / "app.py").write_text(app)
    out = h2t2("run", project.name, "--board", board, "--fresh", folder=folder)
    device = project / f"run-{board}"
    given = config.load(project / "h2t2.toml")
    expected, own = replayed.decisions(folder / "mypair", (project / "samples.csv").read_text(), given.arguments(), given.event)
    assert replayed.printed_decisions(out) == [line[:2] for line in expected] and len(expected) == report["samples"]
    assert replayed.written(device / "decisions.csv") == expected
    assert (device / "door.txt").read_text().split() == ["open" if label else "shut" for label, *_ in expected]
    y = np.load(folder / "test.npz")["y"]
    assert np.mean(own == y) == pytest.approx(report["ldl"]["int8"]["accuracy"], abs=0.01)
    assert abs(np.mean(own == y) - trained) < 0.02
    assert Path(device / "h2t2.log").stat().st_size > 0
