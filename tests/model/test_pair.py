"""`h2t2 pair`: models that a user has, with their scalers, to a folder that everything else runs from."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import replayed
import scikit_models
from support import ROOT, worker

from h2t2.core.adaptive import Adaptive
from h2t2.core.policy import OFFLOAD
from h2t2_tools.boards import kinds, project, run_emulated
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet import config
from h2t2_tools.fleet.rdl import models
from h2t2_tools.replay import traces

COLUMNS = [0, 2, 3]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A Pipeline on three of six numbers of unlike ranges, one on all of them, and the samples, as scikit-learn has them."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, (900, 6)) * [1, 1000, 0.01, 50, 3, 1] + [0, 5000, 0, -200, 1, 7]
    y = (x[:, 0] + x[:, 2] * 100 + (x[:, 1] - 5000) / 700 + rng.normal(0, 0.4, 900) > 0).astype(int)
    small = scikit_models.logistic(x[:600, COLUMNS], y[:600])
    big = scikit_models.network(x[:600], y[:600])
    np.savez(folder / "train.npz", x=x[:600])
    scikit_models.save(folder, x[600:], y[600:], small=small, big=big)
    (folder / "mine.py").write_text(
        f"import joblib\nmodel = joblib.load({str(folder / 'big.joblib')!r})\n"
        "def scores(x): return model.predict_proba(x)[:, 1]\n"
        "def zero(x): return model.predict_proba(x)\n"
        "def wrong(x): raise KeyError('no')\n"
        "def two(x): return x[:, 0] * 9\n"
    )
    return folder, (small.score(x[600:, COLUMNS], y[600:]), big.score(x[600:], y[600:]))


def make(folder, out, rdl, *options, ldl="small.joblib"):
    words = ["pair", folder / ldl, folder / rdl, "--test", folder / "test.npz", "--calibration", folder / "train.npz"]
    return main(
        [str(word) for word in [*words, "--ldl-columns", *COLUMNS, "--out", out, "--json", out / "report.json", *options]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("rdl", ["big.joblib", "mine.py:scores"])
def test_a_pipelines_scaler_travels_with_the_pair(trained, tmp_path, rdl):
    """The int8 models are as good as the trained ones on samples as they were measured; a worker and a node see the same."""
    folder, (small, big) = trained
    tmp_path = tmp_path / "mine"
    tmp_path.mkdir()
    assert make(folder, tmp_path, rdl, "--beta", 0.1) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["ldl"]["float"]["accuracy"] == pytest.approx(small) and report["rdl"]["float"]["accuracy"] == pytest.approx(
        big
    )
    assert abs(report["ldl"]["int8"]["accuracy"] - small) < 0.02 and abs(report["rdl"]["int8"]["accuracy"] - big) < 0.02
    pair = pairs.load(str(tmp_path))
    tensors = np.stack([np.frombuffer(pair.remote_payload(x), np.int8) for x in pair.x])
    says = models.load(models.of_pair(pair)).scores(tensors) >= 0.5
    assert (says == pair.y).mean() == report["rdl"]["int8"]["accuracy"]
    assert report["rates"] == {"rdl_fp": says[pair.y == 0].mean(), "rdl_fn": 1 - says[pair.y == 1].mean()}
    assert traces.load(tmp_path / "trace.npz").label.tolist() == says.tolist()
    for name in report["files"]:
        assert (tmp_path / name).stat().st_size > 0


NAMES = ["area", "load", "tilt", "heat", "age", "rate"]


@pytest.fixture(scope="module")
def named(trained):
    """The same models, as if fitted on data frames, and the samples as a .csv whose columns stand in another order."""
    joblib = pytest.importorskip("joblib")
    folder, scores = trained
    for name, columns in (("small", COLUMNS), ("big", range(6))):
        model = joblib.load(folder / f"{name}.joblib")
        model[0].feature_names_in_ = np.array([NAMES[n] for n in columns], object)
        joblib.dump(model, folder / f"named_{name}.joblib")
    with np.load(folder / "test.npz") as test:
        order = [5, 1, 4, 0, 3, 2]
        rows = [",".join(map(repr, [*x[order].tolist(), int(y)])) for x, y in zip(test["x"], test["y"])]
    (folder / "test.csv").write_text("\n".join([",".join([*(NAMES[n] for n in order), "label"]), *rows]))
    return folder, scores


def make_named(folder, out, *options, rdl="named_big.joblib", test="test.csv"):
    words = ["pair", folder / "named_small.joblib", folder / rdl, "--test", folder / test]
    return main([str(word) for word in [*words, "--out", out, *options]])


@pytest.mark.filterwarnings("ignore")
def test_each_model_reads_the_columns_that_it_was_fitted_on(named, tmp_path):
    folder, (small, big) = named
    assert make_named(folder, tmp_path / "p", "--json", tmp_path / "report.json") == 0
    pair = pairs.load(tmp_path / "p")
    assert pair.info.columns == {"ldl": [3, 5, 4], "rdl": [3, 1, 5, 4, 2, 0]}
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["ldl"]["float"]["accuracy"] == pytest.approx(small) and told["rdl"]["float"]["accuracy"] == pytest.approx(big)


@pytest.fixture
def log(named, tmp_path):
    """The same samples as a logger writes them: a time, a number of the device, gaps, and labels in words."""
    folder, _ = named
    header, *rows = (folder / "test.csv").read_text().splitlines()
    lines = [header.replace("label", "state,time,id")]
    for n, row in enumerate(rows):
        numbers, _, label = row.rpartition(",")
        cells = ["", *numbers.split(",")[1:]] if n % 50 == 7 else numbers.split(",")
        state = "" if n % 50 == 9 else ["calm", "shakes"][int(label)]
        lines.append(",".join([*cells, state, f"2026-11-29 05:{n % 60:02}", str(n)]))
    (tmp_path / "log.csv").write_text("\n".join(lines))
    return tmp_path / "log.csv"


@pytest.mark.filterwarnings("ignore")
def test_the_csv_of_a_logger_makes_a_pair(named, log, tmp_path, capsys):
    """Each error names the option that solves it; columns are called by their names."""
    folder, _ = named
    numbers = [name for name in log.read_text().splitlines()[0].split(",") if name in NAMES]
    options = {"--label": ["state"], "--drop": ["time", "id"], "--missing": ["skip"]}
    chosen = {"--ldl-columns": [NAMES[n] for n in COLUMNS], "--rdl-columns": NAMES, "--event": ["shakes"]}

    def pair(out, *left_out):
        words = [word for name, values in (options | chosen).items() if name not in left_out for word in (name, *values)]
        command = ["pair", folder / "small.joblib", folder / "big.joblib", "--test", log, "--out", tmp_path / out, *words]
        return main([str(word) for word in command])

    for option, why in (
        ("--label", "each of the columns state, time may hold the labels: --label COLUMN chooses one, --drop COLUMN"),
        ("--drop", "log.csv, line 2: time: '2026-11-29 05:00' is no number; --drop time leaves the column out"),
        ("--missing", "log.csv, line 9: rate: a number is missing, as in 12 of 300 samples; --missing skip"),
    ):
        assert pair("p", *(["--label", "--drop"] if option == "--label" else [option])) == 2
        assert why in capsys.readouterr().err
    chosen["--ldl-columns"] = ["area", "tip"]
    assert pair("p") == 2 and "--ldl-columns tip: " in capsys.readouterr().err
    chosen["--ldl-columns"] = [NAMES[COLUMNS[0]], numbers.index(NAMES[COLUMNS[1]]), NAMES[COLUMNS[2]]]
    assert pair("p") == 0
    written = capsys.readouterr()
    assert "log.csv: 12 of 300 samples lack a number or their label and are left out" in written.err
    made = pairs.load(str(tmp_path / "p"))
    assert made.info.columns == {"ldl": [3, 5, 4], "rdl": [3, 1, 5, 4, 2, 0]} and len(made.x) == 288
    assert made.info.class_names == ["calm", "shakes"]


@pytest.mark.filterwarnings("ignore")
def test_the_csv_of_a_logger_converts_a_model(named, log, tmp_path, capsys):
    """The model names the columns that it reads: no other one is read, but for the label."""
    folder, _ = named
    command = ["convert", folder / "named_small.joblib", "--calibration", log, "--out", tmp_path / "c", "--missing", "skip"]
    assert main([str(word) for word in [*command, "--label", "state", "--json", tmp_path / "r.json"]]) == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["test"]["samples"] == 294 and report["float"]["accuracy"] > 0.7


@pytest.mark.filterwarnings("ignore")
def test_columns_that_are_not_the_models_are_refused(named, tmp_path, capsys):
    folder, _ = named
    assert make_named(folder, tmp_path / "p", "--ldl-columns", "0", "1", "2") == 2
    assert "named_small.joblib reads the columns area, tilt, heat, which are 3 5 4" in capsys.readouterr().err
    text = (folder / "test.csv").read_text()
    (folder / "other.csv").write_text(text.replace("tilt", "tilt (degrees)", 1))
    assert make_named(folder, tmp_path / "p", test="other.csv") == 2
    assert "other.csv: the model reads the columns area, tilt, heat; the header names no column tilt" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_model_is_converted_by_the_columns_that_it_was_fitted_on(named, tmp_path):
    folder, (small, _) = named
    command = ["convert", folder / "named_small.joblib", "--calibration", folder / "test.csv", "--out", tmp_path]
    assert main([str(word) for word in [*command, "--json", tmp_path / "r.json"]]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["float"]["accuracy"] == pytest.approx(small)


@pytest.mark.parametrize("rdl", ["big.joblib", "mine.py:zero"])
def test_class_0_may_be_the_event_of_a_model_with_one_output(trained, tmp_path, rdl):
    """What the models say of class 0 is 1 minus what they say of class 1."""
    folder, (small, big) = trained
    told = {}
    for event in (0, 1):
        name = rdl if event == 0 else rdl.replace("zero", "scores")
        assert make(folder, tmp_path / f"{event}", name, "--event", event) == 0
        told[event] = json.loads((tmp_path / f"{event}/report.json").read_text())
    pair, other = pairs.load(tmp_path / "0"), pairs.load(tmp_path / "1")
    assert (pair.y == 1 - other.y).all()
    for model, accuracy in (("ldl", small), ("rdl", big)):
        assert told[0][model]["int8"]["accuracy"] == pytest.approx(told[1][model]["int8"]["accuracy"], abs=0.01)
        assert told[0][model]["int8"]["accuracy"] > accuracy - 0.02
    scores, mirrored = (traces.load(tmp_path / f"{event}/trace.npz").score for event in (0, 1))
    assert np.abs(scores + mirrored - 1).max() < 0.03


@pytest.mark.slow
def test_its_configurations_are_what_boards_take(trained, tmp_path):
    folder, _ = trained
    assert make(folder, tmp_path, "big.joblib", "--beta", 0.15, "--model-id", 77) == 0
    for board in ("unix", "esp32", "pico", "pico_w", "microbit"):
        source = ["--from", str(tmp_path)] if board == "unix" else []
        assert main(["new", str(tmp_path / "mine"), *source, "--board", board]) == 0
        configuration = project.load(tmp_path / "mine", board).contents.config.model_copy(update={"app": ""})
        assert (configuration.remote_shape, configuration.model_id, configuration.beta, configuration.event) == (
            [6],
            77,
            0.15,
            0,
        )
        assert board == "microbit" or len(configuration.numbers(configuration.folder)["prior"]) == 16
        files = kinds.payload(kinds.KINDS[board], kinds.Contents(tmp_path / "ldl.h2m", configuration, tmp_path / "samples.bin"))
        assert (tmp_path / "samples.bin").read_bytes() in files.values()
    assert (tmp_path / "samples.bin").stat().st_size == 300 * (3 + 6)


def test_an_onnx_model_gets_its_own_numbers_back(tmp_path):
    """One of the four numbers spans a thousandth of the others: one int8 scale for all would lose it."""
    pytest.importorskip("onnxruntime", reason="no onnxruntime; run: pip install onnxruntime")
    rng = np.random.default_rng(1)
    x = rng.random((200, 4)) * [1, 1, 1, 0.001]
    np.savez(tmp_path / "test.npz", x=x, y=(x.mean(1) > 0.375).astype(int))
    ldl = tmp_path / "ldl.joblib"
    joblib = pytest.importorskip("joblib")
    from sklearn.linear_model import LogisticRegression

    joblib.dump(LogisticRegression().fit(x, x[:, 0] > 0.5), ldl)
    words = ["pair", ldl, ROOT / "tests/material/mean.onnx", "--test", tmp_path / "test.npz", "--out", tmp_path / "p"]
    assert main([str(word) for word in words]) == 0
    pair = pairs.load(str(tmp_path / "p"))
    source = models.of_pair(pair)
    tensors = np.stack([np.frombuffer(pair.remote_payload(x), np.int8) for x in pair.x])
    restored = models.floats(tensors, source)
    assert np.abs(restored - pair.x).max(0) == pytest.approx(np.array([1, 1, 1, 0.001]) / 255, rel=1)
    assert np.abs(models.load(source).scores(tensors) - x.mean(1)).max() < 0.005


def test_int8_models_are_taken_as_they_are(tmp_path):
    """The digits pair, made again of its own files: the same figures as on its card."""
    folder = ROOT / "models/digits"
    words = ["pair", folder / "ldl.tflite", folder / "rdl.tflite", "--test", folder / "test.npz", "--out", tmp_path]
    assert main([*map(str, words), "--json", str(tmp_path / "r.json")]) == 0
    report, card = (json.loads(path.read_text()) for path in (tmp_path / "r.json", folder / "pair.json"))
    for side in ("ldl", "rdl"):
        for key, value in card["metrics"][side]["int8"].items():
            assert abs(report[side]["int8"][key] - value) <= 2 / card["test_samples"]
        assert (tmp_path / f"{side}.tflite").read_bytes() == (folder / f"{side}.tflite").read_bytes()
    description = json.loads((tmp_path / "pair.json").read_text())
    assert (
        description["remote"]["scale"] == pytest.approx(card["remote"]["scale"])
        and description["remote"]["shape"] == card["remote"]["shape"]
    )


def reached(broker, folder, pair):
    """A project for the unix port, of that pair and with that broker."""
    assert main(["new", str(folder), "--from", str(pair), "--board", "unix"]) == 0
    text = re.sub(r"(?m)^# broker = .*$", 'broker = "127.0.0.1"', (folder / "h2t2.toml").read_text())
    (folder / "h2t2.toml").write_text(re.sub(r"(?m)^# port = .*$", f"port = {broker.port}", text))
    return folder


BOARDS = ("unix", "arm32")  # those with an app


def emulated(name):
    """The emulator of that name, None for this machine itself."""
    emulator = run_emulated.EMULATED.get(name)
    if emulator and emulator.missing():
        pytest.skip(emulator.missing())
    return emulator


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
def test_a_board_decides_as_the_pairs_own_trace_says(trained, broker, tmp_path, board):
    """From two Pipelines to a flashed board, a real broker and worker: every decision is as on this host."""
    emulator = emulated(board)
    folder, (small, _) = trained
    out, device = tmp_path / "mypair", tmp_path / "device"
    out.mkdir()
    assert make(folder, out, "big.joblib", "--beta", 0.15) == 0
    report = json.loads((out / "report.json").read_text())
    with worker(broker.url, str(out)):
        mine = reached(broker, tmp_path / "mine", out)
        path = mine / "h2t2.toml"
        path.write_text(path.read_text().replace("[boards.unix]", '[boards.unix]\napp = ""'))
        (mine / "samples.bin").write_bytes((out / "samples.bin").read_bytes())
        device.mkdir()
        assert main(["flash", str(mine), "--port", str(device)]) == 0
        command = emulator.node(device / "main.py")
        ran = subprocess.run(command, cwd=device, env=emulator.environment(device), capture_output=True, text=True, timeout=200)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if '"bin"' in line]
    configuration = config.load(path, "unix").arguments()
    policy, trace = Adaptive(**configuration), traces.load(out / "trace.npz")
    for line, score, label in zip(lines, trace.score, trace.label.tolist()):
        assert line["bin"] == min(int(score * 16 + 1e-6), 15)
        action = policy.decide(line["bin"])
        if action == OFFLOAD:
            policy.learn(policy.ticket, label)
        assert (line["decision"], line["source"]) == ((label, "remote") if action == OFFLOAD else (action, "local"))
    local = [line["decision"] == y for line, y in zip(lines, pairs.load(str(out)).y) if line["source"] == "local"]
    assert len(lines) == report["samples"] == 300 and np.mean(local) >= report["ldl"]["int8"]["accuracy"] - 0.02 > small - 0.04


CSV = ROOT / "firmware/examples/app_csv/app.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "where", [pytest.param("pi", marks=pytest.mark.whole), "unix", pytest.param("arm32", marks=pytest.mark.whole)]
)
def test_an_app_measures_and_acts_wherever_it_runs(trained, broker, tmp_path, where):
    """One app.py with a CSV of samples as they were measured: every decision is that of the host's own integers and policy."""
    emulator = emulated(where)
    folder, (small, _) = trained
    out, device = tmp_path / "mypair", tmp_path / "device"
    for path in (out, device):
        path.mkdir()
    assert make(folder, out, "big.joblib", "--beta", 0.15) == 0
    pair = pairs.load(str(out))
    (device / "samples.csv").write_text("".join(",".join(f"{v:.6g}" for v in row) + "\n" for row in pair.x))
    (tmp_path / "app.py").write_text(replayed.patient(CSV.read_text()))
    with worker(broker.url, str(out)):
        mine = reached(broker, tmp_path / "mine", out)
        configuration = config.load(mine / "h2t2.toml", "unix")
        if emulator:
            (mine / "app.py").write_text((tmp_path / "app.py").read_text())
            assert main(["flash", str(mine), "--port", str(device), "--replace-app"]) == 0
            (device / "samples.csv").write_text("".join(",".join(f"{v:.6g}" for v in row) + "\n" for row in pair.x))
            command, environment = emulator.node(device / "main.py"), emulator.environment(device)
        else:
            words = ["node", "--pair", out, "--ldl", out / "ldl.h2m", "--app", tmp_path / "app.py", "--broker", broker.url]
            words += ["--prior", out / "prior.json", "--hold", 256, "--device", configuration.device]
            command, environment = [sys.executable, "-m", "h2t2_tools", *map(str, words)], None
        ran = subprocess.run(command, cwd=device, env=environment, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout.splitlines()[-1])["summary"]
    assert summary["samples"] == 300 and summary["complaints"] == 0 and summary["saturated"] < 30
    expected, own = replayed.decisions(
        out, (device / "samples.csv").read_text(), configuration.arguments(), configuration.event
    )
    assert replayed.written(device / "decisions.csv") == expected and len(expected) == 300
    assert replayed.printed_decisions(ran.stdout) == [line[:2] for line in expected]
    assert np.mean(own == pair.y) > small - 0.02


@pytest.mark.parametrize(
    "options, words",
    [
        (("--ldl-columns", 9), "--ldl-columns: samples have the shape"),
        (("--ldl-columns", 0, 1), "--ldl-columns and --rdl-columns select the numbers that a model reads"),
        (("--event", 2), "--event 2: the labels are 0..1"),
        (("--scale", 0), "--scale 0"),
        (("--beta", 2), "--beta 2"),
        (("--test", "{}/unlabelled.npz"), "no labels"),
        (("--test", "{}/nan.npz"), "nan.npz, sample 7: a number is missing (NaN), as in 3 of 40 samples; --missing skip"),
        (("--test", "{}/one.npz"), "two or more"),
        (("--test", "{}/few.npz"), "at least 10"),
        (("--calibration", "{}/other.npz"), "but (6,) in"),
    ],
)
def test_what_is_no_pair_is_refused_with_its_reason(trained, tmp_path, capsys, options, words):
    folder, _ = trained
    x = np.random.default_rng(1).random((40, 6))
    y = np.arange(40) % 2
    np.savez(tmp_path / "unlabelled.npz", x=x)
    np.savez(tmp_path / "one.npz", x=x, y=y * 0)
    np.savez(tmp_path / "few.npz", x=x[:5], y=y[:5])
    np.savez(tmp_path / "other.npz", x=x[:, :4])
    holes = x.copy()
    holes[[7, 8, 9], 2] = np.nan
    np.savez(tmp_path / "nan.npz", x=holes, y=y)
    if "--test" in options:
        options = (*options, "--calibration", options[1])
    assert make(folder, tmp_path / "pair", "big.joblib", *(str(word).format(tmp_path) for word in options)) == 2
    errors = capsys.readouterr().err
    assert words in errors and "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "rdl, words", [("nowhere.onnx", "no such file"), ("mine.py:wrong", "KeyError"), ("mine.py:two", "one score from 0 to 1")]
)
def test_a_remote_model_that_is_none(trained, tmp_path, capsys, rdl, words):
    assert make(trained[0], tmp_path, rdl) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_description_with_a_key_missing_is_refused_by_its_name(trained, tmp_path):
    assert make(trained[0], tmp_path, "big.joblib") == 0
    about = json.loads((tmp_path / "pair.json").read_text())
    del about["remote"]["scale"]
    (tmp_path / "pair.json").write_text(json.dumps(about))
    with pytest.raises(pairs.UserError, match=r"pair\.json: remote\.scale: Field required"):
        pairs.load(str(tmp_path))


def test_a_folder_with_something_in_it_is_not_written_over(trained, capsys):
    """`--out .` took a user's README.md and test.npz; a run that fails leaves no folder behind."""
    folder, _ = trained
    out = folder / "kept"
    out.mkdir()
    (out / "README.md").write_text("mine")
    assert make(folder, out, "big.joblib") == 2
    assert "not empty" in capsys.readouterr().err and [path.name for path in out.iterdir()] == ["README.md"]
    assert (out / "README.md").read_text() == "mine"
    assert make(folder, out, "big.joblib", "--force") == 0
    assert (out / "pair.json").exists() and str(out) in (out / "README.md").read_text() + (out / "report.json").read_text()
    assert make(folder, folder / "never", "nothing.joblib") == 2 and not (folder / "never").exists()
    assert not list(folder.glob(".h2t2-pair-*"))
