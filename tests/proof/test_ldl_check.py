"""The integer interpreter against TFLite's reference kernels, byte for byte."""

import numpy as np
import pytest
import random_models
from bundles import RUN, SHIPPED, need_oracle
from support import ROOT

from h2t2_tools.model import bundle, tflite
from h2t2_tools.proof import ldl_check


def oracle(path, samples, layers):
    need_oracle()
    return ldl_check.compare(path, None, samples, 3, layers, lambda *_: None)


@pytest.mark.parametrize("path", RUN, ids=lambda p: p.stem)
def test_every_layer_is_the_reference_kernels_byte_for_byte(path):
    report = oracle(path, 40, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 40


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 90, 10))
def test_random_models_over_every_operator(first, tmp_path):
    """Ten models each: shapes, strides, dilations, paddings, fused activations, per-channel and per-tensor scales drawn."""
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    path = tmp_path / "made.tflite"
    for seed in range(first, first + 10):
        path.write_bytes(random_models.random_model(seed))
        report = oracle(path, 12, True)
        assert report["differ"] == 0, (seed, report["first"])


@pytest.mark.parametrize("seed", [2, 7, 12, 40, 41])
def test_float_ends_are_left_to_the_host(seed, tmp_path):
    """A QUANTIZE at the start and a DEQUANTIZE at the end, as converters leave them, are not the board's."""
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    from dataclasses import replace

    from h2t2_tools.model.tflite import Operator, Tensor
    from h2t2_tools.model.tflite_write import write

    path = tmp_path / "made.tflite"
    path.write_bytes(random_models.random_model(seed))
    graph = tflite.load(path)
    n = len(graph.tensors)
    ends = [graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]]
    real = [Tensor(n + at, f"real{at}", t.shape, "float32", None, np.zeros(0), np.zeros(0), 0) for at, t in enumerate(ends)]
    first = Operator("QUANTIZE", 1, (n,), graph.inputs, {})
    last = Operator("DEQUANTIZE", 2, graph.outputs, (n + 1,), {})
    operators = (first, *graph.operators, last)
    path.write_bytes(write(replace(graph, tensors=(*graph.tensors, *real), operators=operators, inputs=(n,), outputs=(n + 1,))))
    report = oracle(path, 12, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("made", [random_models.mobilenet_v1, random_models.resnet_8], ids=lambda f: f.__name__)
def test_known_networks(made, tmp_path):
    """MobileNet v1 of 96x96 and ResNet-8 of 32x32, random weights, every layer."""
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    path = tmp_path / "made.tflite"
    path.write_bytes(made())
    report = oracle(path, 5, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 400_000


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.parent.name)
def test_the_shipped_models(path):
    assert oracle(path, 100 if path.stat().st_size < 4000 else 5, True)["differ"] == 0


def test_a_difference_is_found_and_named(monkeypatch):
    """A test that cannot fail is a defect: one weight changed in the bundle."""
    path = ROOT / "tests/material/dense_relu.tflite"
    if ldl_check.oracle() != "tflite_runtime":
        pytest.skip("the oracle is tflite-runtime 2.14, which this Python has not")

    def spoiled(made):
        step = made.steps[1]
        step.weights = bytes([step.weights[0] ^ 64]) + step.weights[1:]
        return bundle_write(made)

    bundle_write = bundle.write
    monkeypatch.setattr(ldl_check, "write", spoiled)
    report = ldl_check.compare(path, None, 20, 1, True, lambda *_: None)
    assert report["differ"] and "step 1 (fully_connected" in report["first"]
