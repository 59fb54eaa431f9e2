"""What is suspicious about a model or a pair stops the command or is said loudly."""

import json

import numpy as np
import pytest

from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import Failure
from h2t2_tools.model import quality
from h2t2_tools.model.tflite import Graph, Operator, Tensor
from h2t2_tools.model.tflite_write import write


def h2t2(*words):
    return main([str(word) for word in words])


def normalised(path, rng):
    """A float .tflite that divides numbers of unlike ranges by their deviations inside: int8 has one scale for all of them."""
    scale = np.array([1e-3, 1e-3, 1.0], np.float32)
    tensors = [
        Tensor(0, "x", (1, 3), "float32", None),
        Tensor(1, "factor", (1, 3), "float32", (scale.reshape(1, 3))),
        Tensor(2, "normal", (1, 3), "float32", None),
        Tensor(3, "w", (1, 3), "float32", np.array([[0.0, 0.0, 9.0]], np.float32)),
        Tensor(4, "b", (1,), "float32", np.zeros(1, np.float32)),
        Tensor(5, "logit", (1, 1), "float32", None),
        Tensor(6, "score", (1, 1), "float32", None),
    ]
    operators = [
        Operator("MUL", 1, (0, 1), (2,), {"fused": 0}),
        Operator("FULLY_CONNECTED", 1, (2, 3, 4), (5,), {"fused": 0}),
        Operator("LOGISTIC", 1, (5,), (6,), {}),
    ]
    path.write_bytes(write(Graph("normalised", 0, tuple(tensors), tuple(operators), (0,), (6,))))
    x = rng.normal(size=(400, 3)) / scale
    np.savez(path.with_suffix(".npz"), x=x.astype(np.float32), y=(x[:, 2] > 0).astype(int))


@pytest.mark.whole
def test_a_normalisation_inside_a_model_does_not_pass_as_converted(tmp_path, capsys):
    pytest.importorskip("ai_edge_quantizer")
    model = tmp_path / "norm.tflite"
    normalised(model, np.random.default_rng(1))
    command = ["convert", model, "--calibration", tmp_path / "norm.npz", "--out", tmp_path / "out"]
    assert h2t2(*command) == 1
    told = capsys.readouterr().err
    assert "int8 loses" in told and "points of accuracy, 100.0% to" in told and "scale the samples before" in told
    assert not (tmp_path / "out").exists()
    assert h2t2(*command, "--max-loss", 100, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["int8"]["accuracy"] < 0.97
    pair = ["pair", model, model, "--test", tmp_path / "norm.npz", "--out", tmp_path / "pair"]
    assert h2t2(*pair) == 1 and "int8 loses" in capsys.readouterr().err and not (tmp_path / "pair").exists()
    assert h2t2(*pair, "--max-loss", 100, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["warnings"][-1] == "both models are the same file: asking can never pay"
    assert "**Beware:** both models are the same file" in (tmp_path / "pair/README.md").read_text()


def test_int8_may_lose_the_limit_and_no_more():
    quality.check_loss("m", 0.95, 0.92, 3.0)
    quality.check_loss("m", 0.9, 0.95, 0.0)
    with pytest.raises(
        Failure,
        match=r"m: int8 loses 3.1 points of accuracy, 95.0% to 91.9%, more than 3: .*unlike ranges, .*--max-loss 4 accepts",
    ):
        quality.check_loss("m", 0.95, 0.919, 3.0)


def test_a_class_with_few_samples_is_named():
    y = np.array([0] * 30 + [1] * 19)
    assert quality.sample_warnings(y, 2) == ["class 1 has 19 samples; with fewer than 20 its figures are chance"]
    names = ["cat", "dog", "fox"]
    assert [text[:13] for text in quality.sample_warnings(y, 3, names)] == ["class 1 (dog)", "class 2 (fox)"]
    assert quality.sample_warnings(np.array([0, 1] * 20), 2) == []


def test_a_local_model_that_never_says_a_class_is_named():
    y = np.array([0, 1, 1])
    assert quality.silence_warnings(np.array([0.1, 0.3, 0.31]), y) == [
        "the local model never says class 1: its largest score is 0.31"
    ]
    assert "never says class 0: its smallest score is 0.60" in quality.silence_warnings(np.array([0.6, 0.7, 0.9]), y)[0]
    assert quality.silence_warnings(np.array([0.1, 0.7, 0.2]), y) == []
    assert quality.silence_warnings(np.eye(3)[[0, 1, 1]], np.array([0, 1, 2])) == ["the local model never says class 2"]


def test_a_remote_model_that_is_no_help_is_told():
    y = np.array([0, 1, 1, 0])
    weak, strong = np.array([0.1, 0.3, 0.7, 0.2]), np.array([0.0, 0.9, 0.9, 0.1])
    assert quality.pair_warnings(weak, strong, y, False) == []
    assert quality.pair_warnings(strong, weak, y, False) == [
        "the remote model is right on 75.0%, the local one on 100.0%: asking does not pay"
    ]
    assert "same scores" in quality.pair_warnings(weak, weak.copy(), y, False)[0]
    assert "same file" in quality.pair_warnings(weak, weak, y, True)[0]
