"""The integer interpreter against TFLite's reference kernels, byte for byte."""

from dataclasses import replace

import numpy as np
import pytest
import random_models
from bundles import SHIPPED, TEST_MODELS
from support import ROOT

from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2_lab import networks
from h2t2_tools.checks import ldl_check
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.model import bundle, tflite
from h2t2_tools.model.exact import open_exact
from h2t2_tools.model.inspect import inspect
from h2t2_tools.model.tflite import Operator


def compared(path, samples, layers):
    return ldl_check.compare(path, None, samples, 3, layers, lambda *_: None)


def written(folder, content):
    path = folder / "made.tflite"
    path.write_bytes(content)
    return path


BY_SIZE = [pytest.param(path, marks=pytest.mark.slow if path.stat().st_size > 8000 else ()) for path in TEST_MODELS]


@pytest.mark.parametrize("path", BY_SIZE, ids=lambda p: p.stem)
def test_every_layer_is_the_reference_kernels_byte_for_byte(path):
    report = compared(path, 40, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 40


@pytest.mark.whole
@pytest.mark.parametrize("first", range(0, 70, 10))
def test_random_models_over_every_operator(first, tmp_path):
    """Ten models each: shapes, strides, dilations, paddings, fused activations, per-channel and per-tensor scales drawn."""
    for seed in range(first, first + 10):
        report = compared(written(tmp_path, random_models.random_model(seed)), 12, True)
        assert report["differ"] == 0, (seed, report["first"])


@pytest.mark.parametrize("seed", range(9))
def test_padded_channels_resized_pictures_and_other_ends(seed, tmp_path):
    """PAD of the channel axis, RESIZE_BILINEAR (also of uint8), LOG_SOFTMAX, and ARG_MAX, which is the policy's to compute."""
    path = written(tmp_path, random_models.ended_model(seed))
    report = compared(path, 60, True)
    assert report["differ"] == 0, report["first"]
    (policy,) = inspect(path)["policy"]
    assert policy.startswith(f"yes: {2 + seed % 9} class scores")
    assert inspect(path)["problems"] == []


@pytest.mark.parametrize(
    "end, scale",
    [*(("LOG_SOFTMAX", scale) for scale in (0.0003, 0.01, 0.2, 3)), *(("SOFTMAX", scale) for scale in (0.2, 3, 14, 40))],
)
def test_scores_of_logits_that_lie_near_and_far_apart(end, scale, tmp_path):
    make = random_models.Maker(1, (47,))
    make.tensors[make.first] = replace(make.tensors[make.first], scale=np.array([scale], np.float32))
    y = make.log_scored(make.first) if end == "LOG_SOFTMAX" else make.scored(make.first, end)
    assert compared(make.write(tmp_path, y), 300, True)["differ"] == 0


def test_a_score_behind_a_logarithm_is_its_exponential(tmp_path):
    """On a board, in the integer interpreter and in LiteRT."""
    make = random_models.Maker(1, (4,))
    path = make.write(tmp_path, make.log_scored(make.first))
    board, exact, pi = Int8Model(bundle.from_tflite(path), 2), open_exact(path, 2), TFLiteModel(str(path), 2)
    x = np.array([-20, 31, 30, 4], np.int8)
    real = np.exp(-exact.input_quantisation()[0] * (31 - x.astype(float)))
    for model in (exact, pi):
        assert model.scores(x) == pytest.approx(real / real.sum(), rel=0.04)
        assert model.score(model.run(x)) == model.scores(x)[2]
    assert board.level(board.run(x)) >> 4 == pi.level(pi.run(x)) >> 4 == int(16 * pi.scores(x)[2])


@pytest.mark.parametrize("sizes", [(3, 5), (7, 7), (4, 6)])
def test_a_size_whose_weights_only_float32_has_is_refused_of_uint8(sizes, tmp_path):
    make = random_models.Maker(1, (5, 5, 2))
    y = make.tensor((1, *sizes, 2), make.scale(make.first), make.zero(make.first))
    options = {"align_corners": 0, "half_pixel_centers": 1}
    make.operator("RESIZE_BILINEAR", (make.first, make.numbers(*sizes)), y, **options)
    make.legacy()
    with pytest.raises(UserError, match=r"RESIZE_BILINEAR of uint8 \(5, 5\) to .*: TFLite rounds its weights in float32"):
        bundle.from_tflite(make.write(tmp_path, y))


@pytest.mark.parametrize("dtype", ["int4", "int16"])
def test_weights_of_other_bits_are_named(dtype, tmp_path):
    make = random_models.Maker(4, (6,))
    y = make.dense(make.first, 4)
    weights = make.tensors[make.operators[0].inputs[1]]
    data = np.zeros(12, np.uint8) if dtype == "int4" else weights.data.astype(np.int16)
    make.tensors[weights.index] = replace(weights, dtype=dtype, data=data)
    with pytest.raises(UserError, match=f"its weights, tensor {weights.name}, are {dtype}"):
        bundle.from_tflite(make.write(tmp_path, y))


@pytest.mark.parametrize("command", ["inspect", "bundle", "pair", "convert"])
def test_a_file_of_vela_is_named(command, tmp_path, capsys):
    """Its only operator runs on an Ethos-U alone: neither boards nor LiteRT have it."""
    make = random_models.Maker(3, (6,))
    y = make.operator("CUSTOM", (make.first,), make.tensor((1, 2), 1 / 256, -128))
    make.operators[-1] = replace(make.operators[-1], custom="ethos-u")
    path = make.write(tmp_path, y)
    np.savez(tmp_path / "test.npz", x=np.random.default_rng(1).normal(size=(40, 6)), y=np.arange(40) % 2)
    more = {
        "pair": [path, "--test", tmp_path / "test.npz"],
        "bundle": ["--bundle", tmp_path / "vela.h2m"],
        "convert": ["--calibration", tmp_path / "test.npz", "--out", tmp_path / "out"],
    }.get(command, [])
    words = ["inspect" if command == "bundle" else command, str(path), *map(str, more)]
    assert main(words) == (0 if command == "inspect" else 2)
    told = "".join(capsys.readouterr())
    assert "take the .tflite from before Vela" in told and str(path) in told


def test_a_custom_operator_is_refused_by_its_own_name(tmp_path):
    make = random_models.Maker(4, (6,))
    y = make.operator("CUSTOM", (make.first,), make.tensor((1, 6), 0.1))
    make.operators[-1] = replace(make.operators[-1], custom="TFLite_Detection_PostProcess")
    with pytest.raises(UserError, match="operator 0, CUSTOM TFLite_Detection_PostProcess: a board does not run it"):
        bundle.from_tflite(make.write(tmp_path, y))


@pytest.mark.parametrize("seed", [2, 7, 12, 40, 41])
def test_float_ends_are_left_to_the_host(seed, tmp_path):
    """A QUANTIZE at the start and a DEQUANTIZE at the end, as converters leave them, are not the board's."""
    from h2t2_tools.model.tflite import Tensor
    from h2t2_tools.model.tflite_write import write

    path = tmp_path / "made.tflite"
    path.write_bytes(random_models.random_model(seed))
    graph = tflite.load(path)
    n = len(graph.tensors)
    ends = [graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]]
    real = [Tensor(n + at, f"real{at}", t.shape, "float32") for at, t in enumerate(ends)]
    first = Operator("QUANTIZE", 1, (n,), graph.inputs, {})
    last = Operator("DEQUANTIZE", 2, graph.outputs, (n + 1,), {})
    operators = (first, *graph.operators, last)
    path.write_bytes(write(replace(graph, tensors=(*graph.tensors, *real), operators=operators, inputs=(n,), outputs=(n + 1,))))
    report = compared(path, 12, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 20


@pytest.mark.parametrize("ends", ["in", "out"])
def test_one_float_end_is_enough(ends, tmp_path):
    """int8 in and float out, as some converters leave a model; and the reverse."""
    make = random_models.Maker(2, (5, 5, 2))
    y = make.scored(make.dense(make.flat(make.convolution(make.first)), 3), "SOFTMAX")
    real = make.tensor(make.shape(make.first if ends == "in" else y), dtype="float32")
    if ends == "in":
        make.operators.insert(0, Operator("QUANTIZE", 1, (real,), (make.first,), {}))
        make.first = real
    else:
        y = make.operator("DEQUANTIZE", (y,), real)
    path = make.write(tmp_path, y)
    for layers in (True, False):
        report = compared(path, 12, layers)
        assert report["differ"] == 0 and report["bytes"] > 30 and report["bins"] <= 2


def batch_of_three():
    make = random_models.Maker(2, (5,))
    make.tensors[make.first] = replace(make.tensors[make.first], shape=(3, 5))
    return make, make.weighted("FULLY_CONNECTED", make.first, (4, 5), 0, 5, (3, 4), fused=0)


def test_a_batch_of_three_is_one_sample(tmp_path):
    make, y = batch_of_three()
    path = make.write(tmp_path, y)
    report = compared(path, 7, True)
    assert report["differ"] == 0 and report["bytes"] == 7 * 12
    rows = np.zeros((4, 3, 5), np.int8)
    assert ldl_check.compare(path, rows, 1, 1, False, lambda *_: None)["samples"] == 4
    with pytest.raises(UserError, match=r"inputs of the shape \(4, 5\): .* takes 15 numbers a sample"):
        ldl_check.compare(path, rows[:, 0], 1, 1, False, lambda *_: None)


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_a_sequence_of_one_step_with_a_scale_a_channel(seed, tmp_path):
    """tflite-runtime 2.14 computes the first number only."""
    make = random_models.Maker(seed, (1, 9))
    y = make.dense(make.first, 4)
    assert len(make.tensors[make.operators[0].inputs[1]].scale) == 4
    assert compared(make.write(tmp_path, y), 12, True)["differ"] == 0


def test_what_is_computed_in_place_behind_a_reshape_is_compared_too(tmp_path):
    """tflite-runtime 2.14 computes the softmax where the convolution's output was: this is no difference of the convolution."""
    make = random_models.Maker(4, (4, 5, 2))
    x = make.convolution(make.first, kernel=(1, 1), stride=(1, 1), padding=0, dilation=(1, 1), channels=3)
    flat = make.flat(x)
    again = make.operator("RESHAPE", (flat, make.numbers(1, 20, 3)), make.tensor((1, 20, 3), make.scale(x), make.zero(x)))
    y = make.rescaled(make.scored(again, "SOFTMAX"), name="RELU")
    report = compared(make.write(tmp_path, y), 5, True)
    assert report["differ"] == 0 and report["bytes"] == 5 * 3 * 60


@pytest.mark.parametrize("kind", random_models.STEPLESS)
def test_a_model_without_a_step_is_compared_by_its_output(kind, tmp_path):
    report = compared(written(tmp_path, random_models.stepless(kind)), 4, True)
    assert report["differ"] == 0 and report["bytes"] == 4 * 6


def test_an_axis_that_older_converters_wrote(tmp_path):
    """As in person_detect: the bias has its filter's axis, along which it has no numbers. Interpreters of today refuse that."""
    make = random_models.Maker(3, (5, 5, 2))
    y = make.convolution(make.first, depthwise=True, kernel=(3, 3), channels=2)
    bias = make.operators[0].inputs[2]
    assert len(make.tensors[bias].scale) == 2
    make.tensors[bias] = replace(make.tensors[bias], axis=3)
    path = make.write(tmp_path, y)
    assert compared(path, 5, True)["differ"] == 0
    TFLiteModel(str(path))  # and on a Pi


@pytest.mark.slow
@pytest.mark.parametrize("made", [networks.mobilenet_v1, networks.resnet_8], ids=lambda f: f.__name__)
def test_known_networks(made, tmp_path):
    """MobileNet v1 of 96x96 and ResNet-8 of 32x32, random weights, every layer."""
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    report = compared(written(tmp_path, made()), 5, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 400_000


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.parent.name)
def test_the_shipped_models(path):
    assert compared(path, 100 if path.stat().st_size < 4000 else 5, True)["differ"] == 0


def test_a_difference_is_found_and_named(monkeypatch):
    """A test that cannot fail is a defect: one weight changed in the bundle."""
    path = ROOT / "tests/material/dense_relu.tflite"

    def spoiled(made):
        step = made.steps[1]
        step.weights = bytes([step.weights[0] ^ 64]) + step.weights[1:]
        return bundle_write(made)

    bundle_write = bundle.write
    monkeypatch.setattr(bundle, "write", spoiled)
    report = ldl_check.compare(path, None, 20, 1, True, lambda *_: None)
    assert report["differ"] and "step 1 (fully_connected" in report["first"]


def sequence(steps, inputs, outputs, **changed):
    """A dense layer over a sequence, every step by itself; changed: of its weights' tensor."""
    make = random_models.Maker(5, (steps, inputs))
    y = make.dense(make.first, outputs)
    if changed:
        w = make.operators[0].inputs[1]
        if changed.get("data", ...) is None:
            given = make.tensor((outputs, inputs), 0.01, 0, make.tensors[w].data)
            make.operators.insert(0, Operator("QUANTIZE", 1, (given,), (w,), {}))
        make.tensors[w] = replace(make.tensors[w], **changed)
    return make, make.bytes(y)


def test_every_step_of_a_sequence_is_computed(tmp_path):
    """FULLY_CONNECTED of [1, 6, 9]: as NumPy has it, row by row, not the first one only."""
    make, content = sequence(6, 9, 4)
    path = written(tmp_path, content)
    report = compared(path, 20, True)
    assert report["differ"] == 0 and report["bytes"] == 20 * 6 * 4
    model = Int8Model(bundle.from_tflite(path), 0)
    x = np.random.default_rng(1).integers(-128, 128, (6, 9)).astype(np.int8)
    model.run(x.ravel())
    got = np.frombuffer(bytes(model.arena[model.output : model.output + 24]), np.uint8).astype(int) - 128
    first, operator = make.tensors[make.first], make.operators[0]
    w, y = make.tensors[operator.inputs[1]], make.tensors[operator.outputs[0]]
    real = (x.astype(float) - first.zero[0]) * first.scale[0] @ (w.data.astype(float) * w.scale[:, None]).T
    if operator.inputs[2] >= 0:
        bias = make.tensors[operator.inputs[2]]
        real += bias.data * bias.scale
    wanted = np.clip(np.round(real / y.scale[0]) + y.zero[0], -128, 127)
    assert np.abs(got.reshape(6, 4) - wanted).max() <= 1


@pytest.mark.parametrize(
    "changed, why",
    [
        ({"zero": np.array([0, 3, 0, 0])}, "have a zero point of 3: only 0 is run"),
        ({"dtype": "float32", "data": np.zeros((4, 9), np.float32)}, "are float32, want int8"),
        ({"data": None, "scale": np.full(1, 0.01), "zero": np.zeros(1, np.int64)}, "are computed by the model"),
    ],
)
def test_weights_that_are_not_int8_around_zero_are_refused(changed, why, tmp_path):
    if "zero" in changed and "scale" not in changed:
        changed = {**changed, "scale": np.full(4, 0.01, np.float32)}
    with pytest.raises(UserError, match=why):
        bundle.from_tflite(written(tmp_path, sequence(6, 9, 4, **changed)[1]))


def test_a_bias_of_another_type_is_refused_and_leaves_no_bundle(tmp_path, capsys):
    """A hybrid model's bias is float or int8: read as int32 it would be another."""
    make = random_models.Maker(3, (5, 5, 2))
    y = make.convolution(make.first, kernel=(3, 3), stride=(1, 1), channels=2)
    n = make.operators[0].inputs[2]
    bias = make.tensors[n]
    make.tensors[n] = replace(bias, dtype="int8", data=bias.data.astype(np.int8))
    path = make.write(tmp_path, y)
    assert main(["inspect", str(path), "--bundle", str(tmp_path / "made.h2m")]) == 2
    assert "its bias, tensor" in capsys.readouterr().err and not (tmp_path / "made.h2m").exists()


def test_a_concatenation_is_compared_layer_by_layer_too(tmp_path):
    make = random_models.Maker(8, (4, 4, 2))
    one, other = (make.rescaled(make.first, (0.05, 3)) for _ in range(2))
    y = make.operator("CONCATENATION", (one, other), make.tensor((1, 4, 4, 4), 0.05, 3), axis=3, fused=0)
    report = compared(make.write(tmp_path, y), 3, True)
    assert report["differ"] == 0 and report["bytes"] == 3 * (32 + 32 + 64)


@pytest.mark.parametrize("kind", ["dense", "convolution", "depthwise"])
def test_a_dead_channel_is_folded_to_its_constant(kind, tmp_path):
    """A bias of 2^30, as training leaves it: the output is one number whatever comes in."""
    make = random_models.Maker(4, (6, 6, 3))
    x = make.flat(make.first) if kind == "dense" else make.first
    y = make.dense(x, 4) if kind == "dense" else make.convolution(x, kind == "depthwise", kernel=(3, 3), channels=3)
    operator = make.operators[-1]
    if operator.inputs[2] < 0:
        operator = make.operators[-1] = replace(operator, inputs=(*operator.inputs[:2], make.numbers(0, 0, 0, 0)))
    bias = make.tensors[operator.inputs[2]]
    path = tmp_path / "made.tflite"
    for value in (2**30, -(2**30)):
        make.tensors[bias.index] = replace(bias, data=np.array([value, *bias.data[1:]], np.int32))
        path.write_bytes(make.bytes(y))
        assert compared(path, 20, True)["differ"] == 0
    weights = make.tensors[operator.inputs[1]]
    data = weights.data.copy()
    data[(..., 0) if kind == "depthwise" else 0] = 0
    make.tensors[weights.index] = replace(weights, data=data)
    scale = weights.scale.copy()
    scale[0] = scale[0] * 1e-6  # as the quantizer leaves one; its bias saturates
    make.tensors[weights.index] = replace(weights, data=data, scale=scale)
    for value in (2**31 - 1, -(2**31)):
        make.tensors[bias.index] = replace(bias, data=np.array([value, *bias.data[1:]], np.int32))
        path.write_bytes(make.bytes(y))
        assert compared(path, 20, True)["differ"] == 0


def test_all_that_is_refused_is_said_at_once_by_name(tmp_path):
    make = random_models.Maker(4, (6, 6, 3))
    y = make.operator("CEIL", (make.first,), make.tensor((1, 6, 6, 3), 0.1, 0))
    y = make.operator("FLOOR", (y,), make.tensor((1, 6, 6, 3), 0.1, 0))
    with pytest.raises(UserError, match="operator 0, CEIL: .*; operator 1, FLOOR: "):
        bundle.from_tflite(make.write(tmp_path, y))


# scales of which it makes a difference, in one byte of 256, whether their quotient is a float32 or a float64
ROUNDED = [
    ("QUANTIZE", 0.08029637485742569, 0.01719408482313156, -128, {}),
    ("QUANTIZE", 0.010922425426542759, 0.006010223645716906, -128, {}),
    ("RELU", 0.07207128405570984, 0.05974604934453964, -128, {}),
    ("RELU", 0.08999466150999069, 0.054035671055316925, -128, {}),
    ("LEAKY_RELU", 0.07384850829839706, 0.04232874512672424, 127, {"alpha": 0.38597434759140015}),
    ("LEAKY_RELU", 0.06244872882962227, 0.0316648855805397, 127, {"alpha": 0.676590621471405}),
    ("HARD_SWISH", 0.07960932701826096, 0.06996482610702515, -20, {}),
    ("HARD_SWISH", 0.03795047104358673, 0.0513581708073616, -20, {}),
]


@pytest.mark.parametrize("name, x_scale, y_scale, zero, options", ROUNDED)
def test_quotients_of_scales_are_rounded_as_tflite_rounds_them(name, x_scale, y_scale, zero, options, tmp_path):
    """QUANTIZE divides in float64, the others in float32."""
    make = random_models.Maker(1, (256,))
    make.tensors.clear()
    make.first = make.tensor((1, 256), x_scale, zero)
    y = make.operator(name, (make.first,), make.tensor((1, 256), y_scale, -100 if name == "HARD_SWISH" else zero), **options)
    path = make.write(tmp_path, y)
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    assert ldl_check.compare(path, every, 1, 1, False, lambda *_: None)["differ"] == 0


@pytest.mark.parametrize("name", ["products_9737", "products_9852"])
def test_products_of_scales_too(name):
    """BATCH_MATMUL, MUL: random models of which some bytes once differed."""
    path = ROOT / f"tests/material/{name}.tflite"
    assert ldl_check.compare(path, None, 4, int(name[-4:]), True, lambda *_: None)["differ"] == 0


@pytest.mark.parametrize("dtype, channels", [("int8", 1), ("int8", 2), ("uint8", 1)])
@pytest.mark.parametrize("name", random_models.WEIGHTED)
def test_products_with_weights_scales(name, dtype, channels, tmp_path):
    """Scales whose product in float32 gives other bytes than that in float64; TFLite takes either, by operator and type."""
    make = random_models.Maker(1, (256, 1) if name == "FULLY_CONNECTED" else (16, 16, 1))
    x_scale, w_scale, zero = np.float32(0.046557788), np.float32(0.010264027), 128 if dtype == "uint8" else 0
    make.tensors.clear()
    shape = (256, 1) if name == "FULLY_CONNECTED" else (1, 16, 16, 1)
    make.first = make.tensor(shape, x_scale, zero, dtype=dtype)
    weights = (np.array([31, -31]) + zero).astype(dtype)
    weights = weights.reshape({"CONV_2D": (2, 1, 1, 1), "DEPTHWISE_CONV_2D": (1, 1, 1, 2), "FULLY_CONNECTED": (2, 1)}[name])
    w = make.tensor(weights.shape, [w_scale] * channels, zero, weights, dtype, axis=3 if name == "DEPTHWISE_CONV_2D" else 0)
    b = make.tensor((2,), [x_scale * w_scale] * channels, 0, np.zeros(2, np.int32), "int32")
    window = {"padding": 1, "stride_w": 1, "stride_h": 1, "dilation_w": 1, "dilation_h": 1, "fused": 0}
    options = {"CONV_2D": window, "DEPTHWISE_CONV_2D": {**window, "multiplier": 2}}.get(name, {"fused": 0})
    y = make.tensor((*shape[:-1], 2), 0.030583706, zero, dtype=dtype)
    make.operator(name, (make.first, w, b), y, **options)
    path = make.write(tmp_path, y)
    every = np.arange(-128, 128).astype(np.int8).reshape(1, *shape)
    assert ldl_check.compare(path, every, 1, 1, False, lambda *_: None)["differ"] == 0


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_a_second_input_with_more_axes_is_no_single_number(name, tmp_path):
    """(1, 4) and (1, 1, 4): number by number, though the first has fewer axes."""
    make = random_models.Maker(2, (4,))
    data = np.array([[[-100, 3, 50, 120]]], np.int8)
    other = make.tensor((1, 1, 4), 0.05, 7, data)
    y = make.operator(name, (make.first, other), make.tensor((1, 1, 4), 0.1, 5), fused=0)
    assert compared(make.write(tmp_path, y), 20, True)["differ"] == 0


def test_a_large_picture_padded_in_a_small_model_is_no_absurd_work(tmp_path):
    """What `bundle` writes is opened: the work of a PAD is its output, not its output times its input."""
    make = random_models.Maker(2, (160, 160, 3))
    amount = make.tensor((4, 2), None, 0, np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32), "int32")
    y = make.operator("PAD", (make.first, amount), make.tensor((1, 162, 162, 3), make.scale(0), make.zero(0)))
    assert compared(make.write(tmp_path, y), 1, True)["differ"] == 0


@pytest.mark.parametrize("begin_mask", range(0, 16, 5))
@pytest.mark.parametrize("shrink_mask", [0, 2, 4, 6])
def test_a_strided_slice_begins_where_tflite_does(begin_mask, shrink_mask, tmp_path):
    """A masked beginning is 0, also along an axis that goes; a negative one counts from the end."""
    make = random_models.Maker(3, (4, 5, 3))
    begin, ends, steps = (0, 2, -2, 1), (1, 4, 5, 3), (1, 1, 1, 2)
    shape = []
    for n, size in enumerate(make.shape(make.first)):
        first = 0 if begin_mask >> n & 1 else begin[n] % size
        if not shrink_mask >> n & 1:
            shape.append(len(range(first, ends[n], steps[n])))
    x = make.tensors[make.first]
    y = make.tensor(shape, float(x.scale[0]), int(x.zero[0]))
    masks = {"begin_mask": begin_mask, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_mask": shrink_mask}
    path = tmp_path / "made.tflite"
    inputs = (make.first, *(make.numbers(*values) for values in (begin, ends, steps)))
    path.write_bytes(make.bytes(make.operator("STRIDED_SLICE", inputs, y, **masks)))
    assert compared(path, 5, True)["differ"] == 0


@pytest.mark.slow
def test_random_models_that_no_board_may_run_are_refused(tmp_path):
    """Negative alphas, and scales that are negative or 0: no bundle, and a reason in words."""
    things = set()
    for seed in range(120):
        content, thing = random_models.refused_model(seed)
        things.add(" ".join(thing.split()[:2]))
        with pytest.raises(UserError, match="scale|a multiplier of -"):
            bundle.from_tflite(written(tmp_path, content))
    assert things == {"a negative", "a scale"}


def test_random_models_draw_every_mask():
    masks, negative, factors = set(), 0, 0
    for seed in range(150):
        graph = tflite.read(random_models.random_model(seed))
        for operator in graph.operators:
            if operator.name == "STRIDED_SLICE":
                masks |= {name for name, value in operator.options.items() if value}
                negative += int((graph.tensors[operator.inputs[1]].data < 0).any())
            if operator.name == "PRELU":
                factor = graph.tensors[operator.inputs[1]]
                factors += int((factor.data < factor.zero[0]).any())
    assert masks == {"begin_mask", "end_mask", "shrink_mask"} and negative and factors


def test_a_strided_slice_whose_ends_are_offsets_is_refused(tmp_path):
    make = random_models.Maker(3, (4, 5, 3))
    x = make.tensors[make.first]
    y = make.tensor((1, 2, 5, 3), float(x.scale[0]), int(x.zero[0]))
    inputs = (make.first, *(make.numbers(*values) for values in ((0, 1, 0, 0), (1, 2, 5, 3), (1, 1, 1, 1))))
    with pytest.raises(UserError, match="ends count from its beginnings"):
        bundle.from_tflite(make.write(tmp_path, make.operator("STRIDED_SLICE", inputs, y, offset=True)))


@pytest.mark.parametrize("alpha", [-0.3, 1e30])
def test_a_factor_that_is_not_above_0_is_refused(alpha, tmp_path):
    """LEAKY_RELU with a negative alpha ran with an alpha of 0, one with a huge alpha with another."""
    make = random_models.Maker(3, (16,))
    x = make.tensors[make.first]
    y = make.tensor(x.shape, float(x.scale[0]), int(x.zero[0]))
    with pytest.raises(UserError, match="a multiplier of"):
        bundle.from_tflite(make.write(tmp_path, make.operator("LEAKY_RELU", (make.first,), y, alpha=alpha)))
