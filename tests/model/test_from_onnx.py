"""ONNX networks as sources: translated as onnxruntime computes them, quantised, and run by the integer interpreter."""

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from h2t2_tools.common.errors import UserError  # noqa: E402
from h2t2_tools.model.convert import distil  # noqa: E402
from h2t2_tools.model.convert.from_onnx import onnx_network  # noqa: E402
from h2t2_tools.model.convert.readers import open_source  # noqa: E402
from h2t2_tools.model.exact import open_exact  # noqa: E402
from h2t2_tools.model.inspect import inspect  # noqa: E402
from h2t2_tools.model.tflite import load  # noqa: E402

NETWORKS = sorted(Path(__file__).parents[1].joinpath("material/onnx").glob("*.onnx"))
PICTURE, WAVE, ROW = (1, 4, 6, 8), (1, 3, 16), (1, 10)
RNG = np.random.default_rng(7)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def network(
    tmp_path: Path, kind: str, shape: tuple[int, ...], *constants: np.ndarray, before: str = "", opset: int = 17, **attributes
):
    """An .onnx file with one node; constants: its further inputs; before: a node without attributes in front of it."""
    names = [f"constant{n}" for n in range(len(constants))]
    nodes = [helper.make_node(before, ["x"], ["first"], name="before")] if before else []
    nodes.append(helper.make_node(kind, ["first" if before else "x", *names], ["y"], name="the_node", **attributes))
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape[1:]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for array, name in zip(constants, names)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    inferred = onnx.shape_inference.infer_shapes(model)
    rank = len(inferred.graph.output[0].type.tensor_type.shape.dim)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank))
    path = tmp_path / "network.onnx"
    onnx.save(model, path)
    return path


LONG = np.int64
CASES = {
    "conv": ("Conv", PICTURE, [numbers(5, 4, 3, 3), numbers(5)], {}),
    "conv, same": ("Conv", PICTURE, [numbers(5, 4, 3, 3)], {"pads": [1, 1, 1, 1]}),
    "conv, strides and dilation": (
        "Conv", PICTURE, [numbers(5, 4, 2, 2)], {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 0, 2]},
    ),
    "conv, auto_pad": ("Conv", PICTURE, [numbers(5, 4, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "conv, depthwise": ("Conv", PICTURE, [numbers(8, 1, 3, 3), numbers(8)], {"group": 4, "pads": [1, 1, 1, 1]}),
    "conv, time": ("Conv", WAVE, [numbers(5, 3, 4), numbers(5)], {"strides": [3], "pads": [2, 1]}),
    "conv, time, depthwise": ("Conv", WAVE, [numbers(3, 1, 3)], {"group": 3, "dilations": [2]}),
    "batch normalisation": ("BatchNormalization", PICTURE, [numbers(4), numbers(4), numbers(4), np.abs(numbers(4)) + 0.1], {}),
    "gemm": ("Gemm", ROW, [numbers(3, 10), numbers(3)], {"transB": 1}),
    "gemm, alpha and beta": ("Gemm", ROW, [numbers(10, 3), numbers(1, 3)], {"alpha": 0.5, "beta": 2.0}),
    "matmul": ("MatMul", ROW, [numbers(10, 3)], {}),
    "matmul of a sequence": ("MatMul", (1, 5, 10), [numbers(10, 3)], {}),
    "add, per channel": ("Add", PICTURE, [numbers(1, 4, 1, 1)], {}),
    "sub, a number": ("Sub", PICTURE, [numbers()], {}),
    "mul, a row": ("Mul", PICTURE, [numbers(8)], {}),
    "div": ("Div", ROW, [np.abs(numbers(10)) + 0.5], {}),
    "max": ("Max", ROW, [numbers(1)], {}),
    "clip": ("Clip", PICTURE, [np.float32(-0.5).reshape(()), np.float32(0.75).reshape(())], {}),
    "clip to 6": ("Clip", ROW, [np.float32(0).reshape(()), np.float32(6).reshape(())], {}),
    "clip, attributes": ("Clip", ROW, [], {"min": 0.0, "opset": 10}),
    "min": ("Min", PICTURE, [numbers(4, 1, 1)], {}),
    "leaky, steep": ("LeakyRelu", ROW, [], {"alpha": 1.5}),
    "prelu": ("PRelu", PICTURE, [numbers(4, 1, 1)], {}),
    **{f"gelu, {how}": ("Gelu", PICTURE, [], {"approximate": how, "opset": 20}) for how in ("none", "tanh")},
    **{kind: (kind, PICTURE, [], {}) for kind in ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid")},
    "abs": ("Abs", PICTURE, [], {}),
    "neg": ("Neg", ROW, [], {}),
    "exp of log softmax": ("Exp", ROW, [], {"before": "LogSoftmax"}),
    "square": ("Pow", ROW, [np.array(2.0, np.float32)], {}),
    "elu": ("Elu", PICTURE, [], {"alpha": 0.7}),
    "selu": ("Selu", ROW, [], {}),
    "softplus": ("Softplus", PICTURE, [], {}),
    "mish": ("Mish", ROW, [], {"opset": 18}),
    "layer normalisation": ("LayerNormalization", (1, 5, 10), [numbers(10), numbers(10)], {"axis": -1}),
    "layer normalisation, two axes": ("LayerNormalization", PICTURE, [numbers(6, 8), numbers(6, 8)], {"axis": 2}),
    "instance normalisation": ("InstanceNormalization", PICTURE, [numbers(4), numbers(4)], {}),
    "instance normalisation, time": ("InstanceNormalization", WAVE, [numbers(3), numbers(3)], {}),
    "conv, groups": ("Conv", PICTURE, [numbers(6, 2, 3, 3), numbers(6)], {"group": 2, "pads": [1, 1, 1, 1]}),
    "conv transposed": ("ConvTranspose", PICTURE, [numbers(4, 5, 3, 3), numbers(5)], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "conv transposed, wide": (
        "ConvTranspose", PICTURE, [numbers(4, 5, 4, 2)],
        {"strides": [3, 1], "pads": [1, 0, 2, 1], "output_padding": [1, 0]},
    ),
    "conv transposed, cut": ("ConvTranspose", PICTURE, [numbers(4, 2, 2, 2)], {"strides": [2, 2], "pads": [2, 2, 2, 2]}),
    "conv transposed, time": ("ConvTranspose", WAVE, [numbers(3, 2, 4)], {"strides": [2], "pads": [1, 1]}),
    "slice": ("Slice", PICTURE, [np.array(n, LONG) for n in ([1, 5], [3, -9], [1, 3], [1, -2])], {}),
    "slice of a picture": ("Slice", PICTURE, [np.array([1, 2], LONG), np.array([3, 99], LONG), np.array([1, 2], LONG)], {}),
    "gather": ("Gather", WAVE, [np.array([2, 0, 1], LONG)], {"axis": 1}),
    "gather, one": ("Gather", WAVE, [np.array(-1, LONG)], {"axis": 2}),
    "largest": ("ReduceMax", WAVE, [], {"axes": [2], "keepdims": 0}),
    "largest of channels": ("ReduceMax", PICTURE, [], {"axes": [1]}),
    "global largest": ("GlobalMaxPool", PICTURE, [], {}),
    "identity": ("Identity", PICTURE, [], {"before": "Relu"}),
    "max pool": ("MaxPool", PICTURE, [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "max pool, padded": (
        "MaxPool", PICTURE, [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "before": "Relu"},
    ),
    "max pool, padded, of any sign": (
        "MaxPool", PICTURE, [], {"kernel_shape": [3, 4], "strides": [2, 2], "pads": [1, 2, 1, 1]},
    ),
    "max pool, ceiling": ("MaxPool", PICTURE, [], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "max pool, padded, ceiling": (
        "MaxPool", PICTURE, [], {"kernel_shape": [2, 3], "strides": [3, 2], "pads": [1, 1, 0, 1], "ceil_mode": 1},
    ),
    "max pool, time": ("MaxPool", WAVE, [], {"kernel_shape": [2], "strides": [2]}),
    "max pool, time, padded": ("MaxPool", WAVE, [], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    "average pool, ceiling": ("AveragePool", (1, 3, 17), [], {"kernel_shape": [2], "strides": [2], "ceil_mode": 1}),
    "average pool, ceiling, nothing to count": (
        "AveragePool", (1, 4, 5, 7), [], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
    ),
    "average pool": ("AveragePool", PICTURE, [], {"kernel_shape": [3, 2], "strides": [1, 2]}),
    "average pool, padding counted": (
        "AveragePool", PICTURE, [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "average pool, padding not counted": ("AveragePool", PICTURE, [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "global average": ("GlobalAveragePool", PICTURE, [], {}),
    "mean over a picture": ("ReduceMean", PICTURE, [], {"axes": [2, 3], "keepdims": 0}),
    "mean over channels": ("ReduceMean", PICTURE, [], {"axes": [1]}),
    "sum over time": ("ReduceSum", WAVE, [np.array([2], LONG)], {"keepdims": 0}),
    "flatten": ("Flatten", PICTURE, [], {}),
    "reshape": ("Reshape", PICTURE, [np.array([1, 8, 24], LONG)], {}),
    "squeeze": ("Squeeze", (1, 1, 5), [np.array([1], LONG)], {}),
    "unsqueeze": ("Unsqueeze", ROW, [np.array([1], LONG)], {}),
    "transpose": ("Transpose", PICTURE, [], {"perm": [0, 3, 1, 2]}),
    "transpose, channels first": ("Transpose", PICTURE, [], {"perm": [0, 2, 3, 1]}),
    "concatenation with a constant": ("Concat", PICTURE, [numbers(1, 2, 6, 8)], {"axis": 1}),
    "concatenation with constants, flat": ("Concat", ROW, [numbers(1, 3), numbers(1, 2)], {"axis": 1}),
    "mul, repeated to a constant": ("Mul", (1, 5, 1), [numbers(1, 5, 7)], {}),
    "sub, repeated to a constant": ("Sub", (1, 3, 1, 1), [numbers(3, 4, 2)], {}),
    "pad": ("Pad", PICTURE, [np.array([0, 0, 1, 2, 0, 0, 3, 0], LONG)], {}),
    "resize, nearest": (
        "Resize", PICTURE, [np.array([], np.float32), np.array([1, 1, 2, 3], np.float32)],
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "resize, linear": ("Resize", PICTURE, [np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}),
    "resize, corners": (
        "Resize", PICTURE, [np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)],
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    "root": ("Sqrt", ROW, [], {"before": "Abs"}),
    "log softmax": ("LogSoftmax", ROW, [], {}),
    "log softmax of channels": ("LogSoftmax", PICTURE, [], {"axis": 1}),
    "softmax": ("Softmax", ROW, [], {}),
    "softmax of channels": ("Softmax", WAVE, [], {"axis": 1}),
    "softmax of rows": ("Softmax", PICTURE, [], {"axis": 2}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_node_computes_what_onnxruntime_computes(case, tmp_path):
    """onnx_file itself compares the outputs on random samples, to 1e-5 of the largest."""
    kind, shape, constants, options = CASES[case]
    path = network(tmp_path, kind, shape, *constants, **options)
    assert onnx_network.onnx_file(path).shape == shape[1:]


def test_a_translation_that_computes_something_else_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(onnx_network.TRANSLATORS, "Sigmoid", onnx_network.TRANSLATORS["Relu"])
    with pytest.raises(UserError, match="differs from onnxruntime by"):
        onnx_network.onnx_file(network(tmp_path, "Sigmoid", ROW))


@pytest.mark.parametrize(
    ("kind", "shape", "constants", "options", "message"),
    [
        ("Erf", ROW, [], {}, "node the_node: Erf has no translation: only as part of GELU"),
        ("Einsum", (1, 5, 10), [numbers(10, 4)], {"equation": "abc,cd->abd"}, "write it as nn.Linear or torch.matmul"),
        ("Pow", ROW, [np.float32(3)], {}, "Pow with an exponent other than 2: write it as products"),
        (
            "AveragePool",
            PICTURE,
            [],
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1, "count_include_pad": 1},
            "use no padding",
        ),
        ("AveragePool", WAVE, [], {"kernel_shape": [3], "strides": [3], "ceil_mode": 1}, "or no padding and ceil_mode=False"),
        (
            "Pad",
            PICTURE,
            [np.array([0, 0, 1, 1, 0, 0, 1, 1], LONG)],
            {"mode": "reflect"},
            "Pad in mode reflect: pad with zeros",
        ),
    ],
)
def test_a_refusal_names_the_node_and_what_to_export_instead(kind, shape, constants, options, message, tmp_path):
    with pytest.raises(UserError, match=f"{message}.*; --distil trains trees on its scores"):
        onnx_network.onnx_file(network(tmp_path, kind, shape, *constants, **options))


@pytest.mark.slow
def test_a_network_that_is_refused_is_distilled(tmp_path):
    """What onnxruntime makes of samples trains the trees; sin() has no translation."""
    path, x = network(tmp_path, "Sin", (1, 3), before="Softmax"), 3 * numbers(600, 3)
    with pytest.raises(UserError, match="Sin has no translation"):
        open_source(path)
    trees = distil.student(path, x[:300])
    assert trees.kind == "trees distilled from a network" and trees.checked_scores(x).shape == (600, 3)
    (tmp_path / "trees.tflite").write_bytes(trees.quantise(trees.prepared(x[:300])))
    model = open_exact(tmp_path / "trees.tflite")
    found = np.array([model.outputs(model.quantise(row)).argmax() for row in trees.prepared(x[300:])])
    assert (found == x[300:].argmax(1)).mean() > 0.9


def test_files_that_are_no_networks_are_refused(tmp_path):
    path = tmp_path / "noise.onnx"
    path.write_bytes(b"\x08\x01noise")
    with pytest.raises(UserError, match="noise.onnx"):
        open_source(path)


@pytest.mark.slow
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_a_gelu_stays_one_operator_of_the_int8_model(approximate, tmp_path):
    """The exact one as PyTorch writes it: x (1 + erf(x / sqrt(2))) / 2, in five nodes."""
    from h2t2_tools.checks.ldl_check import compare

    parts = [("Div", "h", "root"), ("Erf", "0"), ("Add", "1", "one"), ("Mul", "h", "2"), ("Mul", "3", "half")]
    gelu = [helper.make_node(kind, inputs, [str(n)]) for n, (kind, *inputs) in enumerate(parts)]
    if approximate == "tanh":
        gelu = [helper.make_node("Gelu", ["h"], ["4"], approximate="tanh")]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["h"]), *gelu, helper.make_node("Softmax", ["4"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 10])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 6])],
        [numpy_helper.from_array(np.float32(value), name) for name, value in (("root", 2**0.5), ("one", 1), ("half", 0.5))]
        + [numpy_helper.from_array(numbers(10, 6), "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), tmp_path / "gelu.onnx")
    model = tmp_path / "int8.tflite"
    model.write_bytes(open_source(tmp_path / "gelu.onnx").quantise(numbers(60, 10)))
    assert [o.options["approximate"] for o in load(model).operators if o.name == "GELU"] == [approximate == "tanh"]
    assert compare(model, None, 8, 3, True, lambda *_: None)["differ"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LeakyRelu", "PRelu", "Min", "Max", "Clip", "Abs", "ReduceMax", "Softplus", "Elu"])
def test_no_node_stays_in_floats_as_int8(kind, tmp_path):
    """ai-edge-quantizer does not know some of these operators."""
    from h2t2_tools.checks.ldl_check import compare

    constants = {"PRelu": [numbers(8)], "Min": [numbers(8)], "Max": [numbers(8)], "Clip": [np.float32(-0.5), np.float32(1)]}
    values = {"first": numbers(10, 8), "last": numbers(1 if kind == "ReduceMax" else 8, 3)}
    values |= {f"constant{n}": value for n, value in enumerate(constants.get(kind, []))}
    attributes = {"axes": [1], "keepdims": 1} if kind == "ReduceMax" else {}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "first"], ["h"]),
            helper.make_node(kind, ["h", *list(values)[2:]], ["g"], **attributes),
            helper.make_node("MatMul", ["g", "last"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["y"]),
        ], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 10])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "node.onnx")
    model, x = tmp_path / "int8.tflite", numbers(60, 10)
    source_of_it = open_source(tmp_path / "node.onnx")
    model.write_bytes(source_of_it.quantise(x))
    assert not inspect(model)["problems"]
    assert compare(model, None, 8, 3, True, lambda *_: None)["differ"] == 0


@pytest.mark.slow
def test_bands_of_unlike_channels_keep_their_precision_as_int8(tmp_path):
    """A convolution whose channels differ by 100 times; a batch normalisation of two bands each makes them alike."""
    size = np.array([3, 1, 0.1, 0.03], np.float32)
    values = {"w": numbers(4, 4, 1, 1) * size.reshape(4, 1, 1, 1), "shape": np.array([1, 8, 3, 8], LONG), "scale": np.ones(8)}
    values |= {"shift": numbers(8) / 9, "mean": numbers(8) / 99, "variance": 4 * size.repeat(2) ** 2}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Reshape", ["c", "shape"], ["bands"]),
            helper.make_node("BatchNormalization", ["bands", "scale", "shift", "mean", "variance"], ["n"]),
            helper.make_node("Flatten", ["n"], ["f"]), helper.make_node("Sigmoid", ["f"], ["y"]),
        ], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, PICTURE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 192])],
        [numpy_helper.from_array(v if v.dtype == LONG else v.astype(np.float32), name) for name, v in values.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "bands.onnx")
    opened, x, model = open_source(tmp_path / "bands.onnx"), numbers(60, *PICTURE[1:]), tmp_path / "int8.tflite"
    model.write_bytes(opened.quantise(x))
    exact = open_exact(model)
    assert np.abs(exact.scores(exact.quantise(x[0])) - opened.scores(x[:1])[0]).max() < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    ["softmax of channels", "exp of log softmax", *(case for case in CASES if "constant" in case or "of any sign" in case)],
)
def test_boards_run_what_needs_a_rewrite_as_int8(case, tmp_path):
    from h2t2_tools.checks.ldl_check import compare

    kind, shape, constants, options = CASES[case]
    model, x = tmp_path / "int8.tflite", numbers(60, *shape[1:])
    model.write_bytes(open_source(network(tmp_path, kind, shape, *constants, **options)).quantise(x))
    assert not inspect(model)["problems"]
    assert compare(model, None, 8, 3, True, lambda *_: None)["differ"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_a_pytorch_network_becomes_an_int8_model_for_boards(path, tmp_path):
    """Exported by tests/material/onnx/export.py. The int8 model runs in the integer interpreter, byte for byte like LiteRT."""
    from h2t2_tools.checks.ldl_check import compare

    opened = open_source(path)
    x = RNG.standard_normal((60, *opened.shape)).astype(np.float32)
    content = opened.quantise(x)
    model = tmp_path / "int8.tflite"
    model.write_bytes(content)
    assert not inspect(model)["problems"]
    report = compare(model, None, 8, 3, True, lambda *_: None)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 0
