"""A language model that sees pictures: a small local server speaks the protocol, openai's own types check both sides of it."""

import base64
import io
import json
import math
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from http_server import serving
from PIL import Image
from support import ROOT, worker_replies

from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.failures import Later, Refused
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.models.spending import Spending
from h2t2_tools.fleet.rdl.worker import Worker

PYTHON = ROOT / ".venv-servers/bin/python"


def completion(text, logprobs=None, usage=(1000, 2)):
    """An answer as OpenAI documents it. logprobs: [(token, {token: probability})]."""
    told = None
    if logprobs is not None:
        tops = [
            {"token": t, "logprob": 0.0, "bytes": None, "top_logprobs": [tokened(w, p) for w, p in of.items()]}
            for t, of in logprobs
        ]
        told = {"content": tops, "refusal": None}
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, "logprobs": told}],
        "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)},
    }  # fmt: skip


def tokened(token, p):
    return {"token": token, "logprob": math.log(p), "bytes": None}


def described(folder, server, **more):
    """A .toml of such a model."""
    about = {"url": f"{server}/v1", "model": "m", "prompt": "Which? {classes}.", "classes": ["no", "yes"], **more}
    path = folder / "vision.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in about.items()))
    return str(path)


def jpeg():
    with io.BytesIO() as file:
        Image.new("RGB", (4, 4), "red").save(file, "JPEG")
        return file.getvalue()


CHECK = """
import json, sys
from pydantic import TypeAdapter
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
for line in sys.stdin:
    request, answer = json.loads(line)
    TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(request, extra="forbid")
    ChatCompletion.model_validate(answer, strict=True)
"""


@pytest.mark.whole
def test_a_picture_is_asked_about(tmp_path):
    """A JPEG as it came, numbers as a PNG; the score is of the first token's probabilities, of all the ways to write it."""
    tops = {"Yes": 0.5, " yes": 0.1, "No": 0.3, "n": 0.05, "maybe": 0.05}
    said = completion("Yes.", [("\n", {"\n": 1}), ("Yes", tops), (".", {".": 1})])
    with serving(lambda *_: json.dumps(said).encode()) as url:
        source = models.Source(described(tmp_path, url), media="image/jpeg")
        worker = Worker(models.load(source), 3, media="image/jpeg")
        photo = jpeg()
        requests = [
            wire.encode_request(3, 1, 1, (len(photo),), photo, dtype=wire.RAW, media="image/jpeg"),
            wire.encode_request(3, 1, 2, (8, 8, 1), bytes(range(64))),
        ]
        replies = [wire.decode_reply(reply) for reply in worker_replies(worker, requests)]
        assert [reply[:4] for reply in replies] == [(wire.OK, 1, 1, 1), (wire.OK, 1, 2, 1)]
        assert abs(replies[0][4] / 32768 - 0.6 / 0.95) < 1e-4
        bodies = [json.loads(body) for _, _, body in url.requests]
    assert {path for path, _, _ in url.requests} == {"/v1/chat/completions"}
    text, image = bodies[0]["messages"][0]["content"]
    assert text["text"] == "Which? no, yes."
    assert base64.b64decode(image["image_url"]["url"].removeprefix("data:image/jpeg;base64,")) == photo
    png = base64.b64decode(bodies[1]["messages"][0]["content"][1]["image_url"]["url"].removeprefix("data:image/png;base64,"))
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    assert pixels.shape == (64, 64) and (pixels[::8, ::8].ravel() == np.arange(64) + 128).all()
    if not PYTHON.exists():
        pytest.skip("no openai here to check it against; run: make .venv-servers/.done")
    given = "".join(json.dumps([body, said]) + "\n" for body in bodies)
    subprocess.run([PYTHON, "-c", CHECK], input=given, text=True, check=True)


@pytest.mark.parametrize(
    "text, logprobs, score",
    [
        ("Yes", None, 1.0),  # a server that tells no probabilities
        (" **no**", None, 0.0),
        ("yes it is", None, 1.0),
        ("yes", [("yes", {"maybe": 1.0})], 1.0),
        ("no", [("no", {"no": 0.9, "yes": 0.1})], 0.1),
    ],
)
def test_what_it_says(tmp_path, text, logprobs, score):
    with serving(lambda *_: json.dumps(completion(text, logprobs)).encode()) as url:
        model = models.load(models.Source(described(tmp_path, url)))
        assert abs(model.scores(np.zeros((1, 8, 8, 1), np.int8))[0] - score) < 1e-9


def test_thinking_before_the_answer_is_not_read_as_the_answer(tmp_path):
    """The tokens of the thinking hold "No" and "Yes", too; the answer is yes."""
    thinking = [("<think>", {"<think>": 0.99, "No": 1e-5, "Yes": 1e-6}), ("\n", {"\n": 1}), ("</think>", {"</think>": 1})]
    said = completion("\n\nyes", [*thinking, ("\n\n", {"\n\n": 1}), ("yes", {"yes": 0.9, "no": 0.1})])
    with serving(lambda *_: json.dumps(said).encode()) as url:
        model = models.load(models.Source(described(tmp_path, url)))
        assert model.scores(np.zeros((1, 8, 8, 1), np.int8)) == pytest.approx([0.9])


@pytest.mark.parametrize(
    "text, why", [("No, I can't help with that.", "want one of no, yes"), ("<think>Is there a", "it thinks.*extra")]
)
def test_a_refusal_is_no_answer(tmp_path, text, why):
    with serving(lambda *_: json.dumps(completion(text)).encode()) as url:
        model = models.load(models.Source(described(tmp_path, url)))
        with pytest.raises(ValueError, match=why):
            model.scores(np.zeros((1, 8, 8, 1), np.int8))


def test_the_label_of_an_event_is_that_of_the_text(tmp_path):
    """Of three classes the named one has less than half of the probability; the worker's label is the named one."""
    said = completion("a", [("a", {"a": 0.4, "b": 0.3, "c": 0.3})])
    with serving(lambda *_: json.dumps(said).encode()) as url:
        worker = Worker(models.load(models.Source(described(tmp_path, url, classes=["a", "b", "c"]), event=0)), 3)
        (reply,) = worker_replies(worker, [wire.encode_request(3, 1, 1, (8, 8), bytes(64))])
    assert wire.decode_reply(reply)[0] == wire.OK and wire.decode_reply(reply)[3] == 1


def test_entries_of_the_users_own_reach_the_server(tmp_path):
    """`extra` adds entries to a request and replaces ours: some models want another temperature, or another limit of tokens."""
    with serving(lambda *_: json.dumps(completion("yes")).encode()) as url:
        path = described(tmp_path, url)
        Path(path).write_text(
            Path(path).read_text() + 'extra = { reasoning_effort = "none", max_completion_tokens = 900, temperature = 1 }\n'
        )
        models.load(models.Source(path)).scores(np.zeros((1, 8, 8), np.int8))
        request = json.loads(url.requests[0][2])
    assert (request["reasoning_effort"], request["max_completion_tokens"], request["temperature"]) == ("none", 900, 1)
    assert "max_tokens" not in request and request["model"] == "m"


def schema_of(body):
    """The schema that a request asks the answer to have; None without one."""
    asked = json.loads(body).get("response_format")
    return asked and asked["json_schema"]["schema"]


def test_the_server_is_asked_for_an_object_with_one_of_the_classes(tmp_path):
    """A server with structured output cannot answer anything else."""
    with serving(lambda *_: json.dumps(completion('{"answer": "yes"}')).encode()) as url:
        model = models.load(models.Source(described(tmp_path, url)))
        assert model.scores(np.zeros((1, 8, 8), np.int8)).tolist() == [1.0]
        (schema,) = (schema_of(body) for _, _, body in url.requests)
        assert schema["properties"] == {"answer": {"type": "string", "enum": ["no", "yes"]}}
        assert schema["required"] == ["answer"] and schema["additionalProperties"] is False
        plain_path = described(tmp_path, url, structured=False)
        models.load(models.Source(plain_path)).scores(np.zeros((1, 8, 8), np.int8))
        assert schema_of(url.requests[1][2]) is None


@pytest.mark.parametrize("refused", [{"response_format"}, {"logprobs"}, {"response_format", "logprobs"}])
def test_a_server_without_an_entry_is_asked_without_it(tmp_path, refused):
    """It answers 400 to the entries that it does not know. What it takes is found out once."""

    def answer(_path, body, _headers):
        known = not refused & json.loads(body).keys()
        return json.dumps(completion("yes")).encode() if known else (400, b"unknown entry")

    with serving(answer) as url:
        model = models.load(models.Source(described(tmp_path, url)))
        assert model.scores(np.zeros((1, 8, 8), np.int8)).tolist() == [1.0]
        tries = len(url.requests)
        assert tries > 1
        model.scores(np.zeros((1, 8, 8), np.int8))
        assert len(url.requests) == tries + 1
        assert {"response_format", "logprobs"} - json.loads(url.requests[-1][2]).keys() == refused


def test_a_picture_that_the_server_refuses_is_asked_about_once(tmp_path):
    """Once the server has answered, 400 is about the picture, not about the entries of the request."""
    status = [0]

    def answer(*_):
        return (status[0], b"the picture is too large") if status[0] else json.dumps(completion("yes")).encode()

    with serving(answer) as url:
        model = models.load(models.Source(described(tmp_path, url)))
        model.scores(np.zeros((1, 8, 8), np.int8))
        status[0] = 400
        with pytest.raises(Refused, match="too large"):
            model.scores(np.zeros((1, 8, 8), np.int8))
        assert len(url.requests) == 2 and schema_of(url.requests[1][2])


def test_many_classes_of_which_one_begins_with_another(tmp_path):
    with serving(lambda *_: json.dumps(completion("Blackbird")).encode()) as url:
        path = described(tmp_path, url, classes=["black", "blackbird", "blue tit"])
        model = models.load(models.Source(path, None))
        assert model.scores(np.zeros((1, 8, 8, 1), np.int8)).tolist() == [[0, 1, 0]]


def test_one_bad_answer_is_one_error_reply(tmp_path):
    """Of three pictures one is answered with what is no class: the other two are answered."""
    lock, n = threading.Lock(), [0]

    def answer(*_):
        with lock:
            n[0] += 1
            return json.dumps(completion("perhaps" if n[0] == 2 else "yes")).encode()

    with serving(answer) as url:
        worker = Worker(models.load(models.Source(described(tmp_path, url, parallel=1))), 3)
        replies = worker_replies(worker, [wire.encode_request(3, 1, k, (8, 8), bytes(64)) for k in range(3)])
    assert [wire.decode_reply(reply)[0] for reply in replies] == [wire.OK, wire.FAILED, wire.OK]
    assert worker.counts == {"ok": 2, STATUS[wire.FAILED]: 1}


def test_of_a_batch_each_sample_without_an_answer_has_its_own_status(tmp_path):
    """A picture that the server cannot decode (500) may be asked about later, one that it refuses (400) may not."""
    statuses = {b"\x00": 200, b"\x01": 500, b"\x02": 400}

    def answer(_path, body, _headers):
        url = json.loads(body)["messages"][0]["content"][1]["image_url"]["url"]
        status = statuses[base64.b64decode(url.partition(",")[2])]
        return json.dumps(completion("yes")).encode() if status == 200 else (status, b"{}")

    with serving(answer) as url:
        path = described(tmp_path, url, logprobs=False, structured=False)
        worker = Worker(models.load(models.Source(path, media="image/jpeg")), 3, media="image/jpeg")
        asked = [wire.encode_request(3, 1, k, (1,), bytes([k]), dtype=wire.RAW, media="image/jpeg") for k in range(3)]
        replies = [wire.decode_reply(reply)[0] for reply in worker_replies(worker, asked)]
    assert replies == [wire.OK, wire.LATER, wire.FAILED] and len(url.requests) == 3


@pytest.mark.parametrize("order", [(0, 1, 1), (1, 0, 1)])
def test_of_a_batch_without_an_answer_each_sample_has_its_own_status(tmp_path, order):
    """One picture is refused (400) while the server loads its model (503): the others may be asked about later."""
    answers = [(400, b"cannot decode"), (503, b"loading")]

    def answer(_path, body, _headers):
        url = json.loads(body)["messages"][0]["content"][1]["image_url"]["url"]
        return answers[base64.b64decode(url.partition(",")[2])[0]]

    with serving(answer) as url:
        path = described(tmp_path, url, logprobs=False, structured=False, timeout_s=0.5)
        worker = Worker(models.load(models.Source(path, media="image/jpeg")), 3, media="image/jpeg")
        asked = [
            wire.encode_request(3, 1, n, (1,), bytes([k]), dtype=wire.RAW, media="image/jpeg") for n, k in enumerate(order)
        ]
        replies = [wire.decode_reply(reply)[0] for reply in worker_replies(worker, asked)]
    assert replies == [[wire.FAILED, wire.LATER][k] for k in order]


def test_of_a_batch_that_the_server_refuses_each_picture_is_asked_about_once(tmp_path):
    with serving(lambda *_: (400, b"cannot decode")) as url:
        worker = Worker(models.load(models.Source(described(tmp_path, url, logprobs=False, structured=False))), 3)
        replies = worker_replies(worker, [wire.encode_request(3, 1, n, (8, 8), bytes(64)) for n in range(3)])
        assert [wire.decode_reply(reply)[0] for reply in replies] == [wire.FAILED] * 3 and len(url.requests) == 3


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"[]", wire.LATER), (b'{"choices": []}', wire.FAILED), (b"\xff", wire.LATER), (b"", wire.LATER),
        (b'{"choices": [{"message": {"content": null}}]}', wire.LATER),
    ],
)  # fmt: skip
def test_no_answer_at_all(tmp_path, answer, status):
    said = []
    with serving(lambda *_: answer) as url:
        worker = Worker(models.load(models.Source(described(tmp_path, url))), 3, said.append)
        (reply,) = worker_replies(worker, [wire.encode_request(3, 1, 1, (8, 8), bytes(64))])
    assert wire.decode_reply(reply)[0] == status and "answer" in said[0]


def test_an_overloaded_server_is_asked_again(tmp_path):
    n = [0]

    def answer(*_):
        n[0] += 1
        return (429, b"slow down") if n[0] == 1 else json.dumps(completion("yes")).encode()

    with serving(answer) as url:
        model = models.load(models.Source(described(tmp_path, url)))
        assert model.scores(np.zeros((1, 8, 8), np.int8)).tolist() == [1.0] and n[0] == 2


def test_a_day_may_cost_so_much(tmp_path):
    """Over restarts, until the next day; each answer costs 1,000 tokens of 2 a million."""
    with serving(lambda *_: json.dumps(completion("yes")).encode()) as url:
        path = described(tmp_path, url, price_in=2.0, a_day=0.003)
        for _ in range(2):
            models.load(models.Source(path)).scores(np.zeros((1, 8, 8), np.int8))
        with pytest.raises(Later, match="today's 0.003 are spent"):
            models.load(models.Source(path)).scores(np.zeros((1, 8, 8), np.int8))
        assert len(url.requests) == 2
    now = [time.time()]
    limited = Spending(tmp_path / "one.json", requests=1, clock=lambda: now[0])
    limited.count_request()
    with pytest.raises(Later, match="1 requests of today are made") as tomorrow:
        limited.count_request()
    assert tomorrow.value.retry_s == 86400 - now[0] % 86400
    now[0] += 86400
    limited.count_request()


@pytest.mark.parametrize(
    "more, why",
    [
        ({"classes": ["yes"]}, "classes"),
        ({"classes": ["yes", "Yes!"]}, "that differ"),
        ({"url": "ftp://x"}, "url"),
        ({"a_day": 1.0}, "price_in"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_description_that_is_none(tmp_path, more, why):
    with pytest.raises(UserError, match=why):
        models.load(models.Source(described(tmp_path, "http://127.0.0.1:1", **more)))


def test_what_is_no_picture_is_an_error_reply(tmp_path):
    said = []
    worker = Worker(models.load(models.Source(described(tmp_path, "http://127.0.0.1:1"))), 3, said.append)
    (reply,) = worker_replies(worker, [wire.encode_request(3, 1, 1, (30,), bytes(30))])
    assert wire.decode_reply(reply)[0] == wire.FAILED and "is no picture" in said[0]
