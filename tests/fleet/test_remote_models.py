"""Remote models of every kind."""

import re

import numpy as np
import pytest
from http_server import serving
from support import ROOT, worker_replies

from h2t2.link import wire
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.rdl import server
from h2t2_tools.fleet.rdl.models import Source, load
from h2t2_tools.fleet.rdl.worker import Worker


def test_a_function_of_ones_own_is_a_model_and_may_fail(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def mean(x): return (x.reshape(len(x), -1).mean(1) + 128) / 255\n"
        "def wrong(x): raise KeyError('no')\n"
        "def few(x): return [0.5]\n"
        "def nan(x): return [float('nan')] * len(x)\n"
    )
    payloads = [wire.encode_request(1, 2, n, (4,), bytes([n] * 4)) for n in (10, 20, 120)]
    answers = worker_replies(Worker(load(Source(f"{tmp_path}/mine.py:mean")), 1), payloads)
    assert [wire.decode_reply(reply)[3] for reply in answers] == [1, 1, 1]
    scores = [wire.decode_reply(reply)[4] / 32768 for reply in answers]
    assert np.allclose(scores, [(n + 128) / 255 for n in (10, 20, 120)], atol=1e-4)
    for name in ("wrong", "few", "nan"):
        said = []
        answers = worker_replies(Worker(load(Source(f"{tmp_path}/mine.py:{name}")), 1, said.append), payloads)
        assert [wire.decode_reply(reply)[0] for reply in answers] == [wire.FAILED] * 3 and said
    for path in (f"{tmp_path}/mine.py:absent", f"{tmp_path}/nowhere.py:f"):
        with pytest.raises(UserError, match=re.escape(path.split(":")[0])):
            load(Source(path))


def test_a_function_may_give_the_scores_of_all_classes(tmp_path):
    """As predict_proba does; the event's column is its score."""
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def proba(x): p = np.linspace(0, 1, len(x)); return np.stack([1 - p, p], 1)\n"
        "def column(x): return np.linspace(0, 1, len(x))[:, None]\n"
    )
    x = np.zeros((3, 4), np.int8)

    def scores(name, event):
        return load(Source(f"{tmp_path}/mine.py:{name}", event)).scores(x).tolist()

    assert scores("proba", 1) == [0, 0.5, 1] == scores("column", 1) and scores("proba", 0) == [1, 0.5, 0]
    assert scores("proba", None) == [[1, 0], [0.5, 0.5], [0, 1]]
    with pytest.raises(ValueError, match="2 scores a sample, none of them of class 2"):
        scores("proba", 2)


@pytest.mark.parametrize("name", ["mean", "mean_int8_one"])
def test_onnx_models(name):
    """A float model with a free batch, an int8 one for single samples: the mean of four numbers (material/make_onnx.py)."""
    pytest.importorskip("onnxruntime", reason="no onnxruntime; run: pip install onnxruntime")
    model = load(Source(str(ROOT / f"tests/material/{name}.onnx"), event=0, scale=1 / 255, zero_point=-128))
    assert model.shape == (4,)
    batch = np.array([[-128] * 4, [127] * 4, [0, 1, 2, 3]], np.int8)
    expected = (batch.astype(float).mean(1) + 128) / 255
    assert np.allclose(model.scores(batch), expected, atol=1e-6)


@pytest.mark.parametrize("dictionaries", [False, True])
def test_an_export_of_skl2onnx_serves_its_probabilities(tmp_path, dictionaries):
    """skl2onnx puts the labels first; with its zipmap the probabilities are dictionaries."""
    pytest.importorskip("onnxruntime", reason="no onnxruntime; run: pip install onnxruntime")
    onnx = pytest.importorskip("onnx", reason="no onnx; run: pip install onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    weights = {"coefficients": [1.0, 2.0, -1.0, -2.0], "intercepts": [0.0, 0.5], "classlabels_ints": [0, 1]}
    domain, names = "ai.onnx.ml", ["label", "table" if dictionaries else "probabilities"]
    nodes = [helper.make_node("LinearClassifier", ["x"], names, domain=domain, post_transform="SOFTMAX", **weights)]
    outputs = [helper.make_tensor_value_info("label", kinds.INT64, [None])]
    if dictionaries:
        nodes.append(helper.make_node("ZipMap", ["table"], ["probabilities"], domain=domain, classlabels_int64s=[0, 1]))
        values = helper.make_map_type_proto(kinds.INT64, helper.make_tensor_type_proto(kinds.FLOAT, []))
        outputs.append(helper.make_value_info("probabilities", helper.make_sequence_type_proto(values)))
    else:
        outputs.append(helper.make_tensor_value_info("probabilities", kinds.FLOAT, [None, 2]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kinds.FLOAT, [None, 2])], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "classifier.onnx")
    model = load(Source(str(tmp_path / "classifier.onnx"), event=1, scale=0.5, zero_point=0))
    (score,) = model.scores(np.array([[2, 4]], np.int8))  # 1 and 2: logits 5 and -4.5
    assert score == pytest.approx(1 / (1 + np.exp(9.5)), rel=1e-3)


def test_a_damaged_onnx_file_is_refused(tmp_path):
    pytest.importorskip("onnxruntime", reason="no onnxruntime; run: pip install onnxruntime")
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(UserError, match="bad.onnx"):
        load(Source(str(tmp_path / "bad.onnx")))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((401, b"wrong key"), "status 401"), ((404, b"no such model"), "status 404"), ((503, b"loading"), "loading"),
        (b"<html>", "not JSON"), (b'{"choices": [{"message": {"content": ""}}]}', "empty"),
        (b'{"choices": [{"message": {"content": "grey"}}]}', ""),
    ],
)  # fmt: skip
def test_a_worker_asks_a_test_question_before_it_serves(tmp_path, caplog, answer, why):
    about = 'model = "m"\nprompt = "{classes}"\nclasses = ["no", "yes"]\n'
    with serving(lambda *_: answer) as url:
        (tmp_path / "m.toml").write_text(f'url = "{url}/v1"\n{about}')
        server.test(load(Source(str(tmp_path / "m.toml"))))
    assert why in caplog.text and bool(caplog.text) == bool(why) and len(url.requests) >= 1
