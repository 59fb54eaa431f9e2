"""`h2t2 pair --classes`: models of many classes to a pair, and the worker that serves them."""

import json

import numpy as np
import pytest
import scikit_models
from support import ROOT, worker_replies

from h2t2.link import wire
from h2t2_tools.boards import kinds, project
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.worker import Worker
from h2t2_tools.replay import traces


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Four classes of points, by a model of one of two numbers, and one of both; as scikit-learn has them."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(4)
    y = rng.integers(0, 4, 800)
    x = np.stack([y * 100 + rng.normal(0, 60, 800), (y % 2) + rng.normal(0, 0.2, 800)], 1)
    small = scikit_models.logistic(x[:500, :1], y[:500])
    big = scikit_models.network(x[:500], y[:500])
    two = scikit_models.logistic(x[:500], y[:500] > 1)
    scikit_models.save(folder, x[500:], y[500:], small=small, big=big, two=two)
    np.savetxt(folder / "costs.csv", [[0, 0.5, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]], delimiter=",")
    (folder / "mine.py").write_text(
        f"import joblib\nmodel = joblib.load({str(folder / 'big.joblib')!r})\n"
        "def scores(x): return model.predict_proba(x)\n"
        "def one(x): return model.predict_proba(x)[:, 0]\n"
    )
    return folder, small.score(x[500:, :1], y[500:]), big.score(x[500:], y[500:])


def make(folder, out, rdl="big.joblib", *options, ldl="small.joblib"):
    words = ["pair", folder / ldl, folder / rdl, "--test", folder / "test.npz", "--ldl-columns", 0, "--out", out]
    return main([str(word) for word in [*words, "--json", out / "report.json", *options]])


@pytest.mark.slow
@pytest.mark.parametrize("rdl", ["big.joblib", "mine.py:scores"])
def test_a_pair_of_four_classes(trained, tmp_path, rdl):
    folder, small, big = trained
    assert make(folder, tmp_path, rdl, "--classes", 4, "--class-costs", folder / "costs.csv") == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert abs(report["ldl"]["int8"]["accuracy"] - small) < 0.03 and abs(report["rdl"]["int8"]["accuracy"] - big) < 0.03
    pair = pairs.load(str(tmp_path))
    assert pair.info.classes == 4 and pair.info.costs[0] == [0, 0.5, 1, 1] and set(pair.y) == {0, 1, 2, 3}
    trace = traces.load(tmp_path / "trace.npz")
    assert trace.score.shape == (300, 4) and (trace.label == pair.y).mean() == report["rdl"]["int8"]["accuracy"]
    counts = np.array(report["rates"]["rdl_confusion"])
    assert counts.sum(1) == pytest.approx(1, abs=1e-3)
    assert counts[2, 2] == pytest.approx((trace.label[pair.y == 2] == 2).mean(), abs=1e-4)
    assert "accuracy |\n|---|---|---|---|---|\n" in (tmp_path / "README.md").read_text() and "prior.json" not in report["files"]
    for board in ("unix", "esp32", "pico", "pico_w"):
        source = ["--from", str(tmp_path)] if board == "unix" else []
        assert main(["new", str(tmp_path / "mine"), *source, "--board", board]) == 0
        configuration = project.load(tmp_path / "mine", board).contents.config.model_copy(update={"app": ""})
        assert configuration.class_costs == pair.info.costs
        files = kinds.payload(kinds.KINDS[board], kinds.Contents(tmp_path / "ldl.h2m", configuration, tmp_path / "samples.bin"))
        assert "h2t2/core/adaptive_classes.mpy" in files
    assert main(["new", str(tmp_path / "mine"), "--board", "microbit"]) == 2


def test_a_worker_says_which_class_it_is(trained, tmp_path):
    folder, _, _ = trained
    assert make(folder, tmp_path, "mine.py:scores", "--classes", 4) == 0
    pair = pairs.load(str(tmp_path))
    worker = Worker(models.load(models.of_pair(pair)), 1)
    requests = [wire.encode_request(1, 5, n, (2,), pair.remote_payload(x)) for n, x in enumerate(pair.x[:40])]
    answers = [wire.decode_reply(reply)[3:] for reply in worker_replies(worker, requests)]
    tensors = np.stack([np.frombuffer(pair.remote_payload(x), np.int8) for x in pair.x[:40]])
    scores = models.load(models.of_pair(pair)).scores(tensors)
    assert [label for label, _ in answers] == scores.argmax(1).tolist() and len({label for label, _ in answers}) == 4
    assert np.abs(np.array([score for _, score in answers]) / 32768 - scores.max(1)).max() < 1e-4


def test_one_output_tells_no_classes_apart():
    """An ONNX model of one number a sample, asked for all classes: a failure, which it says, and no label."""
    pytest.importorskip("onnxruntime", reason="no onnxruntime; run: pip install onnxruntime")
    failures = []
    worker = Worker(models.load(models.Source(str(ROOT / "tests/material/mean.onnx"), None)), 1, failures.append)
    (reply,) = worker_replies(worker, [wire.encode_request(1, 5, 1, (4,), b"abcd")])
    assert wire.decode_reply(reply)[0] == wire.FAILED and "or as many rows of them, one a class" in failures[0]


class Odd:
    """A model of any output."""

    shape = None

    def __init__(self, scores):
        self._scores = scores

    def scores(self, batch):
        return self._scores


@pytest.mark.parametrize(
    "scores", [[[0.5], [0.5]], [[[0.1, 0.9]]] * 2, [[0.1, 1.9]] * 2, [[0.1, np.nan]] * 2, [[0.1, 0.9]] * 3, [0.1, [0.1, 0.2]]]
)
def test_outputs_that_are_no_scores_are_a_failure_not_an_answer(scores):
    worker = Worker(Odd(scores), 1)
    requests = [wire.encode_request(1, 5, n, (2,), b"ab") for n in range(2)]
    assert [wire.decode_reply(reply)[0] for reply in worker_replies(worker, requests)] == [wire.FAILED] * 2


@pytest.mark.parametrize(
    "options, why",
    [
        (("--classes", 3), "labels to 3; --classes 3 wants 0 to 2"),
        (("--classes", 5), "4 outputs; --classes 5 wants one a class"),
        (("--classes", 2), "want a whole number, 3 to 16"),
        (("--classes", 4, "--event", 1), "with --classes, no class is the event"),
        (("--class-costs", "costs.csv"), "is of --classes K"),
        (("--classes", 5, "--class-costs", "costs.csv"), "4 lines, of 5 classes"),
    ],
)
def test_what_cannot_be_a_pair_of_many_classes_is_refused(trained, tmp_path, capsys, options, why):
    folder, _, _ = trained
    assert make(folder, tmp_path, "big.joblib", *[folder / word if word == "costs.csv" else word for word in options]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.slow
def test_a_remote_model_of_fewer_classes_is_refused(trained, tmp_path, capsys):
    folder, _, _ = trained
    for rdl, why in (("two.joblib", "outputs; --classes 4 wants one a class"), ("mine.py:one", "want 4 scores from 0 to 1")):
        assert make(folder, tmp_path, rdl, "--classes", 4) == 2
        assert why in capsys.readouterr().err


def test_costs_with_a_price_on_the_truth_are_refused(trained, tmp_path, capsys):
    folder, _, _ = trained
    (tmp_path / "wrong.csv").write_text("0,1,1,1\n1,0.5,1,1\n1,1,0,1\n1,1,1,0\n")
    assert make(folder, tmp_path, "big.joblib", "--classes", 4, "--class-costs", tmp_path / "wrong.csv") == 2
    assert "line 2: want costs from 0 to 1, and 0 in column 2" in capsys.readouterr().err


@pytest.mark.slow
def test_a_pair_without_event_or_costs_names_what_is_missing(trained, tmp_path, capsys):
    folder, _, _ = trained
    assert make(folder, tmp_path, "big.joblib", "--classes", 4) == 0
    about = json.loads((tmp_path / "pair.json").read_text())
    for change, why in (({"costs": None}, "event_index: want"), ({"costs": [[0, 1, 1]] * 4}, "want 4 rows of as many")):
        (tmp_path / "pair.json").write_text(json.dumps({**about, **change}))
        assert main(["node", "--pair", str(tmp_path)]) == 2
        assert why in capsys.readouterr().err
