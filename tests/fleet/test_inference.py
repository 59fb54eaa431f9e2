"""Remote models behind the open inference protocol: a real MLServer, and Triton's own client for tensors as bytes."""

import json
import subprocess
import time
import urllib.request
from dataclasses import replace

import numpy as np
import pytest
from http_server import serving
from support import ROOT, worker_replies

from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.broker import free_port
from h2t2_tools.fleet.failures import Later
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.models.model_source import SECOND_TOKEN, TOKEN
from h2t2_tools.fleet.rdl.models.web import Web, token
from h2t2_tools.fleet.rdl.worker import Worker

PYTHON = ROOT / ".venv-servers/bin/python"
NEEDED = "no model servers here; run: make .venv-servers/.done"


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory):
    """(address, the model's probabilities of the digits' test part)."""
    if not PYTHON.exists():
        pytest.skip(NEEDED)
    folder = tmp_path_factory.mktemp("mlserver")
    command = [PYTHON, ROOT / "tests/model_server.py", ROOT / "models/digits", folder]
    command += [str(free_port()) for _ in range(3)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    url = f"http://127.0.0.1:{told['port']}"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([PYTHON.parent / "mlserver", "start", folder], cwd=folder, stdout=log, stderr=log)
    try:
        while True:
            assert server.poll() is None, (folder / "log").read_text()[-2000:]
            try:
                urllib.request.urlopen(f"{url}/v2/models/digits/ready", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield url, np.array(told["scores"])
    finally:
        server.terminate()
        server.wait()


@pytest.mark.slow
def test_a_real_server_answers_as_its_model_does(mlserver):
    url, expected = mlserver
    pair = pairs.load("digits")
    x = np.stack([np.frombuffer(pair.test_payload(n), np.int8).reshape(8, 8, 1) for n in range(64)])
    for output, wanted in (("predict_proba", expected[:64]), ("predict", (expected[:64] > 0.5).astype(float))):
        model = models.load(models.of_pair(pair, f"{url}/v2/models/digits#{output}"))
        assert np.abs(model.scores(x) - wanted).max() < (0.02 if output == "predict_proba" else 1e-9)
    worker = Worker(models.load(models.of_pair(pair, f"{url}/v2/models/digits#predict_proba")), 2)
    requests = [wire.encode_request(2, 1, n, (8, 8, 1), pair.test_payload(n)) for n in range(16)]
    replies = [wire.decode_reply(reply) for reply in worker_replies(worker, requests)]
    assert [reply[3] for reply in replies] == (expected[:16] > 0.5).astype(int).tolist()


@pytest.mark.slow
def test_what_a_real_server_refuses_is_an_error_reply(mlserver):
    said = []
    url, _ = mlserver
    worker = Worker(models.load(models.of_pair(pairs.load("digits"), f"{url}/v2/models/none#x")), 2, said.append)
    (reply,) = worker_replies(worker, [wire.encode_request(2, 1, 1, (8, 8, 1), bytes(64))])
    assert wire.decode_reply(reply)[0] == wire.LATER and worker.counts[STATUS[wire.LATER]] == 1
    assert "status 404" in said[0] and "/v2/models/none" in said[0]


TRITON = """
import json, sys
import numpy as np
import tritonclient.http as client
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput, InferResult
body = sys.stdin.buffer.read()
x = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
given = InferInput("image", [4, 4], "INT8")
given.set_data_from_numpy(x)
mine, length = InferenceServerClient.generate_request_body([given], outputs=[InferRequestedOutput("p")])
head = int(sys.argv[1])
ours = json.loads(body[:head])
theirs = json.loads(mine[:length])
answer = json.dumps({"model_name": "m", "outputs": [
    {"name": "other", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}},
    {"name": "p", "datatype": "FP32", "shape": [4, 2], "parameters": {"binary_data_size": 32}}]}).encode()
data = np.float32([0]).tobytes() + np.float32([[.9, .1], [.2, .8], [.5, .5], [0, 1]]).tobytes()
read = InferResult.from_response_body(answer + data, header_length=len(answer)).as_numpy("p").tolist()
print(json.dumps({"ours": ours, "theirs": theirs, "same": body[head:] == mine[length:], "read": read,
                  "answer": answer.decode(), "data": data.hex()}))
"""


@pytest.mark.whole
def test_tensors_as_bytes_are_what_tritons_client_writes_and_reads():
    """The package index has no Triton: its own client builds the request that ours must equal, and reads the answer."""
    if not PYTHON.exists():
        pytest.skip(NEEDED)
    given = {}

    def answer(path, body, headers):
        if path == "/v2":
            return json.dumps({"name": "s", "version": "1", "extensions": ["binary_tensor_data"]}).encode()
        if not path.endswith("/infer"):
            return json.dumps({"name": "m", "inputs": [{"name": "image", "datatype": "INT8", "shape": [-1, 4]}]}).encode()
        head = headers["Inference-Header-Content-Length"]
        made = subprocess.run([PYTHON, "-c", TRITON, head], input=body, capture_output=True, check=True).stdout
        given.update(json.loads(made))
        content = given["answer"].encode()
        return 200, content + bytes.fromhex(given["data"]), {"Inference-Header-Content-Length": str(len(content))}

    with serving(answer) as url:
        model = models.load(models.Source(f"{url}/v2/models/m#p", 1))
        scores = model.scores(np.arange(-8, 8, dtype=np.int8).reshape(4, 4))
    assert given["same"] and np.allclose(scores, [row[1] for row in given["read"]])
    ours, theirs = given["ours"]["inputs"][0], given["theirs"]["inputs"][0]
    assert ours == theirs and given["ours"]["outputs"][0]["name"] == given["theirs"]["outputs"][0]["name"] == "p"


def served(model, infer, extensions=()):
    """What a server says: its model's metadata, and an answer by infer(request)."""

    def answer(path, body, _):
        if path == "/v2":
            return json.dumps({"extensions": list(extensions)}).encode()
        return json.dumps(infer(json.loads(body)) if path.endswith("/infer") else model).encode()

    return answer


def test_a_model_that_tells_no_shape_gets_rows():
    """As MLServer's scikit-learn models."""
    asked = []

    def infer(request):
        asked.append(request["inputs"][0])
        return {"outputs": [{"name": "p", "datatype": "FP32", "shape": [2, 1], "data": [0.25, 0.75]}]}

    with serving(served({"inputs": [{"name": "x", "datatype": "FP32"}]}, infer)) as url:
        model = models.load(models.Source(f"{url}/v2/models/m", 1))
        assert model.scores(np.zeros((2, 2, 3), np.float32)).tolist() == [0.25, 0.75]
    assert asked[0]["shape"] == [2, 6]


def test_bytes_and_single_samples():
    """RAW bytes as base64; a model whose batch is fixed at one is asked sample by sample."""
    asked = []

    def infer(request):
        asked.append(request["inputs"][0])
        return {"outputs": [{"name": "p", "datatype": "FP32", "shape": [1, 2], "data": [0.25, 0.75]}]}

    with serving(served({"inputs": [{"name": "jpeg", "datatype": "BYTES", "shape": [1, 1]}]}, infer)) as url:
        model = models.load(models.Source(f"{url}/v2/models/m", 1))
        assert model.scores([b"one", b"two"]).tolist() == [0.75, 0.75]
        with pytest.raises(ValueError, match="it takes BYTES; offloads of this pair are numbers"):
            model.scores(np.zeros((1, 4), np.int8))
    assert [one["data"] for one in asked] == [["b25l"], ["dHdv"]] and asked[0]["parameters"] == {"content_type": "base64"}


OUTPUT = {"name": "p", "datatype": "FP32", "shape": [1, 2], "data": [0.25, 0.75]}


@pytest.mark.parametrize(
    "answer, why",
    [
        ({}, 'no "outputs"'),
        ({"outputs": [5]}, 'no "outputs"'),
        ({"outputs": []}, "no output at all"),
        ({"outputs": [{**OUTPUT, "datatype": "BYTES"}]}, "want numbers"),
        ({"outputs": [{**OUTPUT, "shape": [10**9, 10**9]}]}, "2 numbers for an output"),
        ({"outputs": [{**OUTPUT, "shape": [2, 1]}]}, "for 1 samples"),
        ({"outputs": [{**OUTPUT, "shape": "x"}]}, "want numbers"),
    ],
)
def test_an_answer_that_is_none(answer, why):
    model = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]}
    with serving(served(model, lambda _: answer)) as url, pytest.raises(ValueError, match=why):
        models.load(models.Source(f"{url}/v2/models/m")).scores(np.zeros((1, 4), np.int8))


def test_a_server_that_fails_is_left_alone_for_a_while():
    """The second call waits for nothing; the token is sent, and is in no error."""
    status = [503]

    def answer(path, body, headers):
        return status[0], b'{"a": 1}', {"Retry-After": "0"}

    with serving(answer) as url:
        web = Web("hush-hush")
        with pytest.raises(Later, match="503") as first:
            web.call(f"{url}/x")
        with pytest.raises(Later, match="asked again in") as second:
            web.call(f"{url}/x")
        assert len(url.requests) == 1 and url.requests[0][1]["Authorization"] == "Bearer hush-hush"
        assert "hush" not in str(first.value) + str(second.value)
        time.sleep(first.value.retry_s)
        status[0] = 302
        with pytest.raises(ValueError, match="302"):  # a redirect would carry the token to somebody else
            web.call(f"{url}/x")
        assert len(url.requests) == 2


def test_a_token_is_bound_to_a_host(tmp_path, monkeypatch):
    """A pair may name a stranger's server. The user's token goes there only if its text names the host, too."""
    file = tmp_path / "token"
    file.touch(mode=0o600)
    mine = models.Source("https://a.example:99/v2/models/m", secret=str(file))
    for text, named, why in [
        ("hush", True, ""), ("hush", False, "the pair names the server a.example:99"), ("a.example hush", False, ""),
        ("a.example:99 hush", False, ""), ("b.example hush", True, "this token is for b.example"),
        ("b.example hush", False, "b.example"),
    ]:  # fmt: skip
        file.write_text(text)
        source = replace(mine, named=named)
        if why:
            with pytest.raises(UserError, match=why):
                token(source.path, source)
        else:
            assert token(source.path, source) == "hush"
    file.write_text("")
    assert token(mine.path, replace(mine, named=False)) == ""
    pair = pairs.load("digits")
    remote = pair.info.remote.model_copy(update={"model": mine.path})
    stranger = replace(pair, info=pair.info.model_copy(update={"remote": remote}))
    monkeypatch.setenv(TOKEN, "hush")
    with pytest.raises(UserError, match="the pair names the server"):
        models.load(models.of_pair(stranger))
    models.load(models.of_pair(stranger, mine.path))  # with --remote


def test_a_description_of_a_pair_reads_no_secret_outside_the_pair(tmp_path):
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text("hush")
    (tmp_path / "pair").mkdir()
    path = tmp_path / "pair/vision.toml"
    path.write_text('url = "https://a.example"\nmodel = "m"\nprompt = "?"\nclasses = ["a", "b"]\nsecret = "../token"\n')
    models.load(models.Source(str(path)))
    with pytest.raises(UserError, match="outside the pair's folder"):
        models.load(models.Source(str(path), named=False))


def test_secrets_stay_secret(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text("hush\n")
    file.chmod(0o644)
    with pytest.raises(UserError, match="others may read this secret"):
        models.load(models.Source("https://a.example/v2/models/m", secret=str(file)))
    file.chmod(0o600)
    models.load(models.Source("https://a.example/v2/models/m", secret=str(file)))
    with pytest.raises(UserError, match="want https"):
        models.load(models.Source("http://a.example/v2/models/m", secret=str(file)))
    second = models.of_pair(pairs.load("digits"), "http://a.example/v2/models/m", variable=SECOND_TOKEN)
    monkeypatch.setenv(TOKEN, "hush")
    models.load(second)  # another server's token is none of its business
    monkeypatch.setenv(SECOND_TOKEN, "hush")
    with pytest.raises(UserError, match="want https"):
        models.load(second)
    monkeypatch.setenv(TOKEN, "hush\nhush")
    with pytest.raises(UserError, match="one line"):
        models.load(models.Source("https://a.example/v2/models/m"))
