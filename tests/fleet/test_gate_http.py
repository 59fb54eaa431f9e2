"""A gate's door to HTTP: decisions, tickets, who may ask, and what strangers send."""

import base64
import http.client
import json
import threading
from contextlib import contextmanager

import pytest
from gate_decisions import Held
from support import until

from h2t2 import units
from h2t2.cpython import worker_wire
from h2t2.cpython.pair import error_table
from h2t2.link import wire
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.failures import Cause
from h2t2_tools.fleet.gate import Gate, GateConfig
from h2t2_tools.fleet.gate.remote import Answer, ModelRemote, Question

pytest.importorskip("fastapi", reason="the extra dashboard is not installed")

from h2t2_lab.gate_day.messages import jpeg
from h2t2_tools.fleet.gate import http_door
from h2t2_tools.fleet.gate.http_door import HttpDoor


@contextmanager
def door(folder, token="", **entries):
    """(ask, remote): ask(method, path, content, **headers) -> (status, content)."""
    remote = Held()
    config = GateConfig(topic="x", remote="worker:1", folder=folder, beta=0.2, deadline=20, **entries)
    with Gate(config, remote) as gate:
        served = HttpDoor(gate, config, "127.0.0.1", 0, token)

        def ask(method, path, content=None, **headers):
            connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
            body = content if content is None or isinstance(content, bytes) else json.dumps(content)
            connection.request(method, path, body, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in b"{[" else text

        try:
            yield ask, remote
        finally:
            remote.released.set()
            served.close()


def test_a_sample_is_decided_and_a_picture_travels_unchanged(tmp_path):
    photo = jpeg()
    with door(tmp_path) as (ask, remote):
        remote.released.set()
        for n in range(40):
            sample = {"key": "porch", "score": 0.45, "identity": str(n), "picture": base64.b64encode(photo).decode()}
            status, decision = ask("POST", "/v1/decide", sample)
            assert status == 200 and decision["key"] == "porch" and decision["source"] in ("local", "remote", "fallback")
        assert remote.asked and {(payload.data, payload.media) for payload in remote.asked} == {(photo, "image/jpeg")}
        assert ask("POST", "/v1/decide", sample) == (200, decision)  # a repetition
        status, other = ask("POST", "/v1/decide", {**sample, "key": "hall", "score": 0.9})
        assert status == 200 and (other["key"], other["score"]) == ("hall", 0.9)  # another camera counts from 1, too


def test_a_ticket_names_a_decision_that_comes_later(tmp_path):
    with door(tmp_path) as (ask, remote):
        tickets = {}
        for n in range(40):
            status, answer = ask("POST", "/v1/decide", {"score": 0.45, "tensor": [1], "wait": False})
            tickets[n] = status, answer
            if status == 202:
                break
        assert status == 202 and ask("GET", f"/v1/decisions/{answer['ticket']}") == (202, answer)
        remote.released.set()
        until(lambda: ask("GET", f"/v1/decisions/{answer['ticket']}")[0] == 200)
        assert ask("GET", f"/v1/decisions/{answer['ticket']}")[1]["source"] == "remote"
        assert ask("GET", "/v1/decisions/another")[0] == 404


@pytest.mark.parametrize(
    "content",
    [
        {}, {"score": 2}, {"score": "x"}, {"score": [0.1, 0.2, 0.3]}, {"score": 0.5, "key": "x" * 65},
        {"score": 0.5, "other": 1}, {"score": 0.5, "key": ""}, {"score": 0.5, "key": "ü" * 40},
        {"score": 0.5, "picture": "///"}, {"score": 0.5, "picture": base64.b64encode(b"no picture").decode()},
        {"score": 0.5, "text": "a", "tensor": [1]}, b"[", b"\xff", b"", b'{"score": NaN}',
        b'{"score": 0.5, "tensor": [NaN]}', b'{"score": 0.5, "tensor": [1e999]}', b'{"score": 0.5, "key": "\\ud800"}',
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_sample_is_refused_and_the_next_is_decided(content, tmp_path):
    with door(tmp_path) as (ask, _):
        status, answer = ask("POST", "/v1/decide", content)
        assert status in (400, 422) and answer["detail"]
        assert ask("POST", "/v1/decide", {"score": 0.01})[0] == 200


def request(dtype=wire.FLOAT32, model=1, **options):
    data = {wire.FLOAT32: bytes(8), wire.RAW: b"words"}.get(dtype, b"\1\2")
    shape = (5,) if dtype == wire.RAW else (2,)
    return wire.encode_request(model, 7, 9, shape, data, dtype=dtype, **{"remaining_ms": 20000, **options})


OCTETS = {"Content-Type": "application/octet-stream"}


def test_a_board_asks_the_remote_model_and_decides_itself(tmp_path):
    """The reply carries the numbers of its request, and what the model saw is what the board sent."""
    with door(tmp_path) as (ask, remote):
        remote.released.set()
        for dtype in (wire.FLOAT32, wire.INT8, wire.UINT8, wire.RAW):
            status, reply = ask("POST", "/v1/ask", request(dtype, media="text/plain" if dtype == wire.RAW else ""), **OCTETS)
            assert status == 200 and wire.decode_reply(reply) == (wire.OK, 7, 9, 1, 32768)
        floats, int8, uint8, raw = remote.asked
        assert floats.tensor == (0, 0) and (raw.data, raw.media, raw.dtype) == (b"words", "text/plain", wire.RAW)
        assert (int8.data, int8.dtype, int8.shape) == (b"\1\2", wire.INT8, (2,)) and uint8.dtype == wire.UINT8
        assert wire.decode_reply(ask("POST", "/v1/ask", request(model=2), **OCTETS)[1])[0] == wire.WRONG_MODEL


def test_a_board_hears_in_time_that_no_answer_came(tmp_path):
    with door(tmp_path) as (ask, remote):
        assert wire.decode_reply(ask("POST", "/v1/ask", request(remaining_ms=50), **OCTETS)[1])[:3] == (wire.BUSY, 7, 9)
        remote.given = Answer(-1, "away", Cause.SERVER)
        remote.released.set()
        assert wire.decode_reply(ask("POST", "/v1/ask", request(), **OCTETS)[1]) == (wire.LATER, 7, 9, -1, 0)
        remote.given = Answer(-1, "no picture")
        assert wire.decode_reply(ask("POST", "/v1/ask", request(), **OCTETS)[1]) == (wire.FAILED, 7, 9, -1, 0)


def test_boards_questions_without_an_answer_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(http_door, "MAX_QUESTIONS", 2)
    with door(tmp_path) as (ask, remote):
        for status in (wire.BUSY, wire.BUSY, wire.BUSY):
            assert wire.decode_reply(ask("POST", "/v1/ask", request(remaining_ms=50), **OCTETS)[1])[0] == status
        assert len(remote.asked) == 2
        remote.released.set()
        assert until(lambda: wire.decode_reply(ask("POST", "/v1/ask", request(), **OCTETS)[1])[0] == wire.OK)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        request()[:-1],
        request() + b"x",
        b"\1" + request()[1:],
        request()[:-4] + b"\0\0\xc0\x7f",
        request(media="x")[:30],
    ],
    ids=range(7),
)
def test_what_is_no_request_is_refused(content, tmp_path):
    with door(tmp_path) as (ask, remote):
        remote.released.set()
        status, answer = ask("POST", "/v1/ask", content, **OCTETS)
        assert status == 422 and answer["detail"] and not remote.asked
        assert ask("POST", "/v1/ask", request())[0] == 422, "a page of another site could send this type of content"
        assert ask("POST", "/v1/ask", request(), **OCTETS)[0] == 200


def test_a_model_of_the_gates_own_takes_no_int8_of_a_board():
    model = type("Model", (), {"raw": False, "scores": None})()
    remote = ModelRemote.__new__(ModelRemote)
    remote._model = model
    asked = Question.of_node(worker_wire.decode_request(request(wire.INT8)), 5)
    with pytest.raises(ValueError, match="only workers understand int8"):
        remote._label(asked)


def test_questions_without_an_answer_hold_nobody_up(tmp_path):
    """More of them than a server of threads has threads (40)."""
    with door(tmp_path, in_flight=100) as (ask, remote):
        callers = [
            threading.Thread(target=ask, args=("POST", "/v1/decide", {"score": 0.45, "tensor": [1]}), daemon=True)
            for _ in range(90)
        ]
        for caller in callers:
            caller.start()
        assert until(lambda: len(remote.asked) > 45, 10), len(remote.asked)
        status, answer = ask("POST", "/v1/decide", {"score": 0.01})  # without a payload the gate decides alone
        assert status == 200 and answer["source"] == "fallback"
        remote.released.set()
        for caller in callers:
            caller.join()


def test_a_body_of_any_size_is_refused_before_it_is_read(tmp_path):
    with door(tmp_path, picture_limit=1000) as (ask, _):
        for size in (1_100_000, 20_000_000):  # no reset before the sender has read the answer
            status, text = ask("POST", "/v1/decide", b" " * size)
            assert status == 413 and b"at most" in text


def test_who_may_ask(tmp_path):
    with door(tmp_path) as (ask, _):
        assert ask("POST", "/v1/decide", {"score": 0.01}, Host="elsewhere.example")[0] == 421
        for kind, status in {"text/plain": 422, "application/jsonish": 422, "application/json; charset=utf-8": 200}.items():
            assert ask("POST", "/v1/decide", {"score": 0.01}, **{"Content-Type": kind})[0] == status
    with door(tmp_path, token="sixteen characters") as (ask, _):
        assert ask("POST", "/v1/decide", {"score": 0.01})[0] == 401
        assert ask("POST", "/v1/decide", {"score": 0.01}, Authorization="Bearer sixteen character")[0] == 401
        assert ask("POST", "/v1/decide", {"score": 0.01}, Authorization="Bearer sixteen characters")[0] == 200
        assert ask("GET", "/v1/decisions/x")[0] == 401


def test_it_describes_itself(tmp_path):
    with door(tmp_path) as (ask, _):
        status, page = ask("GET", "/openapi.json")
        assert status == 200 and set(page["paths"]) == {"/v1/ask", "/v1/decide", "/v1/truth", "/v1/decisions/{ticket}"}
        assert {"Sample", "Decision", "Ticket"} <= set(page["components"]["schemas"])


def test_a_port_that_is_taken_is_named(tmp_path):
    config = GateConfig(topic="x", remote="worker:1", folder=tmp_path)
    with Gate(config, Held()) as gate:
        first = HttpDoor(gate, config, "127.0.0.1", 0, "")
        try:
            with pytest.raises(UserError, match=f"--http {first.port}: Address already in use"):
                HttpDoor(gate, config, "127.0.0.1", first.port, "")
        finally:
            first.close()


def test_a_person_says_where_the_remote_model_is_wrong_and_a_later_start_knows_it(tmp_path, caplog):
    names = {"class_names": ["nothing", "person"], "delta_fp": 0.7, "delta_fn": 1.0}

    with door(tmp_path, **names) as (ask, remote):
        remote.released.set()
        ask("POST", "/v1/decide", {"score": 0.45, "text": "a"})
        expected = {"rdl_fn": error_table([[0, 0], [0, 1]])[1][0]}
        assert ask("POST", "/v1/truth", {"answer": "person", "truth": "person"}) == (200, expected)
        for n in range(60):
            status, rates = ask(
                "POST", "/v1/truth", {"answer": names["class_names"][n % 2], "truth": names["class_names"][1 - n % 2]}
            )
        assert (status, rates) == (200, {"rdl_fp": 0.4, "rdl_fn": 0.4})
        assert caplog.text.count("asking does not pay: the remote model is wrong on") == 1
        status, answer = ask("POST", "/v1/truth", {"answer": "person", "truth": "cat"})
        assert status == 422 and "the classes are nothing, person" in answer["detail"]
        status, _ = ask("POST", "/v1/truth", {"answer": "person", "truth": "person"}, **{"Content-Type": "text/plain"})
        assert status == 422  # a page of another site
    for remote_model, expected in (("worker:1", [13107, 13107]), ("worker:2", [0, 0])):
        config = GateConfig(topic="x", remote=remote_model, folder=tmp_path, beta=0.2, snapshot_mismatch="fresh", **names)
        with Gate(config, Held()) as gate:
            policy = gate.streams.get("all").policy
            assert [policy.rdl_fp, policy.rdl_fn] == expected


def test_of_three_classes_a_person_says_so_too(tmp_path):
    """A command's costs and the rates come back at a later start."""
    kinds = {"class_names": ["cat", "dog", "owl"], "class_costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}
    with door(tmp_path, **kinds) as (ask, _):
        for _ in range(5):
            status, rates = ask("POST", "/v1/truth", {"answer": "cat", "truth": "dog"})
        assert status == 200 and rates["rdl_confusion"][1] == error_table([[0, 0, 0], [5, 0, 0], [0, 0, 0]])[1]
    config = GateConfig(topic="x", remote="worker:1", folder=tmp_path, **kinds)
    with Gate(config, Held()) as gate:
        stream = gate.streams.get("all")
        gate.change(lambda stream: stream.policy.change_costs([[1, 0, 5]]))
        before = [list(stream.policy.label_costs), list(stream.policy.confusion)]
    with Gate(config, Held()) as gate:
        policy = gate.streams.get("all").policy
        assert policy.costs[3] == 5 and [list(policy.label_costs), list(policy.confusion)] == before
        assert policy.confusion[3] == units.q15(rates["rdl_confusion"][1][0])
