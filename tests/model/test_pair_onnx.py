"""ONNX files as exporters write them, as remote and as local models: each works, or is refused in a sentence."""

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from h2t2_tools.cli.main import main  # noqa: E402
from h2t2_tools.common import pairs  # noqa: E402
from h2t2_tools.common.errors import UserError  # noqa: E402
from h2t2_tools.fleet.gate import GateConfig  # noqa: E402
from h2t2_tools.fleet.gate.remote import source_of  # noqa: E402
from h2t2_tools.fleet.rdl import models  # noqa: E402
from h2t2_tools.fleet.rdl.models import Source, load  # noqa: E402

WEIGHTS = np.array([[1, -1], [0, 0], [2, -2], [0, 0]])
FLOAT, DOUBLE, HALF, LONG = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT64


def network(path, kind=FLOAT, shape=("n", 4), also=None, first=None, **how):
    """An .onnx of four numbers to the probabilities of two classes, output p.

    also: (node, output) of an output in front of that; first: a node between the input and the weights.
    """
    own = FLOAT if first else kind
    nodes = [
        first,
        helper.make_node("MatMul", ["first" if first else "x", "w"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"]),
    ]
    ends = [helper.make_tensor_value_info("p", own, [shape[0] if shape else None, 2])]
    if also:
        nodes, ends = [*nodes, also[0]], [also[1], *ends]
    weights = [numpy_helper.from_array(WEIGHTS.astype(helper.tensor_dtype_to_np_dtype(own)), "w")]
    weights.append(numpy_helper.from_array(np.array([8, 4]), "eight"))
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    graph = helper.make_graph(list(filter(None, nodes)), "g", inputs, ends, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, **how)
    return path


# an exporter's second output, in front of the scores: features, or the number of the class
FEATURES = helper.make_node("Sigmoid", ["x"], ["features"]), helper.make_tensor_value_info("features", FLOAT, ["n", 4])
LABEL = helper.make_node("ArgMax", ["z"], ["label"], keepdims=0, axis=1), helper.make_tensor_value_info("label", LONG, ["n"])
# what the inside of a network may do with its input
EIGHT, WHOLE = helper.make_node("Reshape", ["x", "eight"], ["first"]), helper.make_node("Cast", ["x"], ["first"], to=FLOAT)


@pytest.fixture
def pair(tmp_path, capsys):
    """A function that makes a pair with this remote model; (exit status, accuracy of the remote model, what it wrote)."""
    x = np.random.default_rng(1).normal(0, 1, (200, 4)).astype(np.float32)
    np.savez(tmp_path / "test.npz", x=x, y=(x @ WEIGHTS)[:, 1] > 0)
    local = network(tmp_path / "local.onnx")

    def make(remote, *options):
        words = ["pair", local, remote, "--test", tmp_path / "test.npz", "--out", tmp_path / "out", *options]
        status = main(list(map(str, words)))
        card = tmp_path / "out/pair.json"
        accuracy = json.loads(card.read_text())["metrics"]["rdl"]["float"]["accuracy"] if status == 0 else 0
        return status, accuracy, capsys.readouterr().err

    return make


def served(tmp_path):
    """The scores of the pair's remote model, as a worker runs it, agree with the labels."""
    made = pairs.load(str(tmp_path / "out"))
    return ((models.answers(made) > 0.5) == made.y).mean() > 0.97


@pytest.mark.parametrize(
    "file",
    [{"kind": DOUBLE}, {"kind": HALF}, {"shape": None}, {"shape": (8, 4), "first": EIGHT}, {"shape": (1, 4)}, {"also": LABEL}],
    ids=["double", "float16", "no shape", "batch of 8", "batch of 1", "label first"],
)
def test_what_exporters_write_is_a_remote_model(pair, tmp_path, file):
    assert pair(network(tmp_path / "big.onnx", **file))[:2] == (0, 1) and served(tmp_path)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ({"kind": LONG, "first": WHOLE}, "its input is tensor(int64), want one of float, double, float16, int8"),
        ({"shape": (4,)}, "its input has no batch dimension"),
    ],
)
def test_an_input_that_no_offload_fills_is_refused(pair, tmp_path, file, reason):
    status, _, said = pair(network(tmp_path / "big.onnx", **file))
    assert status == 2 and f"{tmp_path / 'big.onnx'}: {reason}" in said


def test_of_two_outputs_of_numbers_somebody_names_the_scores(pair, tmp_path):
    """The first one, features between 0 and 1, was the score."""
    two = network(tmp_path / "two.onnx", also=FEATURES)
    status, _, said = pair(two)
    assert status == 2 and f"{two}: its outputs are features, p: --output NAME" in said
    status, _, said = pair(two, "--output", "probabilities")
    assert status == 2 and f"{two}: no output probabilities; its outputs are features, p" in said
    assert pair(two, "--output", "p")[:2] == (0, 1) and served(tmp_path)


def test_workers_and_gates_name_the_output_too(tmp_path):
    two = network(tmp_path / "two.onnx", also=FEATURES)
    x = np.array([[1, 0, 0, 0]], np.float32)
    (expected,) = load(Source(str(network(tmp_path / "one.onnx")))).scores(x)
    gate = source_of(GateConfig(topic="t", remote="two.onnx", output="p", tensor="x", folder=tmp_path))
    for source in (Source(str(two), output="p"), gate):
        assert load(source).scores(x) == [expected]
    with pytest.raises(UserError, match=r"two\.onnx: its outputs are features, p: --output NAME"):
        load(Source(str(two)))
    with pytest.raises(UserError, match="--output is of an .onnx"):
        load(Source("http://127.0.0.1:9/v1/models/big:predict", output="p"))


def test_weights_beside_the_file_go_into_the_pair(pair, tmp_path):
    """PyTorch's exporter writes big.onnx and big.onnx.data."""
    big, weights = tmp_path / "big.onnx", tmp_path / "big.onnx.data"
    network(big, save_as_external_data=True, location=weights.name, size_threshold=0)
    assert weights.stat().st_size and pair(big)[:2] == (0, 1)
    weights.unlink()
    assert served(tmp_path)
    status, _, said = pair(big, "--force")
    assert status == 2 and f"{big}: onnx cannot copy it" in said


@pytest.mark.parametrize("first", [None, EIGHT])
def test_a_local_model_with_a_fixed_batch(tmp_path, capsys, first):
    x = np.random.default_rng(1).normal(0, 1, (200, 4)).astype(np.float32)
    np.savez(tmp_path / "test.npz", x=x, y=(x @ WEIGHTS)[:, 1] > 0)
    local = network(tmp_path / "local.onnx", shape=(8, 4), first=first)
    words = ["convert", local, "--calibration", tmp_path / "test.npz", "--test", tmp_path / "test.npz", "--no-bundle"]
    status = main([*map(str, words), "--out", str(tmp_path / "out")])
    assert status == (2 if first else 0)
    assert not first or f"{local}: " in capsys.readouterr().err
