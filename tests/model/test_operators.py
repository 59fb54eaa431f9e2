"""One entry of a table makes a function of one number an operator of the integer interpreter."""

from dataclasses import replace

import numpy as np
import pytest
from random_models import Maker

from h2t2_tools.checks import ldl_check
from h2t2_tools.model.operators import SUPPORTED
from h2t2_tools.model.operators.functions import FLOAT_FUNCTIONS

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


FUNCTIONS = [
    ("ABS", 0.02, 0.02, -20, -128),
    ("ABS", 0.0248, 0.0592, 30, -22),
    ("LOG", 0.0039, 0.0171, -128, 90),
    ("LOG", 0.02, 0.03, -60, -20),
    ("RSQRT", 0.0583, 0.0071, -128, -63),
]


@pytest.mark.parametrize("name, x_scale, y_scale, x_zero, y_zero", FUNCTIONS)
def test_a_function_gives_the_kernels_byte_for_every_byte_that_it_takes(name, x_scale, y_scale, x_zero, y_zero, tmp_path):
    make = Maker(1, (256,))
    make.tensors.clear()
    make.first = make.tensor((1, 256), x_scale, x_zero)
    make.operator(name, (make.first,), make.tensor((1, 256), y_scale, y_zero))
    (tmp_path / "function.tflite").write_bytes(make.bytes(1))
    taken = np.maximum(EVERY_BYTE, x_zero) if name == "RSQRT" else EVERY_BYTE  # TFLite refuses roots of negative numbers
    report = differing(tmp_path / "function.tflite", taken)
    assert report["differ"] == 0 and report["bytes"] == 256, report["first"]


@pytest.mark.parametrize("name, axes, shape", [
    ("REDUCE_MAX", (1, 2), (1, 3)), ("REDUCE_MAX", (1,), (1, 5, 3)), ("REDUCE_MAX", (3,), (1, 4, 5)),
    ("REVERSE_V2", (1,), (1, 4, 5, 3)), ("REVERSE_V2", (3,), (1, 4, 5, 3)),
])  # fmt: skip
def test_numbers_are_chosen_and_moved_as_the_kernels_do(name, axes, shape, tmp_path):
    make = Maker(1, (4, 5, 3))
    make.operator(
        name, (make.first, make.numbers(*axes)), y := make.tensor(shape, make.scale(make.first), make.zero(make.first))
    )
    (tmp_path / "moved.tflite").write_bytes(make.bytes(y))
    report = differing(tmp_path / "moved.tflite", None, samples=4)
    assert report["differ"] == 0 and report["bytes"] == 4 * np.prod(shape), report["first"]


@pytest.mark.parametrize(
    "padding, stride, kernel",
    [(0, (2, 2), (3, 3)), (1, (2, 2), (3, 3)), (0, (3, 1), (2, 4)), (1, (1, 2), (2, 2)), (0, (2, 3), (1, 2))],
)
def test_a_transposed_convolution_is_one_of_a_spread_picture(padding, stride, kernel, tmp_path):
    """Padding 0 is SAME, whose output may be smaller than what the kernel reaches."""
    make = Maker(2, (4, 5, 3))
    height, width = (n * s if padding == 0 else (n - 1) * s + k for n, s, k in zip((4, 5), stride, kernel))
    weights = make.tensor((2, *kernel, 3), [0.01, 0.02], 0, make.rng.integers(-127, 128, (2, *kernel, 3)).astype(np.int8))
    scales = make.scale(make.first) * np.array([0.01, 0.02])
    bias = make.tensor((2,), scales, 0, np.array([40, -70], np.int32), "int32")
    y = make.tensor((1, height, width, 2), 0.2, 5)
    inputs = (make.numbers(1, height, width, 2), weights, make.first, bias)
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1], "fused": 0}
    make.operator("TRANSPOSE_CONV", inputs, y, **options)
    make.operators[-1] = replace(make.operators[-1], version=3)
    (tmp_path / "transposed.tflite").write_bytes(make.bytes(y))
    report = differing(tmp_path / "transposed.tflite", None, samples=4)
    assert report["differ"] == 0 and report["bytes"] >= 4 * height * width * 2, report["first"]


def test_a_channel_with_a_multiplier_of_0_is_constant(tmp_path):
    """As in MIT's MCUNet: the scale of some channels is so small that nothing of their sum remains, but their bias is large."""
    make = Maker(2, (4, 5, 3))
    weights = make.tensor((2, 1, 1, 3), [0.01, 1e-14], 0, make.rng.integers(-127, 128, (2, 1, 1, 3)).astype(np.int8))
    bias = make.tensor((2,), make.scale(make.first) * np.array([0.01, 1e-14]), 0, np.array([40, 2**31 - 9], np.int32), "int32")
    y = make.tensor((1, 4, 5, 2), 0.2, 5)
    options = {"padding": 1, "stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1, "fused": 0}
    make.operator("CONV_2D", (make.first, weights, bias), y, **options)
    (tmp_path / "dead.tflite").write_bytes(make.bytes(y))
    report = differing(tmp_path / "dead.tflite", None, samples=4)
    assert report["differ"] == 0 and report["bytes"] == 4 * 40, report["first"]


def test_a_dilated_convolution_over_time_has_views_between_its_parts(tmp_path):
    """Keras' Conv1D, whose sequence is a picture of one row for the convolution alone."""
    make = Maker(3, (20, 4))
    like = make.scale(make.first), make.zero(make.first)
    blocks = make.numbers(3)

    def pair(*numbers):
        return make.tensor((1, 2), None, 0, np.array([numbers], np.int32), "int32")

    apart = make.operator("SPACE_TO_BATCH_ND", (make.first, blocks, pair(6, 1)), make.tensor((3, 9, 4), *like))
    wide = make.operator("RESHAPE", (apart, make.numbers(3, 1, 9, 4)), make.tensor((3, 1, 9, 4), *like))
    made = make.convolution(wide, kernel=(1, 3), stride=(1, 1), dilation=(1, 1), padding=1, channels=5)
    flat = make.operator("RESHAPE", (made, make.numbers(3, 7, 5)), make.tensor((3, 7, 5), make.scale(made), make.zero(made)))
    y = make.tensor((1, 20, 5), make.scale(made), make.zero(made))
    make.operator("BATCH_TO_SPACE_ND", (flat, blocks, pair(0, 1)), y)
    path = tmp_path / "dilated.tflite"
    path.write_bytes(make.bytes(y))
    report = differing(path, None, samples=4)
    assert report["differ"] == 0 and report["bytes"] == 400, report["first"]
