"""The TFLite back end: bins, and what is refused."""

import sys

import numpy as np
import pytest
from command_line import ran

from h2t2.cpython.tflite import TFLiteModel
from h2t2_tools.common import pairs


def test_the_level_is_the_score_in_256ths():
    model = TFLiteModel(str(pairs.load("breast_cancer").ldl))
    assert (model.output_scale, model.output_zero_point) == (1 / 256, -128)
    for q in range(-128, 128):
        assert model.level(q) == q + 128


@pytest.mark.parametrize("x", [np.zeros(4, np.int8), np.zeros(5, np.float32)])
def test_a_sample_of_the_wrong_shape_or_type_is_refused(x):
    with pytest.raises(ValueError, match="the model takes int8"):
        TFLiteModel(str(pairs.load("breast_cancer").ldl)).run(x)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "x.tflite").write_bytes(b"not a model at all")
    with pytest.raises(ValueError, match="x.tflite.*TFL3"):
        TFLiteModel(str(tmp_path / "x.tflite"))


@pytest.mark.parametrize("name", pairs.shipped_names())
def test_a_model_cut_anywhere_is_refused_or_runs(name, tmp_path):
    """The interpreter itself would crash on many of these: the check must come first, so this runs in a child."""
    content = pairs.load(name).rdl.read_bytes()
    script = """
import sys
from h2t2.cpython.tflite import TFLiteModel
content = open(sys.argv[1], "rb").read()
refused = 0
for cut in range(0, len(content), 37):
    open(sys.argv[2], "wb").write(content[:cut])
    try:
        TFLiteModel(sys.argv[2])
    except ValueError:
        refused += 1
print(refused, len(range(0, len(content), 37)))
"""
    command = [sys.executable, "-c", script, str(pairs.load(name).rdl), str(tmp_path / "cut.tflite")]
    run = ran(command)
    refused, cuts = map(int, run.stdout.split())
    assert refused >= cuts - 1 and len(content) > 800
