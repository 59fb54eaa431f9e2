"""One entry of a table makes a function of one number an operator of the integer interpreter."""

import math

import numpy as np
import pytest
from random_models import Maker

from h2t2_tools.model.operators import SUPPORTED
from h2t2_tools.model.operators.functions import FLOAT_FUNCTIONS
from h2t2_tools.proof import ldl_check

ADDED = {
    "GELU": lambda x, options: np.float32(0.5) * x * np.float32(math.erfc(x * np.float32(-math.sqrt(0.5)))),
    "EXP": lambda x, options: np.exp(x),
}


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("scale", [0.013, 0.04, 0.1])
def test_an_entry_is_all_that_a_function_needs(name, scale, monkeypatch, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    monkeypatch.setitem(FLOAT_FUNCTIONS, name, ADDED[name])
    monkeypatch.setitem(SUPPORTED, name, SUPPORTED["TANH"])  # which __init__ makes of every entry when it is imported
    maker = Maker(5, (8, 8, 4))
    x = maker.operator("QUANTIZE", (maker.first,), maker.tensor((1, 8, 8, 4), scale, 7))
    y = maker.operator(name, (x,), maker.tensor((1, 8, 8, 4), scale, -9))
    path = tmp_path / "function.tflite"
    path.write_bytes(maker.bytes(y))
    report = ldl_check.compare(path, None, samples=20, seed=3, layers=True, progress=lambda *_: None)
    assert report["differ"] == 0, report["first"]
