"""Windows of measurements: features and spectra against NumPy, integers equal on every interpreter, and a pair made of them."""

import json
import subprocess
import sys

import numpy as np
import pytest
import replayed
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT

from h2t2.node.window import FEATURES, Window, features, spectrum, square_root
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet import config
from h2t2_tools.proof import run

SIZES = (2, 4, 16, 64, 256)


@given(st.integers(0, 2**40))
def test_the_square_root_of_an_integer(x):
    assert square_root(x) ** 2 <= x < (square_root(x) + 1) ** 2


@pytest.mark.parametrize("size", SIZES)
def test_a_spectrum_is_numpys(size):
    rng = np.random.default_rng(size)
    x = rng.normal(0, 5000, size) + 9000 * np.sin(np.arange(size))
    exact = np.abs(np.fft.rfft(x))[1:] / size
    assert np.abs(spectrum(x.tolist()) - exact).max() < 1e-4 * np.abs(x).max()
    assert np.abs(spectrum([int(v) for v in x]) - exact).max() < 6  # halved and rounded down at every stage
    assert max(spectrum([32767, -32768] * (size // 2))) <= 32768


@given(st.lists(st.integers(-32768, 32767), min_size=1, max_size=40), st.booleans())
def test_features_are_numpys(values, whole):
    values = values if whole else [v / 7 for v in values]
    got = features(values, FEATURES[:-1])
    exact = [*values, np.mean(values), np.std(values), min(values), max(values)]
    assert np.abs(np.array(got) - exact).max() < (1 if whole else 1e-4)
    assert all(isinstance(x, int) for x in got) == whole


def test_a_window_slides():
    window = Window(4, 2, 2, ("mean", "max"))
    given = [window((n, 10 * n)) for n in range(9)]
    assert given == [None, None, None, [2, 3, 15, 30], None, [4, 5, 35, 50], None, [6, 7, 55, 70], None]
    one = Window(1, 1, 1, ("values",))
    assert one(5) == [5] == one([5])


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((4, 1, 1, ("median",)), "'median' is not one of values, mean"),
        ((0, 1, 1, ("mean",)), "want 1 or more"),
        ((12, 1, 1, ("fft",)), "a spectrum of 12 measurements"),
        ((512, 1, 1, ("fft",)), "a spectrum of 512"),
    ],
)
def test_what_is_no_window_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Window(*arguments)
    with pytest.raises(ValueError, match="a measurement of 3 numbers, want 2"):
        Window(4, 1, 2, ("mean",))((1, 2, 3))


SAME = """import json
from h2t2.node.window import FEATURES, features
rows = json.loads('ROWS')
print(json.dumps([features(row, FEATURES) for row in rows]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("emulator", [catalogue.UNIX, catalogue.ARM32], ids=lambda emulator: emulator.name)
def test_integers_are_the_same_on_every_interpreter_and_floats_nearly(emulator, tmp_path):
    if emulator.missing():
        pytest.skip(emulator.missing())
    rng = np.random.default_rng(7)
    rows = [rng.integers(-32768, 32768, n).tolist() for n in SIZES]
    real = [(np.array(row) / 77).tolist() for row in rows]
    (tmp_path / "same.py").write_text(SAME.replace("ROWS", json.dumps(rows + real)))
    there = json.loads(emulator.run(tmp_path / "same.py", [], ROOT / "firmware"))
    assert there[: len(rows)] == [features(row, FEATURES) for row in rows]
    for got, row in zip(there[len(rows) :], real):
        assert np.abs(np.array(got) - features(row, FEATURES)).max() < 1e-4 * 500


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """A pair that hears whether a machine knocks, of the spectrum of 32 measurements of two channels, in integers."""
    joblib = pytest.importorskip("joblib")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folder = tmp_path_factory.mktemp("machines")
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 500)
    knock = np.sin(np.arange(32) * 1.3) * 400 * y[:, None] * rng.uniform(0.4, 1, (500, 1))
    x = np.stack([rng.normal(2000, 150, (500, 32)) + knock, rng.normal(0, 90, (500, 32))], 2).round()
    chosen = ("std", "fft")
    numbers = np.array([[v for c in range(2) for v in features(row[:, c].astype(int).tolist(), chosen)] for row in x])
    small = make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000)).fit(numbers[:350, :9], y[:350])
    big = make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000)).fit(numbers[:350], y[:350])
    for name, model in (("small", small), ("big", big)):
        joblib.dump(model, folder / f"{name}.joblib")
    np.savez(folder / "train.npz", x=x[:350])
    np.savez(folder / "test.npz", x=x[350:], y=y[350:])
    words = ["pair", "small.joblib", "big.joblib", "--test", "test.npz", "--calibration", "train.npz", "--beta", "0.1"]
    words = [str(folder / word) if "." in word and word[0] in "sbt" else word for word in words]
    words += ["--window", "32", "--channels", "2", "--features", *chosen, "--ldl-columns", *map(str, range(9))]
    assert main([*words, "--out", str(folder / "pair"), "--json", str(folder / "report.json")]) == 0
    return folder, small.score(numbers[350:, :9], y[350:])


@pytest.mark.slow
def test_a_pair_of_windows_is_as_good_as_its_models(machines):
    folder, trained = machines
    report, pair = json.loads((folder / "report.json").read_text()), pairs.load(str(folder / "pair"))
    assert report["ldl"]["float"]["accuracy"] == pytest.approx(trained) and trained > 0.8
    assert abs(report["ldl"]["int8"]["accuracy"] - trained) < 0.02
    assert pair.x.shape == (150, 34) and pair.raw.shape == (150, 32, 2) and pair.info.window.features == ["std", "fft"]


@pytest.mark.slow
@pytest.mark.parametrize("board", ["unix", "arm32"])
def test_a_window_on_a_board(machines, tmp_path, board):
    """Measurements one by one from a CSV: every decision is that of the host's own integers."""
    if run.EMULATED[board].missing():
        pytest.skip(f"no {board}")
    folder, _ = machines
    assert main(["new", str(tmp_path / "mine"), "--from", str(folder / "pair")]) == 0
    app = tmp_path / "mine/app.py"
    app.write_text(replayed.patient(app.read_text()))
    words = ["run", tmp_path / "mine", "--board", board]
    ran = subprocess.run([sys.executable, "-m", "h2t2_tools", *map(str, words)], capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0, ran.stderr
    given, csv = config.load(tmp_path / "mine/h2t2.toml"), (tmp_path / "mine/samples.csv").read_text()
    expected, own = replayed.decisions(folder / "pair", csv, given.arguments(), given.event)
    assert replayed.written(tmp_path / f"mine/run-{board}/decisions.csv") == expected and len(expected) == 150
    assert np.mean(own == pairs.load(str(folder / "pair")).y) > 0.8


@pytest.mark.parametrize(
    "more, words",
    [
        (("--window", 16), "--window 16 wants (16,)"),
        (("--window", 32, "--channels", 3), "wants (32, 3)"),
        (("--hop", 3), "--hop and --features are of --window"),
    ],
)
def test_samples_that_are_no_windows_are_refused(machines, tmp_path, capsys, more, words):
    folder, _ = machines
    model = folder / "small.joblib"
    words_given = ["pair", model, model, "--test", folder / "test.npz", "--out", tmp_path, *more]
    assert main([str(word) for word in words_given]) == 2
    assert words in capsys.readouterr().err
