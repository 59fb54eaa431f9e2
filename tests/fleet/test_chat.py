"""A language model that sees pictures: a small local server speaks the protocol, openai's own types check both sides of it."""

import base64
import io
import json
import math
import subprocess
import threading
import time

import numpy as np
import pytest
from http_server import serving
from PIL import Image
from support import ROOT

from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2_tools.common.errors import UserError
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
    said = completion("Yes.", [("\n", {"\n": 1}), ("Yes", {"Yes": 0.5, " yes": 0.1, "No": 0.3, "n": 0.05, "maybe": 0.05})])
    with serving(lambda *_: json.dumps(said).encode()) as url:
        source = models.Source(described(tmp_path, url), media="image/jpeg")
        worker = Worker(models.load(source), 3, media="image/jpeg")
        photo = jpeg()
        requests = [
            wire.encode_request(3, 1, 1, (len(photo),), photo, dtype=wire.RAW, media="image/jpeg"),
            wire.encode_request(3, 1, 2, (8, 8, 1), bytes(range(64))),
        ]
        replies = [wire.decode_reply(reply) for reply in worker.answer(requests)]
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
        replies = worker.answer([wire.encode_request(3, 1, k, (8, 8), bytes(64)) for k in range(3)])
    assert [wire.decode_reply(reply)[0] for reply in replies] == [wire.OK, wire.FAILED, wire.OK]
    assert worker.counts == {"ok": 2, STATUS[wire.FAILED]: 1}


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"choices": []}', b'{"choices": [{"message": {"content": null}}]}', b"\xff"])
def test_no_answer_at_all(tmp_path, answer):
    said = []
    with serving(lambda *_: answer) as url:
        worker = Worker(models.load(models.Source(described(tmp_path, url))), 3, said.append)
        (reply,) = worker.answer([wire.encode_request(3, 1, 1, (8, 8), bytes(64))])
    assert wire.decode_reply(reply)[0] == wire.FAILED and "answer" in said[0]


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
        with pytest.raises(ValueError, match="today's 0.003 are spent"):
            models.load(models.Source(path)).scores(np.zeros((1, 8, 8), np.int8))
        assert len(url.requests) == 2
    now = [time.time()]
    limited = Spending(tmp_path / "one.json", requests=1, clock=lambda: now[0])
    limited.count_request()
    with pytest.raises(ValueError, match="1 requests of today are made"):
        limited.count_request()
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
    (reply,) = worker.answer([wire.encode_request(3, 1, 1, (30,), bytes(30))])
    assert wire.decode_reply(reply)[0] == wire.FAILED and "is no picture" in said[0]
