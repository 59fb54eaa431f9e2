"""Traces, `h2t2 replay`, `score`: what they write, and what they say of bad input."""

import csv
import json

import numpy as np
import pytest

from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.replay import synthetic, trace_names, traces
from h2t2_tools.replay.simulation.policy_names import NAMES
from h2t2_tools.replay.traces import Trace


def h2t2(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("beta", [False, True])
def test_a_trace_comes_back(tmp_path, suffix, classes, beta):
    rng = np.random.default_rng(1)
    score = rng.random(50) if classes == 2 else rng.dirichlet(np.ones(classes), 50)
    trace = Trace("t", score, rng.integers(0, classes, 50), rng.random(50) if beta else None)
    traces.save(tmp_path / f"t{suffix}", trace)
    back = traces.load(tmp_path / f"t{suffix}")
    assert np.allclose(back.score, score, atol=1e-6) and np.array_equal(back.label, trace.label)
    assert back.classes == classes and (np.allclose(back.beta, trace.beta) if beta else back.beta is None)


@pytest.mark.parametrize("command", ["replay", "recommend", "prior"])
def test_a_parquet_trace_is_the_csv(command, tmp_path, monkeypatch, capsys):
    """As pandas writes it: labels are booleans, and a column may say more."""
    pandas = pytest.importorskip("pandas", reason="no pandas; run: pip install 'h2t2-edge[parquet]'")
    pytest.importorskip("pyarrow", reason="no pyarrow; run: pip install 'h2t2-edge[parquet]'")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    label = rng.random(400) < 0.4
    score = np.clip(rng.normal(0.3 + 0.4 * label, 0.2), 0, 1).round(6)
    pandas.DataFrame({"score": score, "label": label, "hour": np.arange(400) % 24}).to_parquet("t.parquet")
    traces.save(tmp_path / "t.csv", Trace("t", score, label.astype(int)))
    options = () if command == "prior" else ("--beta", 0.2, "--runs", 1, "--bits", 3)
    reports = []
    for ending in ("csv", "parquet"):
        assert h2t2(command, f"t.{ending}", *options, "--out", f"{ending}.out", "--json", "-") == 0
        reports.append(capsys.readouterr().out.replace("parquet", "csv"))
    assert reports[0] == reports[1]
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    assert h2t2(command, "t.parquet", *options) == 2 and "t.parquet: not a .parquet file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content, message",
    [
        ("score,label\n0.5,1\n1.5,0\n", "row 2 has a score"),
        ("score,label\n0.5,1\n0.5,2\n", "it has the classes 1, 2; add --event CLASS, the one whose miss costs most"),
        ("score,label\n0.5,0\n0.5,2\n", "row 2 has a label"),
        ("score,label,beta\n0.5,1,-1\n", "row 1 has a beta"),
        ("score,label\n0.5,x\n0.5,z\n", "it has the classes x, z; add --event CLASS, the one whose miss costs most"),
        ("score,label\nx,0\n", "line 2: score: 'x' is no number"),
        ("score,label\n0.5,1\ninf,0\n", "row 2 has a score"),
        ("a,b\n1,2\n", "want the columns score"),
        ("score,b\n1,2\n", "want the columns score (or score0, score1, ..), label (or what --label names)"),
        ("score0,score2,label\n0.5,0.5,1\n", "its scores are score0, score2; want score of class 1, or score0, score1"),
        ("score,score0,label\n0.5,0.5,1\n", "its scores are score, score0; want"),
        ("score,label\n", "at least one"),
        ("score0,score1,label\n0.9,0.9,1\n", "do not sum"),
    ],
)
def test_a_damaged_trace_is_refused_with_the_row(tmp_path, content, message, capsys):
    """What is wrong with a .csv of any kind: tests/common/test_labels.py."""
    (tmp_path / "t.csv").write_text(content)
    assert h2t2("replay", tmp_path / "t.csv") == 2
    error = capsys.readouterr().err
    assert message in error and "t.csv" in error


@pytest.mark.parametrize(
    "change, why",
    [
        ({"label": np.full(400, np.nan)}, "each sample lacks a number or its label"),
        ({"label": np.int64(1)}, "labels of shape ()"),
        ({"label": np.zeros((400, 2, 2))}, "labels of shape (400, 2, 2)"),
        ({"score": np.full(400, 0.5 + 1j)}, "score is complex128 of shape (400,); want numbers"),
        ({"score": np.full(400, "high")}, "score is <U4"),
        ({"score": np.float64(0.5)}, "score is float64 of shape ()"),
        ({"score": np.zeros((400, 17))}, "17 class scores; want 2 to 16"),
        ({"score": np.zeros((400, 0))}, "0 class scores; want 2 to 16"),
        ({"score": np.full((400, 2), 0.9)}, "row 1: class scores do not sum to 1"),
        ({"beta": np.full(400, 1j)}, "beta is complex128"),
        ({"beta": np.full(7, 0.1)}, "beta is float64 of shape (7,)"),
        ({"beta": np.full((400, 2), 0.1)}, "beta is float64 of shape (400, 2)"),
    ],
)
def test_arrays_that_are_no_trace_are_refused(change, why, tmp_path, capsys):
    arrays = {"score": np.linspace(0, 1, 400), "label": np.arange(400) % 2}
    np.savez(tmp_path / "t.npz", **(arrays | change))
    missing = ("--missing", "skip") if why.startswith("each") else ()
    assert h2t2("recommend", tmp_path / "t.npz", *missing) == 2
    error = capsys.readouterr().err
    assert why in error and "t.npz" in error


def shaking(count=400):
    """Scores of two classes, and what the samples were."""
    rng = np.random.default_rng(1)
    label = (rng.random(count) < 0.4).astype(int)
    return np.clip(rng.normal(0.3 + 0.4 * label, 0.2), 0, 1).round(6), label


@pytest.mark.parametrize(
    "form",
    [
        lambda score, label: (np.stack([1 - score, score], 1), label),
        lambda score, label: (score[:, None], label[:, None]),
        lambda score, label: (score, np.eye(2)[label]),
        lambda score, label: (score, label.astype(bool).astype(str)),
    ],
)
def test_a_trace_may_have_other_forms(form, tmp_path):
    score, label = form(*shaking())
    np.savez(tmp_path / "t.npz", score=score, label=label)
    trace = traces.load(tmp_path / "t.npz")
    assert np.allclose(trace.score, shaking()[0]) and np.array_equal(trace.label, shaking()[1])


@pytest.mark.parametrize("command", ["replay", "recommend", "prior"])
def test_the_csv_of_a_logger_is_a_trace(command, tmp_path, monkeypatch, capsys):
    """It has both scores, which h2t2 recommend could not play, a gap, a time, and its own word for the label."""
    monkeypatch.chdir(tmp_path)
    score, label = shaking()
    rows = [f"05:0{n % 9};{f};{n % 3};{1 - f};{bool(y)}" for n, (f, y) in enumerate(zip(score, label))]
    (tmp_path / "log").mkdir()
    text = "\n".join(["# a log", "time;score1;target;score0;truth", *rows, "05:09;0.5;;0.5;"])
    (tmp_path / "log/t.csv").write_text(text)
    np.savez("t.npz", score=score, label=label)
    size = {
        "replay": ("--policy", "h2t2", "--runs", 1, "--samples", 100),
        "recommend": ("--runs", 1, "--bits", 3),
        "prior": (),
    }[command]
    beta = () if command == "prior" else ("--beta", 0.2)
    reports = []
    for name, chosen in (("t.npz", ()), ("log/t.csv", ("--label", "truth", "--missing", "skip"))):
        assert h2t2(command, name, *chosen, *size, *beta, "--out", "out", "--json", "-") == 0
        reports.append(capsys.readouterr().out)
    assert reports[0] == reports[1]


def test_columns_of_scores_are_taken_in_the_order_of_their_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("score10,label," + ",".join(f"score{n}" for n in range(10)) + "\n.5,10,.5" + ",0" * 9)
    trace = traces.load(tmp_path / "t.csv")
    assert trace.score.tolist() == [[0.5, *[0] * 9, 0.5]] and trace.label.tolist() == [10]


def test_a_shipped_trace_names_no_columns(capsys):
    assert h2t2("replay", "phishing", "--label", "truth") == 2
    assert "--label: the trace phishing names no columns" in capsys.readouterr().err


def test_a_trace_that_is_not_there(capsys, tmp_path):
    assert h2t2("replay", "nowhere.csv") == 2 and "no such file" in capsys.readouterr().err
    assert h2t2("replay", "nothing") == 2 and "phishing" in capsys.readouterr().err
    (tmp_path / "t.npz").write_bytes(b"PK")
    assert h2t2("replay", tmp_path / "t.npz") == 2 and "not a trace" in capsys.readouterr().err


@pytest.mark.whole
def test_replay_prints_writes_and_draws(tmp_path, capsys):
    size = ("--runs", 2, "--samples", 500, "--beta", "0.1:0.5:0.2", "--out", tmp_path)
    assert h2t2("replay", "phishing", *size, "--json", "-") == 0
    report = json.loads(capsys.readouterr().out)
    rows = report["rows"]
    assert {row["beta"] for row in rows} == {0.1, 0.3, 0.5}
    by = {(row["policy"], row["beta"]): row for row in rows}
    assert len(by) == len(rows) == 3 * (len(NAMES) - 1)  # in no order there is no past
    for beta in (0.1, 0.3, 0.5):
        assert by["full offload", beta]["cost"] == pytest.approx(beta)
        assert by["offline pair θ*", beta]["regret"] == 0
        assert by["no offload", beta]["offload"] == 0 and by["no offload", beta]["fp"] > 0
    with open(report["csv"], newline="") as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    assert (tmp_path / "Phishing.png").read_bytes()[1:4] == b"PNG"
    assert h2t2("replay", "phishing", *size, "--policy", "h2t2-all") == 0
    assert "H2T2 all + anytime" in capsys.readouterr().out


@pytest.mark.whole
def test_replay_of_many_classes_and_of_a_traces_own_costs(tmp_path, capsys):
    size = ("--runs", 2, "--samples", 300, "--out", tmp_path, "--json", "-")
    assert h2t2("replay", "digits_4", "--beta", ".2", *size) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"calibrated rule", "adaptive"} <= {row["policy"] for row in report["rows"]}
    assert all(row["regret"] is None for row in report["rows"])
    assert h2t2("replay", "digits_4", "--policy", "h2t2", *size) == 2
    assert "not for a trace of 4 classes" in capsys.readouterr().err
    rng = np.random.default_rng(1)
    traces.save(tmp_path / "own.npz", Trace("own", rng.random(90), rng.integers(0, 2, 90), np.full(90, 0.25)))
    assert h2t2("replay", tmp_path / "own.npz", "--policy", "full-offload", *size) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["own_beta"] and [row["cost"] for row in report["rows"]] == pytest.approx([0.25])


@pytest.mark.slow
def test_replay_with_a_remote_model_of_many_classes_that_errs(tmp_path, capsys):
    """Its confusion matrix as counts; what cannot be one is refused with its line."""
    size = "--policy", "adaptive", "--beta", 0.2, "--runs", 1, "--samples", 2000, "--out", tmp_path, "--json", "-"
    matrix = tmp_path / "confusion.csv"
    costs = []
    for lines in ("9,0,0\n0,9,0\n0,0,9\n", "8,2,0\n0,8,2\n1,0,4\n"):
        matrix.write_text(lines)
        assert h2t2("replay", "digits_3", "--rdl-confusion", matrix, *size) == 0
        costs.append(json.loads(capsys.readouterr().out)["rows"][0]["cost"])
    assert h2t2("replay", "digits_3", *size) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["cost"] == costs[0] != costs[1]
    for lines, words in (
        ("1,0\n0,1\n", "2 lines, of 3 classes"),
        ("1,0,0\n0,1\n0,0,1\n", "line 2"),
        ("1,0,0\n0,1,0\n0,0,0\n", "line 3"),
        ("1,0,x\n", "not a matrix"),
        ("1,1,1\n1,1,1\n1,1,1\n", "too little apart"),
    ):
        matrix.write_text(lines)
        assert h2t2("replay", "digits_3", "--rdl-confusion", matrix, *size) == 2
        assert words in capsys.readouterr().err
    assert h2t2("replay", "phishing", "--rdl-confusion", matrix, *size) == 2
    assert "--rdl-fp and --rdl-fn say the same" in capsys.readouterr().err


@pytest.mark.whole
def test_replay_with_a_limit_for_misses(tmp_path, capsys):
    size = "--policy", "adaptive", "--beta", 0.3, "--runs", 2, "--samples", 4000, "--out", tmp_path, "--json", "-"
    seen = []
    for limit in (0, 0.02):
        assert h2t2("replay", "resnet_dogs", "--miss-rate", limit, *size) == 0
        seen.append(json.loads(capsys.readouterr().out)["rows"][0])
    events = 0.507
    assert seen[0]["fn"] > 0.06 * events and seen[1]["fn"] < 0.035 * events and seen[1]["offload"] > seen[0]["offload"]


def test_replay_with_several_bits(tmp_path, capsys):
    """Each policy that bins scores, with each; the others once. A table is of one number of bits."""
    size = "--beta", 0.3, "--runs", 1, "--samples", 100, "--out", tmp_path, "--json", "-"
    assert h2t2("replay", "phishing", "--policy", "adaptive", "full-offload", "--bits", 3, 5, *size) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["policy"] for row in rows] == ["adaptive, b = 3", "full offload", "adaptive, b = 5"]
    assert h2t2("replay", "phishing", "--prior", tmp_path / "t.json", "--bits", 3, 5, *size) == 2
    assert "one number" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0.5:0.1:0.1", "x", "2", "0:1:0", "0:1"])
def test_replay_refuses_costs_that_are_none(text, capsys):
    assert h2t2("replay", "phishing", "--beta", text) == 2
    assert text in capsys.readouterr().err


def test_score_makes_the_trace_of_a_model(tmp_path, capsys):
    pair = pairs.load("breast_cancer")
    columns, model = pair.info.columns["ldl"], tmp_path / "mine.tflite"
    model.write_bytes(pair.ldl.read_bytes())
    np.savez(tmp_path / "test.npz", x=pair.x, y=pair.y)
    out = tmp_path / "made.csv"
    chosen = ("--columns", *columns, "--out", out, "--json", "-")
    assert h2t2("score", model, tmp_path / "test.npz", *chosen) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["samples"] == len(pair.y) and 0.7 < report["accuracy"] < 1
    assert np.array_equal(traces.load(out).label, pair.y)
    assert h2t2("score", model, tmp_path / "test.npz", "--out", out) == 2
    assert "takes (5,)" in capsys.readouterr().err
    assert h2t2("score", model, tmp_path / "test.npz", *chosen[:-4], "--event", 3, "--out", out) == 2
    assert "--event 3" in capsys.readouterr().err
    assert h2t2("score", tmp_path / "none.tflite", tmp_path / "test.npz") == 1
    assert "none.tflite" in capsys.readouterr().err


def test_score_reads_the_csv_of_a_logger(tmp_path, capsys):
    """As an .npz of its numbers and labels."""
    pair = pairs.load("breast_cancer")
    columns = pair.info.columns["ldl"]
    names = [f"f{n}" for n in range(pair.x.shape[1])]
    rows = [
        ",".join([f"2026-11-29 05:{n % 60}", *map(repr, x.tolist()), str(bool(y))])
        for n, (x, y) in enumerate(zip(pair.x, pair.y))
    ]
    gap = ",".join(["", *["1"] * (len(names) - 1), "", "True"])
    (tmp_path / "log.csv").write_text("\n".join([",".join(["time", *names, "malignant"]), *rows, gap]))
    command = (
        "score",
        pair.ldl,
        tmp_path / "log.csv",
        "--out",
        tmp_path / "made.csv",
        "--columns",
        *(names[n] for n in columns),
    )
    assert h2t2(*command, "--label", "malignant", "--missing", "skip") == 2
    assert "line 2: time: '2026-11-29 05:0' is no number; --drop time leaves" in capsys.readouterr().err
    assert h2t2(*command, "--drop", "time") == 2
    assert (
        f"line {len(rows) + 2}: {names[-1]}: a number is missing, as in 1 of {len(rows) + 1} samples; --missing skip"
        in capsys.readouterr().err
    )
    assert h2t2(*command, "--drop", "time", "--missing", "skip") == 0
    np.savez(tmp_path / "test.npz", x=pair.x.astype(float), y=pair.y)
    assert h2t2("score", pair.ldl, tmp_path / "test.npz", "--columns", *columns, "--out", tmp_path / "npz.csv") == 0
    assert (tmp_path / "made.csv").read_text() == (tmp_path / "npz.csv").read_text()
    assert h2t2(*command, "radius", "--drop", "time", "--missing", "skip") == 2
    assert "--columns radius: " in capsys.readouterr().err
    np.savez(tmp_path / "words.npz", x=np.full((9, 5), "a"), y=np.arange(9) % 2)
    assert h2t2("score", pair.ldl, tmp_path / "words.npz") == 2 and "x is <U1" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["airport", "breast_cancer", "digits", "ten_digits"])
@pytest.mark.parametrize("is_folder", [True, False])
def test_a_pairs_own_model_reads_the_pairs_numbers(name, is_folder, tmp_path):
    """Columns, scaling and event are those of pair.json: the trace is that of the pair."""
    pair = pairs.load(name)
    np.savez(tmp_path / "few.npz", x=pair.x[:100], y=pair.y[:100])
    assert h2t2("score", pair.folder if is_folder else pair.ldl, tmp_path / "few.npz", "--out", tmp_path / "t.npz") == 0
    made = traces.load(tmp_path / "t.npz")
    with np.load(pair.folder / "trace.npz") as shipped:
        assert np.array_equal(made.score, shipped["score"][:100]) and np.array_equal(made.label, pair.y[:100])


def test_samples_without_a_pairs_numbers_are_refused_by_their_numbers(tmp_path, capsys):
    pair = pairs.load("breast_cancer")
    np.savez(tmp_path / "few.npz", x=pair.x[:100, :8], y=pair.y[:100])
    assert h2t2("score", pair.folder, tmp_path / "few.npz", "--out", tmp_path / "t.npz") == 2
    assert "samples of shape (8,), 100 labels" in (said := capsys.readouterr().err) and "the numbers [1, 4, 8, 9, 11]" in said


def test_every_row_of_the_papers_table_has_a_trace_of_its_size():
    for row in synthetic.ROWS:
        trace = trace_names.find(row.name)
        assert len(trace.label) == row.samples, row.name
        assert row.weak == "" or len(trace_names.find(row.weak).label) == row.samples


def test_a_users_folder_comes_first(tmp_path):
    traces.save(tmp_path / "breakhis.npz", Trace("mine", np.full(3, 0.5), np.array([0, 1, 0])))
    assert trace_names.find("breakhis", tmp_path).name == "mine" and trace_names.is_real("breakhis", tmp_path)
    assert not trace_names.is_real("breakhis")
    with pytest.raises(UserError, match="no such folder"):
        trace_names.find("breakhis", tmp_path / "nowhere")


def test_a_table_to_start_from(tmp_path, capsys):
    """`h2t2 prior` writes it, `--prior` takes it; one of other bits, and one that is none, are refused."""
    table = tmp_path / "prior.json"
    assert h2t2("prior", "phishing", "--out", table) == 0 and "prior = [" in capsys.readouterr().out
    made = json.loads(table.read_text())
    assert made["samples"] == 1106 and len(made["prior"]) == 16 and made["prior"][0] < 0.1 < 0.9 < made["prior"][15]
    assert h2t2("node", "--bits", 5, "--prior", table) == 2 and "5 bits want 32" in capsys.readouterr().err
    table.write_text("[]")
    assert h2t2("node", "--prior", table) == 2 and "not a table" in capsys.readouterr().err
    assert h2t2("node", "--eta", 2) == 2 and "--policy h2t2" in capsys.readouterr().err
    assert h2t2("prior", "digits_3") == 2 and "two" in capsys.readouterr().err


@pytest.mark.slow
def test_a_trace_is_played_in_its_own_order(tmp_path, capsys):
    """Each sample once, as it came; labels late and lost, a picture over time; the same twice."""
    rng = np.random.default_rng(3)
    score = np.concatenate([rng.uniform(0, 0.4, 300), rng.uniform(0.6, 1, 300)])
    path = tmp_path / "shift.npz"
    np.savez(path, score=score, label=(score > 0.5).astype(int))
    common = ("replay", path, "--ordered", "--beta", 0.2, "--policy", "adaptive", "full-offload", "--runs", 2, "--json", "-")
    reports = []
    for more in ((), (), ("--delay", 30, "--lost", 0.5)):
        assert h2t2(*common, *more, "--out", tmp_path) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1] and reports[0]["samples"] == 600 and (tmp_path / "shift_over_time.png").exists()
    full, late = ({r["policy"]: r for r in report["rows"]} for report in (reports[0], reports[2]))
    assert full["full offload"]["cost"] == pytest.approx(0.2) and full["adaptive"]["cost"] < 0.08
    assert late["full offload"]["cost"] == pytest.approx(0.2)  # its fallback class is right here
    past = ("replay", path, "--beta", 0.2, "--policy", "adaptive-past", "--runs", 1, "--out", tmp_path)
    assert h2t2(*past, "--ordered", "--json", "-") == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert row["policy"] == "adaptive with its past" and row["cost"] != full["adaptive"]["cost"]
    assert h2t2(*past, "--miss-rate", 0.02) == 2 and "adaptive-past: not with --miss-rate" in capsys.readouterr().err
    assert h2t2("replay", path, "--lost", 2) == 2 and "--lost" in capsys.readouterr().err
