"""One entry of a table makes a function of one number an operator of the integer interpreter."""

import numpy as np
import pytest
from random_models import Maker

from h2t2_tools.model.operators import SUPPORTED
from h2t2_tools.model.operators.functions import FLOAT_FUNCTIONS
from h2t2_tools.proof import ldl_check

EVERY_BYTE = np.arange(-128, 128).astype(np.int8).reshape(1, 256)


def differing(path, inputs, samples=1):
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    return ldl_check.compare(path, inputs, samples=samples, seed=3, layers=True, progress=lambda *_: None)


@pytest.mark.parametrize("scale", [0.013, 0.04, 0.1])
def test_an_entry_is_all_that_a_function_needs(scale, monkeypatch, tmp_path):
    """EXP, which docs/first-change.md adds."""
    monkeypatch.setitem(FLOAT_FUNCTIONS, "EXP", lambda x, options: np.exp(x))
    monkeypatch.setitem(SUPPORTED, "EXP", SUPPORTED["TANH"])  # which __init__ makes of every entry when it is imported
    maker = Maker(5, (8, 8, 4))
    x = maker.operator("QUANTIZE", (maker.first,), maker.tensor((1, 8, 8, 4), scale, 7))
    y = maker.operator("EXP", (x,), maker.tensor((1, 8, 8, 4), scale, -9))
    path = tmp_path / "function.tflite"
    path.write_bytes(maker.bytes(y))
    report = differing(path, None, samples=20)
    assert report["differ"] == 0, report["first"]


# scales and zero points of which it makes a difference, in one byte of 256, whether GELU divides by the output's scale or
# multiplies by its reciprocal, as TFLite does; and two usual pairs
QUANTISED = [
    ("int8", 0, 0.10798133164644241, 0.09915266931056976, -95, -80),
    ("int8", 0, 0.0370309092104435, 0.048066604882478714, -22, -18),
    ("int8", 1, 0.0622672364115715, 0.07942750304937363, -74, -63),
    ("int8", 1, 0.053985558450222015, 0.033140163868665695, -14, -108),
    ("uint8", 0, 0.03, 0.016, 4, -117),
    ("uint8", 1, 0.03, 0.016, 4, -117),
]


@pytest.mark.parametrize("dtype, approximate, x_scale, y_scale, x_zero, y_zero", QUANTISED)
def test_gelu_gives_the_kernels_byte_for_every_byte(dtype, approximate, x_scale, y_scale, x_zero, y_zero, tmp_path):
    make = Maker(1, (256,))
    make.tensors.clear()
    make.first = make.tensor((1, 256), x_scale, x_zero)
    make.operator("GELU", (make.first,), make.tensor((1, 256), y_scale, y_zero), approximate=approximate)
    if dtype == "uint8":
        make.legacy()
    path = tmp_path / "gelu.tflite"
    path.write_bytes(make.bytes(1))
    report = differing(path, EVERY_BYTE)
    assert report["differ"] == 0 and report["bytes"] == 256, report["first"]
