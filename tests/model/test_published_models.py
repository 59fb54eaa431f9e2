"""`h2t2 inspect --pick` and `convert` on files as people publish them: float16 constants, PRELU, logits, several outputs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support import ROOT

from h2t2_tools.cli.main import main
from h2t2_tools.model.tflite import Operator, load
from h2t2_tools.model.tflite_write import write

pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")

CNN = ROOT / "tests/material/float/cnn.tflite"


def published(path):
    """The float CNN as a face detector is published: float16 constants, a PRELU, logits, a second output."""
    graph = load(CNN)
    tensors, operators = list(graph.tensors), list(graph.operators)

    def added(**fields):
        tensors.append(replace(tensors[graph.inputs[0]], index=len(tensors), **fields))
        return len(tensors) - 1

    place = next(n for n, o in enumerate(operators) if o.name == "CONV_2D")
    layer = operators[place]
    shape = tensors[layer.outputs[0]].shape
    sum_ = added(name="before", shape=shape)
    slopes = np.linspace(-0.2, 0.4, shape[-1], dtype=np.float32).reshape(1, 1, -1)
    alpha = added(name="slopes", shape=slopes.shape, data=slopes)
    operators[place] = replace(layer, outputs=(sum_,), options={**layer.options, "fused": 0})
    operators.insert(place + 1, Operator("PRELU", 1, (sum_, alpha), layer.outputs, {}))
    for n in range(len(tensors)):
        if tensors[n].data is not None and tensors[n].dtype == "float32":
            half = added(name=f"half {n}", shape=tensors[n].shape, dtype="float16", data=tensors[n].data.astype(np.float16))
            tensors[n] = replace(tensors[n], data=None)
            operators.insert(0, Operator("DEQUANTIZE", 1, (half,), (n,), {}))
    boxes = added(name="boxes", shape=shape)
    operators.append(Operator("LOGISTIC", 1, (sum_,), (boxes,), {}))
    end = next(o for o in operators if o.outputs == graph.outputs)
    assert end.name in ("LOGISTIC", "SOFTMAX")
    operators.remove(end)
    content = write(replace(graph, tensors=tuple(tensors), operators=tuple(operators), outputs=(end.inputs[0], boxes)))
    path.write_bytes(content)
    return tensors[end.inputs[0]].name


@pytest.mark.slow
def test_a_detector_as_it_is_published_runs_on_a_board(tmp_path, capsys):
    name = published(tmp_path / "detector.tflite")
    scores = tmp_path / "scores.tflite"
    assert main(["inspect", str(tmp_path / "detector.tflite"), "--output", name, "--logits", "--pick", str(scores)]) == 0
    np.save(tmp_path / "x.npy", np.random.default_rng(1).uniform(0, 1, (40, 8, 8, 1)).astype(np.float32))
    capsys.readouterr()
    assert main(["convert", str(scores), "--calibration", str(tmp_path / "x.npy"), "--out", str(tmp_path), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["not_for_a_board"] == [] and report["worst_score_difference"] < 0.05
    int8 = tmp_path / "scores_int8.tflite"
    operators = [o.name for o in load(int8).operators]
    assert "PRELU" in operators and "DEQUANTIZE" not in operators[1:-1]
    assert main(["ldl-check", str(int8), "--samples", "10", "--layers", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["differ"] == 0


def test_a_refusal_names_a_few_reasons_and_counts_the_rest(tmp_path, capsys):
    published(tmp_path / "detector.tflite")
    assert main(["inspect", str(tmp_path / "detector.tflite"), "--bundle", str(tmp_path / "d.h2m")]) == 2
    message = capsys.readouterr().err
    assert message.count("operator") == 3 and "more, which h2t2 inspect lists" in message
    assert main(["inspect", str(tmp_path / "detector.tflite")]) in (0, 1)
    assert capsys.readouterr().out.count("not for a board:") > 3
