"""Files with activations of 16 bits, as other converters write them: a Pi and a worker run them."""

import json

import numpy as np
import pytest
from on_boards import network

from h2t2.cpython.tflite import TFLiteModel
from h2t2_tools.cli.main import main
from h2t2_tools.model.convert import from_tflite
from h2t2_tools.model.convert.readers import open_source
from h2t2_tools.model.tflite import read
from h2t2_tools.model.tflite_edit import normalise, with_constants, with_quantisation


def with_int16_activations(name):
    """(a PyTorch network's samples and scores, its .tflite with activations of 16 bits) as other converters write it."""
    from ai_edge_quantizer import quantizer, recipe

    case = network(name, 60)
    content = normalise(open_source(case.path).content)
    observed = from_tflite._extremes(content, case.fit[0])
    ranges = {
        tensor.name: {
            end: np.full((1,) * len(tensor.shape), number, np.float32)
            for end, number in (("min", observed[tensor.name][0].min()), ("max", observed[tensor.name][1].max()))
        }
        for tensor in read(content).tensors
        if tensor.name in observed
    }
    return case, bytes(quantizer.Quantizer(content, recipe.static_wi8_ai16()).quantize(ranges).quantized_model)


@pytest.mark.slow
def test_activations_of_16_bits_run_on_a_pi_and_at_a_worker(tmp_path, capsys):
    case, content = with_int16_activations("squeeze")
    (tmp_path / "wide.tflite").write_bytes(content)
    np.savez(tmp_path / "test.npz", x=case.test[0], y=case.test[1])
    report = tmp_path / "report.json"
    pair = ["pair", tmp_path / "wide.tflite", tmp_path / "wide.tflite", "--test", tmp_path / "test.npz", "--json", report]
    assert main([*map(str, pair), "--out", str(tmp_path / "pair")]) == 0, capsys.readouterr().err
    made = json.loads(report.read_text())
    assert made["not_for_a_board"] and made["ldl"]["int8"]["accuracy"] > 0.9
    model = TFLiteModel(str(tmp_path / "pair/ldl.tflite"), event=1)
    found = np.array([model.scores(model.quantise(x))[1] for x in case.test[0]])
    assert np.abs(found - open_source(tmp_path / "wide.tflite").scores(case.test[0])[:, 1]).max() < 0.03  # 8 bits at its ends
    assert np.abs(found - case.scores).mean() < 0.01


@pytest.mark.parametrize("scale", [0.0, 3.6e-43])
def test_int16_tensors_of_zeros_alone_have_no_scale(scale, tmp_path):
    """TensorFlow's converter gives a layer that is always 0 the scale 0 or the smallest number; LiteRT runs it."""
    case, content = with_int16_activations("perceptron")
    graph = read(content)
    first = graph.operators[0]
    assert first.name == "FULLY_CONNECTED"
    dead = {n: np.zeros(graph.tensors[n].shape, graph.tensors[n].data.dtype) for n in first.inputs[1:]}
    content = with_constants(content, {n: (data, np.full(len(graph.tensors[n].scale), scale)) for n, data in dead.items()})
    content = with_quantisation(content, {first.outputs[0]: (scale or 1e-30, 0)})
    (tmp_path / "dead.tflite").write_bytes(content)
    scores = open_source(tmp_path / "dead.tflite").scores(case.test[0])
    assert np.isfinite(scores).all() and (scores == scores[0]).all()
