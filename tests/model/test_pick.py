"""`h2t2 inspect --pick`: one input and one output of a model that has more."""

import json

import numpy as np
import pytest
from random_models import NONE, Maker

from h2t2.cpython.tflite_library import Interpreter
from h2t2_tools.cli.main import main
from h2t2_tools.model import bundle, tflite
from h2t2_tools.model.tflite import Graph
from h2t2_tools.model.tflite_write import write

pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")


@pytest.fixture
def path(tmp_path):
    """Two inputs, added and scored; one of them also scored alone."""
    make = Maker(3, (6,))
    second = make.tensor((1, 6), 0.05, 3)
    both = make.operator("ADD", (make.first, second), make.tensor((1, 6), 0.1, -5), fused=NONE)
    outputs = [make.scored(make.dense(x, 2), "SOFTMAX") for x in (both, second)]
    path = tmp_path / "two.tflite"
    path.write_bytes(write(Graph("made", 0, tuple(make.tensors), tuple(make.operators), (make.first, second), tuple(outputs))))
    return path


def run(content, *inputs):
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, x in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def test_what_is_picked_computes_as_before_and_runs_on_a_board(path, tmp_path, capsys):
    assert main(["inspect", str(path), "--bundle", str(tmp_path / "two.h2m")]) == 2
    assert "2 inputs and 2 outputs: want one of each (h2t2 inspect --pick" in capsys.readouterr().err
    graph = tflite.load(path)
    names = [graph.tensors[n].name for n in (*graph.inputs, *graph.outputs)]
    out = tmp_path / "one.tflite"
    words = ["inspect", str(path), "--input", names[0], "--output", "0", "--fix", f"{names[1]}=0.25", "--pick", str(out)]
    assert main([*words, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)["picked"]
    assert report["fixed"] == {names[1]: 0.25} and (report["operators"], report["operators_left_out"]) == (3, 2)
    x = np.array([[-100, -20, 0, 3, 50, 127]], np.int8)
    beside = np.full((1, 6), 3 + 5, np.int8)
    assert np.array_equal(run(out.read_bytes(), x)[0], run(path.read_bytes(), x, beside)[0])
    assert bundle.from_tflite(out) and out.stat().st_size < path.stat().st_size
    assert main([*words[:2], "--input", "1", "--output", "1", "--pick", str(out)]) == 0
    assert np.array_equal(run(out.read_bytes(), x)[0], run(path.read_bytes(), beside, x)[1])


def test_what_cannot_be_picked_is_said(path, tmp_path, capsys):
    for words, why in (
        (["--output", "0"], "2 inputs: say which, --input NAME (0: t0"),
        (["--input", "0"], "2 outputs: say which, --output NAME"),
        (["--input", "0", "--output", "probs"], "no output probs; there are 0: "),
        (["--input", "0", "--output", "1"], "does not depend on input t0"),
        (["--input", "0", "--output", "0", "--fix", "t0=1"], "input t0 is the sample"),
        (["--input", "0", "--output", "0", "--fix", "t1"], "want NAME=NUMBER"),
    ):
        assert main(["inspect", str(path), *words, "--pick", str(tmp_path / "one.tflite")]) == 2
        assert why in capsys.readouterr().err
    assert not (tmp_path / "one.tflite").exists()
