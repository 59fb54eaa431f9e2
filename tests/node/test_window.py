"""Windows of measurements: features and spectra against NumPy, integers equal on every interpreter, and a pair made of them."""

import json
import math
from array import array
from random import Random

import numpy as np
import pytest
import replayed
import scikit_models
from hypothesis import given
from hypothesis import strategies as st
from interpreters import in_machine_code
from scripted import Link, set_clock
from support import Ldl, need, paper

from h2t2.node import window
from h2t2.node.app import App
from h2t2.node.keeper import Keeper
from h2t2.node.node import Node
from h2t2.node.sensing import PARTIAL, Sensing
from h2t2.node.service import Service
from h2t2.node.spectrum import SINE
from h2t2.node.window import FEATURES, Window, features, spectrum, square_root
from h2t2.node.windowed import WindowedSensor
from h2t2_tools.boards import run_emulated
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet import config

SIZES = (2, 4, 16, 64, 256)


@given(st.integers(0, 2**40), st.sampled_from([window._isqrt, None]))
def test_the_square_root_of_an_integer(x, isqrt):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(window, "_isqrt", isqrt)
        check_square_root(x)


def check_square_root(x):
    assert square_root(x) ** 2 <= x < (square_root(x) + 1) ** 2


def test_the_table_is_a_quarter_of_a_sine():
    assert list(SINE) == [round(16384 * math.sin(math.pi * k / 128)) for k in range(65)]


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
    samples = [taken(window, (n, 10 * n)) for n in range(9)]
    assert samples == [[], [], [], [[2, 3, 15, 30]], [], [[4, 5, 35, 50]], [], [[6, 7, 55, 70]], []]
    shortest = Window(1, 1, 1, ("values",))
    assert taken(shortest, 5) == [[5]] == taken(shortest, [5])


def taken(window, measured):
    """The samples that measurements complete."""
    window.add(measured)
    return list(iter(window.take, None))


def forms(rows, channels):
    """What sense() may return for these rows of numbers."""
    flat = [x for row in rows for x in row]
    yield flat
    yield rows
    yield array("i", flat)
    yield np.array(rows, np.int32).reshape(-1, channels)
    if len(flat) == 1:
        yield flat[0]


@given(
    st.integers(1, 3), st.integers(1, 9), st.integers(1, 20), st.lists(st.integers(0, 25), max_size=12),
    st.lists(st.integers(0, 40), max_size=2), st.integers(0, 2**32),
)  # fmt: skip
def test_blocks_give_what_single_measurements_give(channels, size, hop, lengths, gaps, seed):
    """However a stream is divided, in whatever form, with gaps at the same places."""
    whole, divided = (Window(size, hop, channels, ("values", "mean")) for _ in range(2))
    expected, samples = [], []
    rng = Random(seed)
    for length in lengths:
        rows = [[rng.randint(-32768, 32767) for _ in range(channels)] for _ in range(length)]
        if whole.missing in gaps:
            whole.restart()
            divided.restart()
        for row in rows:
            expected += taken(whole, row)
        samples += taken(divided, rng.choice(list(forms(rows, channels))))
    assert samples == expected and whole.gaps == divided.gaps


def test_a_window_does_not_reach_across_a_gap():
    window = Window(4, 2, 1, ("values",))
    window.restart()  # it holds nothing that a gap could invalidate
    assert taken(window, [0, 1, 2]) == [] and window.gaps == 0
    window.restart()
    assert taken(window, [4, 5, 6]) == [] and window.gaps == 1
    assert taken(window, [7, 8, 9]) == [[4, 5, 6, 7], [6, 7, 8, 9]]
    window.add(range(10, 30))
    assert window.take() == [8, 9, 10, 11]
    window.restart()  # what is left of a block is older than the gap
    assert window.take() is None and window.gaps == 2


class Program:
    """An app whose sense() returns these, one a call; it raises exceptions."""

    def __init__(self, *returned, **attributes):
        self.returned = list(returned)
        vars(self).update(attributes)

    def sense(self):
        measured = self.returned.pop(0)
        if isinstance(measured, Exception):
            raise measured
        return measured


def test_a_program_that_reports_a_gap_or_fails_restarts_the_window():
    program = Program([1, 2, 3], "gap", None, [4, 5], OSError("bus"), [6, 7, 8, 9] * 2, [1])
    sensor = WindowedSensor(program, Window(4, 4, 1, ["values"]))
    assert [sensor(), sensor(), sensor(), sensor()] == [PARTIAL, PARTIAL, None, PARTIAL]
    with pytest.raises(OSError, match="bus"):
        sensor()
    assert sensor() == [6, 7, 8, 9] == sensor() and sensor.measured == [6, 7, 8, 9] * 2
    assert sensor() is PARTIAL and sensor.window.gaps == 2 and not program.returned


def test_time_says_that_a_buffer_has_overrun(monkeypatch):
    """The measurements that come late are dropped: nobody knows whether the gap lies before or among them."""
    ticks = iter([0, 100, 201, 202, 302])
    set_clock(monkeypatch, lambda: next(ticks))
    program = Program([1, 2], [3, 4], [5, 6], [7, 8], [9, 10], gap_ms=100)
    sensor = WindowedSensor(program, Window(4, 2, 1, ["values"]))
    assert [sensor() for _ in range(5)] == [PARTIAL, [1, 2, 3, 4], PARTIAL, PARTIAL, [7, 8, 9, 10]]
    assert sensor.window.gaps == 1


class Windows(App):
    """An app over a program with windows of four measurements."""

    def __init__(self, program):
        scaling = {"columns": None, "multipliers": [1 << 14], "offsets": [0], "shifts": [14]}
        window = {"size": 4, "hop": 4, "channels": 1, "features": ["mean"]}
        measured = {"local": scaling, "remote": scaling, "window": window}
        super().__init__(program, {"measured": measured, "arguments": {"bits": 4}, "deadline_ms": 1000})


class Clock(Link):
    """Notes how long the node waits for a message, and lets the clock pass as long."""

    def __init__(self):
        super().__init__()
        self.waited = self.now = 0

    def receive(self, wait_ms):
        self.waited += wait_ms
        self.now += wait_ms
        return super().receive(0)


class Model(Ldl):
    """A model whose score is its only input."""

    def run(self, x):
        return x[0] & 15


def serve(monkeypatch, program, link, every_us=0):
    """(service, what was logged) of a program with windows, until its sense() ends the node."""
    logged = []
    set_clock(monkeypatch, lambda: link.now)
    app = Windows(program)
    node = Node(paper(epsilon=32768), Model(), link, app.act, model_id=1, boot=9, log=logged.append)
    app.node = node
    sensing = Sensing(app.sense, every_us=every_us, complain=node.complain, missed=app.missed)
    service = Service(node, sensing, Keeper(node.policy, None), shape=(1,), telemetry_s=0, log=logged.append, app=app)
    service.run()
    assert not service.errors and not node.complain.total
    return service, logged


@pytest.mark.parametrize("measured, samples", [([5] * 400, 100), ([[5] * 40] * 10, 100), ([[5] * 3] * 10, 7)])
def test_a_window_that_is_not_full_waits_for_nothing(monkeypatch, measured, samples):
    link = Clock()
    service, _ = serve(monkeypatch, Program(*measured, StopIteration(), act=lambda decision: None), link)
    assert service.node.samples == samples and link.waited == 0


def test_skipped_slots_restart_the_window_and_the_log_counts_them(monkeypatch):
    """A measurement every 10 ms; those after the 6th and the 7th take 25 ms."""

    link, numbers = Clock(), iter(range(1, 20))

    def sense():
        n = next(numbers)
        link.now += 25 if n in (6, 7) else 0
        return n

    service, logged = serve(monkeypatch, Program(sense=sense, act=lambda decision: None), link, 10000)
    assert json.loads(link.reported[-1])["gaps"] == 2 and service.node.samples == 4 and service.sensing.skipped == 3
    assert [line for line in logged if "missed" in line] == [
        f"measurements were missed: the window begins anew ({n} times so far)" for n in (1, 2)
    ]


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
    with pytest.raises(ValueError, match="measurements of 3 numbers in all, want 2 each"):
        Window(4, 1, 2, ("mean",)).add((1, 2, 3))
    with pytest.raises(ValueError, match="a measurement of 1 numbers, want 2"):
        Window(4, 1, 2, ("mean",)).add([(1, 2), (3,)])


SAME = """import json
from h2t2.node.window import features
rows = json.loads('ROWS')
print(json.dumps([features(row, NAMES) for row in rows]))
"""


@pytest.mark.parametrize("emulator", [catalogue.UNIX, catalogue.ARM32], ids=lambda emulator: emulator.name)
def test_integers_are_the_same_on_every_interpreter_and_floats_nearly(emulator, tmp_path):
    need(emulator)
    rng = np.random.default_rng(7)
    rows = [rng.integers(-32768, 32768, n).tolist() for n in SIZES]
    rows += [[32767, -32768] * 128, [-32768] * 256, rng.integers(-(2**23), 2**23, 64).tolist()]  # the last in bytecode
    real = [(np.array(row) / 77).tolist() for row in rows]
    (tmp_path / "same.py").write_text(SAME.replace("ROWS", json.dumps(rows + real)).replace("NAMES", repr(FEATURES)))
    there = json.loads(emulator.run(tmp_path / "same.py", [], in_machine_code(emulator, tmp_path)))
    assert there[: len(rows)] == [features(row, FEATURES) for row in rows]
    for got, row in zip(there[len(rows) :], real):
        assert np.abs(np.array(got) - features(row, FEATURES)).max() < 1e-4 * 500


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """A pair that hears whether a machine knocks, of the spectrum of 32 measurements of two channels, in integers."""
    folder = tmp_path_factory.mktemp("machines")
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 500)
    knock = np.sin(np.arange(32) * 1.3) * 400 * y[:, None] * rng.uniform(0.4, 1, (500, 1))
    x = np.stack([rng.normal(2000, 150, (500, 32)) + knock, rng.normal(0, 90, (500, 32))], 2).round()
    chosen = ("std", "fft")
    numbers = np.array([[v for c in range(2) for v in features(row[:, c].astype(int).tolist(), chosen)] for row in x])
    small = scikit_models.logistic(numbers[:350, :9], y[:350], max_iter=3000)
    big = scikit_models.logistic(numbers[:350], y[:350], max_iter=3000)
    np.savez(folder / "train.npz", x=x[:350])
    scikit_models.save(folder, x[350:], y[350:], small=small, big=big)
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
    if run_emulated.EMULATED[board].missing():
        pytest.skip(f"no {board}")
    folder, _ = machines
    assert main(["new", str(tmp_path / "mine"), "--from", str(folder / "pair")]) == 0
    replayed.run(tmp_path / "mine", board)
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
