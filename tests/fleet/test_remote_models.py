"""Remote models of every kind."""

import base64
import json
import re

import numpy as np
import pytest
from http_server import serving
from support import ROOT, until, worker_replies

from h2t2.link import wire
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.gate import Gate, GateConfig
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


def served(status, datatype="FP32", shape=(-1, 2, 3)):
    """A server of both protocols that describes its model, and answers a question with a status; 200: as a model does."""

    def answer(_path, body, _headers):
        if not body:
            described = {"name": "x", "datatype": datatype, **({"shape": list(shape)} if shape else {})}
            return json.dumps({"extensions": [], "inputs": [described]}).encode()
        output = {"name": "p", "datatype": "FP32", "shape": [1, 1], "data": [0.75]}
        content = json.dumps({"predictions": [0.75], "outputs": [output]}).encode()
        return content if status == 200 else (status, b"no such thing")

    return serving(answer)


def asked_at_start(caplog, source, *served_args, path):
    """(the questions' contents, the log) of a worker's start."""
    with served(*served_args) as url:
        server.test(load(Source(url + path, **source)))
        return [json.loads(body) for _, _, body in url.requests if body], caplog.text


V1, V2 = "/v1/models/m:predict", "/v2/models/m"
SHAPED = {"dtype": wire.INT8, "shape": (2, 3), "scale": 0.5, "zero_point": -128}


@pytest.mark.parametrize("path", [V1, V2])
@pytest.mark.parametrize("status", [401, 404, 503, 500, 400])
@pytest.mark.parametrize("source", [SHAPED, {"dtype": wire.RAW, "media": "image/jpeg"}, {}], ids=["shaped", "raw", "unknown"])
def test_a_test_question_to_a_server_says_what_is_wrong(caplog, path, status, source):
    """A server that refuses a blank sample of unknown shape (400), or fails on it (500), still answers."""
    _, log = asked_at_start(caplog, source, status, "BYTES" if source and source is not SHAPED else "FP32", (), path=path)
    assert (f"status {status}" in log) == (source is SHAPED or status not in (400, 500))


@pytest.mark.parametrize("path", [V1, V2])
@pytest.mark.parametrize("source", [SHAPED, {}], ids=["shaped", "unknown"])
def test_a_server_that_answers_a_test_question_is_not_complained_about(caplog, path, source):
    questions, log = asked_at_start(caplog, source, 200, path=path)
    assert len(questions) == 1 and not log


@pytest.mark.parametrize("entries", [{}, {"tensor": "numbers"}])
@pytest.mark.parametrize("path", [V1, V2])
def test_a_gate_whose_server_wants_another_token_says_so_before_the_first_sample(tmp_path, path, entries):
    with served(401) as url, Gate(GateConfig(topic="x", remote=url + path, folder=tmp_path, **entries)) as gate:
        assert until(lambda: gate.health.unanswered)
        assert "status 401" in gate.health.unanswered and gate.health.is_away


def test_a_test_question_is_about_zeros_of_the_models_shape(caplog):
    """Of the pair's shape; of the one that the server describes, where nobody else knows it."""
    (question,), _ = asked_at_start(caplog, SHAPED, 200, path=V1)
    assert question == {"instances": [[[64.0] * 3] * 2]}  # zeros as a device sends them: .5 (0 + 128)
    (question,), _ = asked_at_start(caplog, SHAPED, 200, "INT8", (-1, 2, 3), path=V2)
    assert (question["inputs"][0]["shape"], question["inputs"][0]["data"]) == ([1, 2, 3], [0] * 6)
    (question,), _ = asked_at_start(caplog, {}, 200, "FP32", (-1, 4), path=V2)
    assert (question["inputs"][0]["shape"], question["inputs"][0]["data"]) == ([1, 4], [0] * 4)
    _, log = asked_at_start(caplog, {}, 400, "FP32", (-1, 4), path=V2)
    assert "status 400" in log  # the server described this shape


def test_a_test_question_about_pictures_holds_one(caplog):
    (question,), _ = asked_at_start(caplog, {"dtype": wire.RAW, "media": "image/jpeg"}, 200, path=V1)
    assert base64.b64decode(question["instances"][0]["b64"]).startswith(b"\x89PNG")


@pytest.mark.parametrize("answer", [b'{"predictions": [{"a": 1}]}', b'{"scores": [1]}', b"<html>"])
def test_a_test_question_with_an_invalid_answer_does_not_stop_the_worker(caplog, answer):
    with serving(lambda *_: answer) as url:
        server.test(load(Source(url + V1, **SHAPED)))
    assert "does not answer a test question" in caplog.text
