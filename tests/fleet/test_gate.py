"""The parts of the gate: messages, addresses of pictures, lessons, the queue, streams. Strangers write the messages."""

import base64
import contextlib
import json
import queue
import socket
import threading
from binascii import crc32
from dataclasses import replace

import pytest
from gate_decisions import Scripted, decision
from http_server import serving
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Template
from support import until, worker_replies

from h2t2.core.miss_guarantee import DEBIT
from h2t2.core.policy import OFFLOAD
from h2t2.cpython.worker_wire import decode_request, encode_reply
from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2_lab.gate_day.messages import bird, event, jpeg
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import home_assistant
from h2t2_tools.fleet.calls import Calls
from h2t2_tools.fleet.failures import Cause, Later, Misconfigured, Refused, of_error
from h2t2_tools.fleet.gate import Detection, Gate, GateConfig, Payload, gate_config, gate_state, presets
from h2t2_tools.fleet.gate.gate_backlog import Backlog
from h2t2_tools.fleet.gate.media import media_of
from h2t2_tools.fleet.gate.message import Ignored, Reader
from h2t2_tools.fleet.gate.picture_client import Allowed, PictureClient
from h2t2_tools.fleet.gate.remote import Answer, Question, WorkerRemote
from h2t2_tools.fleet.gate.remote_health import FAILURES
from h2t2_tools.fleet.gate.streams import Streams
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.queue.attempts import MAX_ATTEMPTS
from h2t2_tools.fleet.queue.lesson import Lesson
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.worker import Worker

PHOTO = jpeg()


def configured(folder, **entries):
    return GateConfig(**{"topic": "x/+", "remote": "worker:1", "folder": folder, "beta": 0.2, **entries})


def of_preset(name, folder):
    """The configuration that a preset writes."""
    (folder / "mine.py").write_text("def scores(x): return [1.0] * len(x)\n")
    return presets.write(name, "mine.py:scores", "", "", folder / f"{name}.toml")


def test_the_frigate_preset_reads_the_documented_message(tmp_path):
    reader = Reader(of_preset("frigate", tmp_path))
    got = reader.read(
        "frigate/events", json.dumps(event("new", "1607123955.475377-mxklsc", "front_door", 0.958984375)).encode()
    )
    assert (got.key, got.score, got.identity, got.label) == ("front_door", 0.958984375, "1607123955.475377-mxklsc", "person")
    assert got.payload.url == "http://localhost:5000/api/events/1607123955.475377-mxklsc/snapshot.jpg"
    with pytest.raises(Ignored):
        reader.read("frigate/events", json.dumps(event("update", "a", "front_door", 0.9)).encode())


def test_the_birdnet_go_preset_reads_the_messages_of_its_contract(tmp_path):
    message = json.dumps(bird(4711, "Parus major", "Great Tit", 0.62)).encode()
    got = Reader(of_preset("birdnet-go", tmp_path)).read("birdnet", message)
    assert (got.key, got.score, got.identity, got.label) == ("Parus major", 0.62, "4711", "Great Tit")
    assert got.payload.url == "http://localhost:8080/api/v2/audio/4711"


def test_the_generic_preset_reads_a_picture_in_the_message(tmp_path):
    reader = Reader(of_preset("generic", tmp_path))
    content = {"id": 17, "score": 0.5, "picture": base64.b64encode(PHOTO).decode()}
    got = reader.read("detector/porch", json.dumps(content).encode())
    assert (got.key, got.identity) == ("porch", "17")
    assert got.payload == Payload(data=PHOTO, media="image/jpeg")  # unchanged
    assert (
        reader.read("detector/porch", json.dumps({**content, "picture": "http://x/y.jpg"}).encode()).payload.url
        == "http://x/y.jpg"
    )


def test_a_plain_number_is_a_message(tmp_path):
    reader = Reader(configured(tmp_path, score="", key="$topic.1", score_max=100))
    got = reader.read("x/kitchen", b"62.5")
    assert (got.key, got.score) == ("kitchen", 0.625)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{",
        b"\xff",
        b"null",
        b"[]",
        b'{"score": true}',
        b'{"score": 1.1}',
        b'{"score": NaN}',
        b'{"score": "0.5"}',
        b"[" * 9999,
        b'{"score": -0.1}',
        b'{"score": 1e999}',
        b'{"score": [0.1, 0.2, 0.3]}',
        b'{"score": 0.5, "k": ""}',
        b'{"score": 0.5, "k": "\\u0000"}',
        b'{"score": 0.5, "k": "' + b"a" * 65 + b'"}',
        b'{"score": 0.5, "k": ["a"]}',
    ],
)
def test_a_message_that_is_not_as_configured_is_refused_with_a_reason(message, tmp_path):
    with pytest.raises(ValueError, match="."):
        Reader(configured(tmp_path, key="k")).read("x/y", message)


@pytest.mark.parametrize("second", [0xFB, 0xFA, 0xF3, 0xF2, 0xE3, 0xE2])
def test_a_clip_in_mp3_needs_no_tag(second):
    """MPEG 1, 2 and 2.5, with and without a checksum; AAC begins alike and is none."""
    assert media_of(bytes([0xFF, second, 0x90, 0x64])) == "audio/mpeg" == media_of(b"ID3\x04")
    for other in (0xF1, 0xF9, 0xE0, 0xFF):
        with pytest.raises(ValueError, match="MP3"):
            media_of(bytes([0xFF, other, 0x90, 0x64]))


@pytest.mark.parametrize(
    "label, shown",
    [
        (None, ""), ("", ""), ("Great\u00a0Tit", "Great Tit"), ("\u30b7\u3000\u30b8", "\u30b7 \u30b8"), (7, "7"), (["a"], ""),
        ("\U0001f469\u200d\U0001f33e", "\U0001f469\u200d\U0001f33e"), ("a\x1b[2J\u202eb", "a[2Jb"), ("x" * 300, "x" * 200),
    ],
)  # fmt: skip
def test_a_label_decides_nothing(tmp_path, label, shown):
    entries = configured(tmp_path, topic="t", score="s", label="name", key="cam")
    content = {"s": 0.5, "cam": "\u30ab\u30e1\u3000\u30e9 \U0001f426\u200d\u2b1b\u00a0(1)", "name": label}
    detection = Reader(entries).read("t", json.dumps(content).encode())
    assert detection.label == shown and detection.key == "\u30ab\u30e1 \u30e9 \U0001f426\u200d\u2b1b (1)"
    del content["name"]
    assert Reader(entries).read("t", json.dumps(content).encode()).label == ""


@pytest.mark.parametrize(
    "score, taken", [(1.0000001, 1.0), (-1e-9, 0.0), (1.009, 1.0), (0.25, 0.25), (1.02, None), (-0.02, None)]
)
def test_the_gate_and_a_worker_take_the_same_scores(tmp_path, score, taken):
    """A float32 may round above 1."""
    read = Reader(configured(tmp_path, topic="t", score="s")).read
    (tmp_path / "mine.py").write_text(f"def scores(x): return [{score}] * len(x)\n")
    serving = Worker(models.load(models.Source(f"{tmp_path}/mine.py:scores")), 1)
    (reply,) = worker_replies(serving, [wire.encode_request(1, 2, 3, (4,), bytes(4))])
    if taken is None:
        with pytest.raises(ValueError, match="want a number from 0 to 1"):
            read("t", json.dumps({"s": score}).encode())
        assert wire.decode_reply(reply)[0] == wire.FAILED
    else:
        assert read("t", json.dumps({"s": score}).encode()).score == taken
        assert wire.decode_reply(reply)[4] == round(taken * 32768)


@settings(max_examples=40)
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=9), st.lists).map(
        lambda content: json.dumps(content).encode()
    )
)
def test_no_message_raises_anything_but_a_value_error(message):
    reader = Reader(GateConfig(topic="x", remote="worker:1", score="0.1", key="0.2", picture="http://a/{0.3}"))
    with contextlib.suppress(ValueError):
        reader.read("x", message)


def test_values_of_a_message_cannot_change_host_or_path_of_a_url(tmp_path):
    reader = Reader(configured(tmp_path, picture="http://nvr/api/{id}/snapshot.jpg"))
    got = reader.read("x/y", json.dumps({"score": 0.5, "id": "../../a@evil/?b#c"}).encode())
    assert got.payload.url == "http://nvr/api/..%2F..%2Fa%40evil%2F%3Fb%23c/snapshot.jpg"
    with pytest.raises(ValueError, match="a message would choose the host"):
        configured(tmp_path, picture="http://{host}/x.jpg")


@pytest.mark.parametrize(
    ("places", "url"),
    [
        (["nvr.lan"], "http://evil.lan/a.jpg"),
        (["nvr.lan"], "http://nvr.lan:22/"),
        (["nvr.lan"], "http://a@nvr.lan/"),
        (["nvr.lan"], "http://nvr.lan.evil.org/"),
        (["nvr.lan"], "file:///etc/passwd"),
        (["nvr.lan"], "ftp://nvr.lan/"),
        (["10.0.0.0/8"], "http://127.0.0.1/"),
        (["10.0.0.0/8"], "http://localhost/"),
        (["10.0.0.0/8"], "http://169.254.169.254/"),
        (["10.0.0.0/8"], "http://[::ffff:127.0.0.1]/"),
        (["nvr.lan"], "http://evil.lan\\@nvr.lan/"),
        ([], "http://127.0.0.1/"),
        (["nvr.lan"], "http://nvr.lan/" + "a" * 3000),
        (["nvr.lan"], "nonsense"),
        (["nvr.lan"], "http://"),
    ],
)
def test_an_address_that_is_not_allowed_is_not_asked(places, url, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("it connects")

    monkeypatch.setattr(socket, "create_connection", refuse)
    client = PictureClient([Allowed.parse(place) for place in places], 1000, 1)
    monkeypatch.setattr(Calls, "call", refuse)
    with pytest.raises(Refused):
        client.fetch(url)


def test_a_picture_comes_from_an_allowed_place_as_it_is(localhost):
    with serving(lambda *_: PHOTO) as url:
        port = url.rpartition(":")[2]
        for place in (f"127.0.0.1:{port}", f"127.0.0.0/8:{port}"):
            assert PictureClient([Allowed.parse(place)], 10_000, 5).fetch(f"{url}/a.jpg") == (PHOTO, "image/jpeg")
        named = PictureClient([Allowed.parse(f"127.0.0.0/8:{port}")], 10_000, 5)
        if {info[4][0] for info in socket.getaddrinfo("localhost", int(port))} == {"127.0.0.1"}:
            assert named.fetch(f"http://localhost:{port}/a.jpg")[0] == PHOTO
            assert url.requests[-1][1]["Host"] == f"localhost:{port}"


@pytest.mark.parametrize(
    ("answer", "why", "cause"),
    [
        ((302, b"", {"Location": "http://169.254.169.254/"}), "status 302", Cause.SETUP),
        ((401, b"login"), "status 401", Cause.SETUP),
        ((404, b"no"), "status 404", Cause.SERVER),
        ((500, b""), "status 500", Cause.SERVER),
        ((502, b""), "status 502", Cause.SERVER),
        ((429, b"", {"Retry-After": "1"}), "status 429", Cause.SERVER),
        ((410, b""), "status 410", Cause.SAMPLE),
        (b"<html>", "want a picture", Cause.SAMPLE),
        (PHOTO + bytes(20_000), "more than 10,000 bytes", Cause.SAMPLE),
        ((200, PHOTO, {"Content-Encoding": "gzip"}), "compressed", Cause.SAMPLE),
        (b"", "an empty answer", Cause.SERVER),
    ],
)
def test_a_failure_to_fetch_a_picture_has_a_cause(answer, why, cause):
    with serving(lambda *_: answer) as url:
        client = PictureClient([Allowed.parse(url.removeprefix("http://"))], 10_000, 5)
        with pytest.raises((Later, Misconfigured, Refused), match=why) as raised:
            client.fetch(f"{url}/a.jpg")
        assert of_error(raised.value) is cause and len(url.requests) == 1
        assert cause is not Cause.SERVER or raised.value.of_sample


def test_a_picture_that_is_not_there_yet_gets_time_to_appear():
    answers = iter([(404, b""), (503, b""), PHOTO, (404, b"")])
    with serving(lambda *_: next(answers)) as url:
        client = PictureClient([Allowed.parse(url.removeprefix("http://"))], 10_000, 5, 30)
        assert client.fetch(f"{url}/a.jpg") == (PHOTO, "image/jpeg")
        client.close()
        with pytest.raises(Later, match="status 404"):
            PictureClient([Allowed.parse(url.removeprefix("http://"))], 10_000, 5).fetch(f"{url}/b.jpg")


def test_a_function_learns_what_the_detector_named(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def scores(x): return [float((c.key, c.label) == ('Parus major', 'Great Tit') and len(c) > 9) for c in x]\n"
    )
    with Gate(configured(tmp_path, remote="mine.py:scores", key="k")) as gate:
        decisions = [gate.decide(key, 0.5, PHOTO, label="Great Tit") for key in ("Parus major", "Corvus corax")]
    assert [(one.decision, one.source) for one in decisions] == [(1, "remote"), (0, "remote")]


def test_a_function_may_give_the_scores_of_all_classes(tmp_path):
    (tmp_path / "mine.py").write_text("def proba(x): return [[1 - row[0], row[0]] for row in x]\n")
    with Gate(configured(tmp_path, remote="mine.py:proba")) as gate:
        decisions = [gate.decide("cam", 0.5, payload=Payload(tensor=(score,))) for score in (0.75, 0.25)]
    assert [(one.decision, one.source) for one in decisions] == [(1, "remote"), (0, "remote")]


LESSON = Lesson(bin=5, beta=6554, local=1, chance=1 << 20, probability=3000)


def test_queued_samples_survive_and_the_oldest_go_first(tmp_path):
    times = [1000.0]
    backlog = Backlog(tmp_path / "q.db", 10**9, 60, 100, clock=lambda: times[0], lived=lambda: times[0])
    lesson = Lesson(bin=5, beta=6554, local=1, chance=1 << 20, probability=3000, wish=7)
    first = Detection("porch", 0.4, identity="a", topic="t", label="person", payload=Payload(url="http://x/a.jpg"))
    number = backlog.add(first, lesson)
    backlog.keep_payload(number, Payload(data=PHOTO, media="image/jpeg"))
    backlog.add(Detection("porch", (0.1, 0.2, 0.7), payload=Payload(tensor=(1.0, 2.5))), lesson)
    backlog.close()
    backlog = Backlog(tmp_path / "q.db", 10**9, 60, 100, clock=lambda: times[0], lived=lambda: times[0])
    assert backlog.length == 2 and len(backlog.undecided()) == 2
    waiting = backlog.next()
    assert waiting.lesson == lesson and waiting.detection.payload == Payload(data=PHOTO, media="image/jpeg")
    after = backlog.next({waiting.number})
    assert after.detection.score == (0.1, 0.2, 0.7) and after.detection.payload.tensor == (1.0, 2.5)
    times[0] = 1050.0
    for n in range(200):
        backlog.add(Detection("porch", 0.4, identity=str(n), payload=Payload(data=b"x")), lesson)
    assert backlog.length == 202
    for waiting in backlog.undecided():
        backlog.decide(decision(waiting.number), waiting.number)
    times[0] = 1065.0
    for n in range(64):
        backlog.add(Detection("hall", 0.4, identity=f"b{n}", payload=Payload(data=b"x")), lesson)
    assert backlog.dropped == 2 and backlog.next().detection.identity == "0"
    backlog.close()


def test_the_queue_is_bounded_by_size(tmp_path):
    backlog = Backlog(tmp_path / "q.db", 1_000_000, 1e9, 100)
    lesson = Lesson(bin=5, beta=6554, local=1, chance=1 << 20, probability=3000)
    for n in range(256):
        backlog.add(Detection("porch", 0.4, identity=str(n), payload=Payload(data=bytes(20_000))), lesson)
    assert 10 < backlog.length < 120 and backlog.length + backlog.dropped == 256
    assert int(backlog.next().detection.identity) == backlog.dropped
    backlog.close()


def test_decisions_are_remembered_by_identity_and_the_oldest_forgotten(tmp_path):
    backlog = Backlog(tmp_path / "q.db", 10**9, 60, 50)
    for n in range(128):
        backlog.decide(decision(n, mark=f"m{n}", cost=None))
    assert backlog.decision("x/porch", "m127") == decision(127, mark="m127", cost=None)
    assert backlog.decision("other", "m127") is None
    assert backlog.decision("x/porch", "m1") is None
    backlog.close()


class Times:
    """The clock, and the time that a queue has lived."""

    def __init__(self):
        self.unix_s, self.lived_s = 1_700_000_000.0, 0.0

    def queue(self, folder, age=7 * 86400.0):
        return Backlog(folder / "q.db", 10**9, age, 100, clock=lambda: self.unix_s, lived=lambda: self.lived_s)

    def live(self, seconds):
        self.unix_s += seconds
        self.lived_s += seconds


def add(backlog, identity):
    """Queue a sample that is decided."""
    number = backlog.add(Detection("porch", 0.4, identity=identity, payload=Payload(data=b"x")), LESSON)
    backlog.decide(decision(identity), number)


@pytest.mark.parametrize("step", [8 * 86400, -365 * 86400])
def test_a_clock_that_is_set_makes_no_sample_older(tmp_path, step):
    """A Pi without a clock is years behind, until NTP has answered."""
    times = Times()
    backlog = times.queue(tmp_path)
    add(backlog, "1")
    backlog.decide(decision("1", mark="m1"))
    times.live(60)
    times.unix_s += step
    for n in range(64):
        add(backlog, str(n))
    assert backlog.dropped == 0 and backlog.decision("x/porch", "m1")
    times.live(600)
    assert backlog.decision("x/porch", "m1") is None  # no repetition comes so late
    times.live(7 * 86400)
    for n in range(64):
        add(backlog, str(n))
    assert backlog.dropped == 65 and backlog.length == 64
    backlog.close()


def test_a_detection_that_is_not_decided_yet_is_never_too_old(tmp_path):
    """A gate was killed, and starts again after weeks, or with a clock that says so."""
    times = Times()
    backlog = times.queue(tmp_path)
    add(backlog, "decided")
    backlog.add(Detection("porch", 0.4, identity="open", payload=Payload(data=b"x")), LESSON)
    backlog.close()
    times.unix_s += 30 * 86400
    backlog = times.queue(tmp_path)
    assert [waiting.detection.identity for waiting in backlog.undecided()] == ["open"] and backlog.dropped == 1
    backlog.close()


def test_a_clock_that_is_behind_at_a_start_is_set_afterwards(tmp_path):
    times = Times()
    backlog = times.queue(tmp_path)
    backlog.add(Detection("porch", 0.4, identity="1", payload=Payload(data=b"x")), LESSON)
    backlog.decide(decision("1", mark="m1"))
    backlog.close()
    times.unix_s -= 30 * 86400
    backlog = times.queue(tmp_path)
    times.unix_s += 30 * 86400
    for n in range(64):
        backlog.add(Detection("porch", 0.4, identity=str(n), payload=Payload(data=b"x")), LESSON)
    assert backlog.dropped == 0 and backlog.length == 65 and backlog.decision("x/porch", "m1")
    backlog.close()


def asked(gate, remote, act=lambda decision: None, score=0.45, **entries):
    """Submit samples until the policy asks about one; its decisions go to act."""
    for n in range(1000):
        gate.submit(
            Detection("porch", score, identity=f"q{n}", payload=Payload(data=PHOTO, media="image/jpeg"), **entries), act
        )
        if remote.questions:
            return
    raise AssertionError("it never asks")


def test_an_answer_in_time_decides_and_teaches(tmp_path):
    remote, decisions = Scripted(), []
    with Gate(configured(tmp_path, deadline="1h"), remote) as gate:
        asked(gate, remote, decisions.append)
        decisions.clear()
        remote.answer(1)
        assert [(one.decision, one.source, one.cost) for one in decisions] == [(1, "remote", 0.2)]
        assert gate.lessons == 1 and gate.backlog.length == 0


def test_a_test_question_tells_less_than_answers_about_samples(tmp_path):
    """The test question is answered, while the answers about samples come too late: the state goes on naming that."""
    with Gate(configured(tmp_path), Scripted()) as gate:
        gate._take_test(Answer(-1, "status 401", Cause.SETUP))
        assert gate.health.is_away and gate.health.unanswered == "status 401"
        gate._take_test(Answer(0))
        assert not gate.health.is_away and not gate.health.unanswered
        for _ in range(FAILURES):
            gate.health.note_answer(9.0, 5.0)
        gate._take_test(Answer(0))
        assert "too late" in gate.health.unanswered


def test_the_deadline_decides_and_the_late_answer_teaches(tmp_path):
    remote, decided = Scripted(), threading.Event()
    decisions = []

    def act(one):
        decisions.append(one)
        if one.source == "fallback":
            decided.set()

    with Gate(configured(tmp_path, deadline="50ms"), remote) as gate:
        asked(gate, remote, act)
        assert decided.wait(30)
        count = len(decisions)
        remote.answer(1)
        assert len(decisions) == count and gate.lessons == 1 and gate.late == 1


def test_a_question_that_will_have_no_answer_leaves_the_queue(tmp_path):
    remote = Scripted()
    with Gate(configured(tmp_path), remote) as gate:
        asked(gate, remote)
        remote.answer(why="no picture")
        assert gate.backlog.length == 0 and gate.failed == 1 and gate.fallbacks == 1


def test_an_identity_is_decided_once_also_after_a_restart(tmp_path):
    decisions = []
    detection = Detection("porch", 0.99, identity="a", topic="t", payload=Payload(data=PHOTO, media="image/jpeg"))
    for _ in range(2):
        with Gate(configured(tmp_path), Scripted()) as gate:
            gate.submit(detection, decisions.append)
            gate.submit(detection, decisions.append)
    assert len(decisions) == 4 and len(set(decisions)) == 1 and gate.repeated == 2 and gate.samples == 0


def test_a_message_that_comes_again_while_its_question_is_open_waits_for_the_same_decision(tmp_path):
    remote, first, second = Scripted(), [], []
    with Gate(configured(tmp_path, deadline="1h"), remote) as gate:
        asked(gate, remote, first.append, topic="t")
        (pending,) = gate._pending.values()
        gate.submit(pending.detection, second.append)
        remote.answer(0)
        assert second == [first[-1]] and gate.repeated == 1


OTHERS = [{"key": "hall"}, {"score": 0.98}, {"payload": Payload(data=PHOTO + b"2", media="image/jpeg")}, {"topic": "u"}]


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_an_identity_that_is_used_again_is_no_repetition(tmp_path, change):
    """Two cameras count from 1; a counter begins anew after a reboot."""
    payload = Payload(data=PHOTO, media="image/jpeg")
    first = Detection("porch", 0.99, identity="1", topic="t", payload=payload)
    second = replace(first, **change)
    decisions = []
    for detection in (first, second):
        with Gate(configured(tmp_path), Scripted()) as gate:
            gate.submit(detection, decisions.append)
            assert gate.repeated == 0 and gate.samples == 1
    assert (decisions[1].key, decisions[1].score) == (second.key, second.score)


def test_an_answer_0_that_nobody_guarantees_is_paid_by_evidence_also_after_a_restart(tmp_path):
    config = configured(tmp_path, miss_rate=0.05, confidence=0.9)
    with Gate(config, Scripted()) as gate:
        stream = gate.streams.get("porch")
        limit = stream.policy.limit
        assert [gate.decide("porch", score).decision for score in (0.9, 0.1)] == [1, 1]  # nothing to pay with
        limit.evidence = limit.threshold + 100 * DEBIT
        stream.keeper.save()
        assert [gate.decide("porch", 0.1).decision for _ in range(9)] == [0] * 9
        paid = limit.evidence
        assert paid == limit.threshold + 91 * DEBIT
        assert until(lambda: Streams(config, tmp_path / config.state).get("porch").policy.limit.evidence <= paid), (
            "saved before"
        )


def test_a_detection_that_shows_nothing_is_not_asked_about(tmp_path):
    with Gate(configured(tmp_path), Scripted()) as gate:
        decisions = []
        for n in range(3):
            gate.submit(Detection("porch", 0.5, identity=f"1-{n}"), decisions.append)
        assert gate.unasked == 3 and [decision.source for decision in decisions] == ["fallback"] * 3


@pytest.mark.parametrize(
    "entries, content, why",
    [
        ({"picture": "picture"}, {}, "picture: there is no picture"),
        ({"picture": "picture"}, {"picture": None}, "picture: want a URL or base64"),
        ({"picture": "picture"}, {"picture": ""}, "picture: want a picture"),
        ({"picture": "picture"}, {"picture": "???"}, "picture: neither a URL nor base64"),
        ({"picture": "picture"}, {"picture": base64.b64encode(PHOTO[1:]).decode()}, "picture: want a picture"),
        ({"picture": "http://nvr/{after.id}.jpg"}, {}, "after.id: there is no after"),
        ({"picture": "http://nvr/{id}.jpg"}, {"id": ["a"]}, "id: want a text"),
        ({"text": "words"}, {}, "words: there is no words"),
        ({"text": "words"}, {"words": 7}, "words: want a text"),
        ({"text": "words"}, {"words": ""}, "words: the text is empty"),
        ({"tensor": "x"}, {"x": [1, None]}, "x: want numbers; one is 'None'"),
        ({"tensor": "x"}, {"x": []}, "x: want a list of 1 to"),
        ({"tensor": "x", "features": "f", "feature_count": 2}, {"x": [1], "f": [1]}, "f: 1 numbers; feature_count is 2"),
        ({"tensor": "x", "features": "f", "feature_count": 2}, {"x": [1]}, "f: there is no f"),
        ({"tensor": "x", "features": "f", "feature_count": 1}, {"x": [1], "f": ["a"]}, "f: want numbers; one is 'a'"),
        ({}, {}, "the message has no picture, text or tensor"),
    ],
    ids=str,
)
def test_a_score_with_nothing_to_ask_about_is_decided_with_the_reason(entries, content, why, tmp_path):
    """The message was dropped with a line in the log, and an automation waited for ever."""
    settings, decisions = configured(tmp_path, identity="id", **entries), []
    detection = Reader(settings).read("x/y", json.dumps({"score": 0.9, **content}).encode())
    with Gate(settings, Scripted()) as gate:
        gate.submit(detection, decisions.append)
        assert (gate.unasked, gate.failed, gate.lessons) == (1, bool(entries), 0)
    (decision,) = decisions
    assert (decision.decision, decision.source) == (1, "fallback") and decision.reason.startswith(why)


@pytest.mark.parametrize("identity", [None, [], "", "x" * 300])
def test_a_detection_without_a_usable_identity_counts_as_itself(identity, tmp_path):
    message = json.dumps({"score": 0.9, "id": identity}).encode()
    assert Reader(configured(tmp_path, identity="id")).read("x/y", message).identity == ""
    assert Reader(configured(tmp_path, identity="id")).read("x/y", b'{"score": 0.9}').identity == ""


def test_each_decision_says_why(tmp_path):
    """In each way that a sample can take through the gate."""
    remote, decisions = Scripted(), []

    def reason(source, answer=None, prepare=lambda gate: None, **entries):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        decisions.clear()
        with Gate(configured(folder, **{"deadline": "1h", **entries}), remote) as gate:
            prepare(gate)
            if answer is None:
                for _ in range(60):
                    score = 0.99 if source == "local" else 0.45
                    gate.submit(Detection("porch", score, payload=Payload(url="http://x/y")), decisions.append)
            else:
                asked(gate, remote, decisions.append)
                remote.answer(**answer)
            remote.questions.clear()
        (reason,) = {decision.reason for decision in decisions if decision.source == source}
        return reason

    assert reason("local") == "the score is enough"
    assert reason("remote", {"label": 1}) == "the remote model answered"
    assert reason("fallback", {"label": 7}) == "the remote model answered class 7 of 2"
    assert reason("fallback", {"why": "status 401\nx", "cause": Cause.SETUP}) == "status 401 x"
    assert reason("fallback", prepare=lambda gate: gate.pause(60)) == "the gate is paused"

    def away(gate):
        gate.health.note_failure("no route", server=True, retry_s=999)

    assert reason("fallback", prepare=away) == "the remote model is away: no route"


def test_a_decision_says_what_kept_the_gate_from_asking(tmp_path):
    def reasons(folder, **entries):
        with Gate(configured(tmp_path / folder, **entries), Scripted()) as gate:
            decisions = []
            for _ in range(400):
                gate.submit(Detection("porch", 0.45, payload=Payload(url="http://x/y")), decisions.append)
            if entries.get("deadline") == "20ms":
                assert until(lambda: gate.fallbacks)
        return {decision.reason for decision in decisions if decision.source == "fallback"}

    assert reasons("end", deadline="1h") == {"16 questions are under way (in_flight)", "the gate ended before the answer came"}
    assert "no answer within 0.02 s (deadline)" in reasons("late", deadline="20ms")
    assert "the budget is spent" in reasons("spent", deadline="1h", budget="1/day")


def test_a_detector_without_a_database_has_no_identities(tmp_path):
    with Gate(configured(tmp_path), Scripted()) as gate:
        for _ in range(2):
            gate.submit(Detection("porch", 0.99, identity="0", payload=Payload(url="http://x/0")), lambda decision: None)
        assert gate.repeated == 0 and gate.samples == 2


def killed(gate):
    """End a gate as a kill does: it decides and saves nothing more."""
    gate._ended.set()
    gate._thread.join()
    gate._folder_lock.release()
    gate.backlog.close()


def test_a_gate_with_a_head_starts_again_after_a_kill(tmp_path):
    settings = configured(tmp_path, features="f", feature_count=2, deadline="1h")
    first, remote, decisions = Gate(settings, Scripted()), Scripted(), []
    asked(first, first._remote, features=(3, -4))
    killed(first)
    with Gate(settings, remote, decisions.append) as gate:
        assert [(one.source, one.bin) for one in decisions] == [("fallback", 7)]
        assert decisions[0].reason == "the gate was ended before the answer came"
        assert until(lambda: remote.questions) and remote.questions[0][0].lesson.features[1:] == (3, -4)
        remote.answer(1)
        assert gate.lessons == 1 and gate.backlog.length == 0


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize(
    "entries",
    [
        {"bits": 3}, {"bits": 5}, {"policy": "h2t2"}, {"miss_rate": 0.1}, {"features": "f", "feature_count": 2},
        {"class_costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]},
    ],
    ids=str,
)  # fmt: skip
def test_a_queued_sample_of_another_policy_is_dropped_and_not_paid_for(entries, kill, tmp_path):
    first = Gate(configured(tmp_path), Scripted())
    asked(first, first._remote)
    killed(first) if kill else first.close()
    decisions = []
    with Gate(configured(tmp_path, **entries), Scripted(), decisions.append) as gate:
        assert until(lambda: gate.failed == 1 and gate.backlog.length == 0)  # the queue is empty before the gate counts
        assert gate.paid == 0 and not gate._remote.questions
    reasons = [(decision.source, decision.reason) for decision in decisions]  # a detection that was accepted gets its decision
    assert reasons == [("fallback", "the gate was ended before the answer came")] * kill


def test_a_label_that_the_policy_refuses_leaves_the_queue(tmp_path):
    first, remote = Gate(configured(tmp_path), Scripted()), Scripted()
    asked(first, first._remote)
    first.close()
    with Gate(configured(tmp_path), remote) as gate:
        gate.streams.get("porch").policy.learn = lambda *_: 1 // 0
        assert until(lambda: remote.questions)
        remote.answer(1)
        assert gate.backlog.length == 0 and gate.late == 0


class Replies:
    """A link whose workers answer every request with 1, or with a status."""

    def __init__(self):
        self.requests = queue.Queue()
        self.status = wire.OK

    def is_connected(self):
        return True

    def meet(self):
        pass

    def workers(self):
        return 1

    def send(self, payload):
        self.requests.put(payload)
        return True

    def receive(self, wait_ms):
        try:
            request = decode_request(self.requests.get(timeout=wait_ms / 1000))
        except queue.Empty:
            return None
        return encode_reply(self.status, request.boot, request.sequence, *((-1, 0) if self.status else (1, 20000)))


def test_a_callback_that_fails_ends_no_thread_of_the_transport(tmp_path, caplog):
    remote, labels = WorkerRemote(configured(tmp_path), Replies(), 7), []
    question = Question(Payload(tensor=(1.0,)), Lesson(bin=1, beta=1, local=0, chance=1, probability=1))
    remote.ask(question, lambda answer: 1 // 0)
    remote.ask(question, lambda answer: labels.append(answer.label))
    assert until(lambda: labels == [1], 10)
    assert "ZeroDivisionError" in caplog.text
    remote.close()


@pytest.mark.parametrize("status", [wire.LATER, wire.BUSY, wire.NOBODY, wire.WRONG_MODEL])
def test_a_gate_waits_while_the_server_behind_its_workers_is_away(tmp_path, status):
    entries = configured(tmp_path, policy="h2t2", exploration="epsilon", epsilon=1.0, deadline="1h")
    link, now = Replies(), [0.0]
    link.status = status
    with Gate(entries, WorkerRemote(entries, link, 7), clock=lambda: now[0]) as gate:
        assert sources(gate, 6) == ["fallback"] * 6
        assert gate.backlog.length == 6 and gate.failed == 0 and gate.health.unanswered == STATUS[status]
        link.status = wire.OK
        now[0] += 1000
        assert until(lambda: gate.late == 6) and gate.backlog.length == 0


def test_only_answers_in_time_count_as_answered(tmp_path):
    remote = Scripted()
    with Gate(configured(tmp_path, deadline="10ms"), remote) as gate:
        asked(gate, remote)
        assert until(lambda: gate.fallbacks == 1)
        remote.answer(1)
        assert gate.late == 1 and sum(gate.answered) == sum(gate.waits) == 0


def test_a_question_past_its_deadline_makes_the_next_ones_dearer(tmp_path):
    """The remote model has answered a test question, so nobody knows of an outage."""
    remote = Scripted()
    with Gate(configured(tmp_path, deadline="10ms"), remote) as gate:
        gate._take_test(Answer(0))
        asked(gate, remote)
        assert until(lambda: gate.fallbacks == 1)
        remote.answer(1)
        (stream,) = gate.streams
        assert (sum(stream.policy.answers[::2]), sum(stream.policy.answers[1::2])) == (32, 0)  # in its bin and in all


def test_the_costs_of_classes_may_stand_in_a_file(tmp_path):
    (tmp_path / "costs.csv").write_text("0,1,1\n1,0,1\n1,1,0\n")
    path = tmp_path / "gate.toml"
    path.write_text('topic = "t"\nremote = "worker:1"\nclass_costs = "costs.csv"\n')
    loaded = gate_config.load(path)
    (tmp_path / "costs.csv").unlink()
    assert loaded.classes == 3 and loaded.names == ["0", "1", "2"]
    with Gate(loaded, Scripted()) as gate:
        decisions = []
        gate.submit(Reader(loaded).read("t", b'{"score": [0.1, 0.1, 0.8]}'), decisions.append)
        assert gate.samples == 1 and [decision.bin for decision in decisions] == [-1]  # two classes alone have bins


def test_a_look_at_the_queue_reads_one_sample_and_none_without_a_budget(tmp_path):
    lesson = Lesson(bin=7, beta=6554, local=1, chance=1 << 20, probability=3000)
    with Gate(configured(tmp_path, budget="8/day", ordered=False), Scripted()) as gate, gate._lock:
        gate._asked_from_queue = 1  # the gate's own thread asks nothing
        numbers = [gate.backlog.add(Detection("porch", 0.45, payload=Payload(data=PHOTO)), lesson) for _ in range(50)]
        gate._pending = dict.fromkeys(numbers[:40])
        statements = []
        gate.backlog._base.set_trace_callback(statements.append)
        gate._asked_from_queue = 0
        gate.credit_budget(False)
        gate.budget.level = gate.budget.mark = 8
        waiting, _ = gate._next_from_queue()
        assert waiting.number == numbers[40] and sum("data" in text for text in statements) == 1
        gate._asked_from_queue = gate.budget.level = 0
        del statements[:]
        assert gate._next_from_queue() is None and not statements
        gate._pending.clear()


def test_a_budget_limits_what_is_asked(tmp_path):
    remote = Scripted()
    with Gate(configured(tmp_path, budget="8/day", in_flight=64), remote) as gate:
        for _ in range(300):
            gate.submit(Detection("porch", 0.45, payload=Payload(data=PHOTO, media="image/jpeg")), lambda _: None)
        assert len(remote.questions) <= 2 and gate.unaffordable > 200


def test_a_new_stream_starts_from_what_the_others_have_learned_also_after_a_restart(tmp_path):
    streams = Streams(configured(tmp_path), tmp_path / "s")
    porch = streams.get("porch").policy
    for _ in range(3000):
        level = 200 if porch.lessons % 2 else 56  # high scores are false alarms here
        if porch.decide(level) == OFFLOAD:
            Lesson.take(porch).teach(porch, int(level == 56))
    streams.get("hall")
    for stream in streams:
        stream.keeper.save()
        stream.store.flush()
    again = Streams(configured(tmp_path), tmp_path / "s")
    for hall in (streams.get("hall").policy, again.get("hall").policy):
        assert hall.lessons == 0 and hall.likely(200) == 0 and hall.likely(56) == 1
    assert again.get("porch").policy.lessons == porch.lessons


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"remote": "worker:2"}, "remote model"),
        ({"remote": "http://gpu:8000/v2/models/birds"}, "remote model"),
        ({"event": 0}, "event or other classes"),
        ({"class_names": ["no", "person"]}, "event or other classes"),
        ({"beta": 0.3, "deadline": 9.0}, ""),
    ],
)
def test_streams_learn_of_one_remote_model_and_one_event(tmp_path, caplog, entries, why):
    """The lessons of others are kept aside, and so is the prior that a stream had from them."""
    streams = Streams(configured(tmp_path), tmp_path / "s")
    porch = streams.get("porch").policy
    while porch.lessons < 40:
        if porch.decide(56) == OFFLOAD:
            Lesson.take(porch).teach(porch, 1)
    streams.get("hall")
    for stream in streams:
        stream.keeper.save()
        stream.store.flush()
    with caplog.at_level("INFO"):
        again = Streams(configured(tmp_path, **entries), tmp_path / "s")
    assert again.get("porch").keeper.restored != bool(why) and again.get("porch").policy.lessons == (0 if why else 40)
    assert (f"snapshot: of another {why}; kept as" in caplog.text) == bool(why)
    assert again.get("hall").policy.likely(56) == (0 if why else 1)


def test_a_remote_model_that_moves_to_another_address_is_the_same(tmp_path):
    places = (
        "http://gpu:8000/v2/models/birds",
        "https://10.0.0.7/v2/models/birds",
        "http://gpu:8000/v2/models/dogs",
        "birds.onnx",
    )
    origins = [configured(tmp_path, remote=remote).origin for remote in places]
    assert origins[0] == origins[1] and len(set(origins)) == 3 and {len(origin) for origin in origins} == {12}


def test_keys_above_the_limit_share_a_stream_and_no_key_leaves_the_folder(tmp_path):
    streams = Streams(configured(tmp_path, streams=2), tmp_path / "s")
    keys = ["../../etc", "a/b", "third", "fourth"]
    assert len({id(streams.get(key)) for key in keys}) == 3
    for stream in streams:
        stream.keeper.save()
        stream.store.flush()
    assert {path.parent for path in tmp_path.rglob("*.0")} == {tmp_path / "s"}
    again = Streams(configured(tmp_path, streams=2), tmp_path / "s")
    assert {stream.key for stream in again} == {"../../etc", "a/b", "*"}


def test_streams_and_gates_draw_differently_unless_a_seed_is_given(tmp_path):
    seeds = [configured(tmp_path, device=device).stream_seed(key) for device in ("a", "b") for key in ("porch", "shed")]
    given = [configured(tmp_path, device=device, seed=5).stream_seed("porch") for device in ("a", "b")]
    assert len(set(seeds)) == 4 and given == [(5 ^ crc32(b"porch")) % 2**28] * 2


def test_scores_that_a_stream_has_hardly_met_are_flagged(tmp_path):
    decisions, payload = [], Payload(data=PHOTO, media="image/jpeg")
    with Gate(configured(tmp_path, in_flight=1000), Scripted()) as gate:
        for n in range(400):
            gate.submit(Detection("porch", 0.02 + n % 10 / 100, payload=payload), decisions.append)
        gate.submit(Detection("porch", 0.97, payload=payload), decisions.append)
        gate.submit(Detection("new", 0.97, payload=payload), decisions.append)
    flags = {one.key: one.unfamiliar for one in decisions if one.score == 0.97}
    assert flags == {"porch": True, "new": False} and gate.unfamiliar < 5


def test_the_fleet_and_home_assistant_take_the_state_of_a_gate(tmp_path):
    payload = Payload(data=PHOTO, media="image/jpeg")
    with Gate(configured(tmp_path, in_flight=1000), Scripted()) as gate:
        for n in range(40):
            gate.submit(
                Detection("{{ states }}" if n < 3 else f"Kamera {n % 20} am Haus, hinten " + "ü" * 15, 0.95, payload=payload),
                print,
            )
        gate.submit(Detection("front_door", 0.95, payload=payload), print)
        for _ in range(30):
            gate.submit(Detection("front_door", 0.95, payload=payload), print)
        text = json.dumps(gate_state.state(gate, boot=7, uptime_s=3, strangers=0, complaints=0), separators=(",", ":"))
    content = parse_state(text.encode())
    assert content.samples == 71 and content.streams["front_door"][1] == 31 and len(content.streams) == 16
    assert len(content.past) == 5  # its policies read their past, so its counters overstate what it costs
    message = json.loads(home_assistant.discovery("gate", ["motion"], content.model_dump(exclude_unset=True)))
    assert message["cmps"]["decision-front_5fdoor"]["name"] == "front_door"
    evil = next(entity for entity in message["cmps"].values() if entity["name"] == "{{ states }}")
    assert Template(evil["val_tpl"]).render(value_json={"streams": {"{{ states }}": [1, 9, 2]}}) == "ON"
    shown = Template(message["cmps"]["decision-front_5fdoor"]["val_tpl"])
    for streams, word in (
        ({"front_door": [1, 9, 2]}, "ON"),
        ({"front_door": [0, 9, 2]}, "OFF"),
        ({"front_door": [-1, 9, 2]}, "None"),
    ):
        assert shown.render(value_json={"streams": streams}) == word
    assert shown.render(value_json={"streams": {}}) == "None"
    for key in ("Amsel (Weibchen)", "Türe: hinten / 'Hof' & Garten", "\u9ce5\u3000\u9ce5", "\U0001f426\u200d\u2b1b", 'a"b\\c'):
        message = json.loads(home_assistant.discovery("gate", ["motion"], {"streams": {key: [1, 9, 2]}}))
        (entity,) = [entity for name, entity in message["cmps"].items() if name.startswith("decision-")]
        assert entity["name"] == key
        assert Template(entity["val_tpl"]).render(value_json={"streams": {key: [1, 9, 2]}}) == "ON"


def test_the_command_writes_a_preset_that_loads_and_refuses_to_overwrite(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llava.toml").write_text(
        'url = "http://localhost:1/v1"\nmodel = "m"\nprompt = "Yes?"\nclasses = ["no", "yes"]\n'
    )
    assert main(["gate", "--preset", "frigate", "--remote", "llava.toml"]) == 0
    assert "h2t2 gate frigate.toml" in capsys.readouterr().out
    loaded = gate_config.load(tmp_path / "frigate.toml")
    assert (loaded.key, loaded.device, loaded.state) == (
        "after.camera",
        "frigate",
        "frigate-state",
    )  # two presets share nothing
    assert main(["gate", "--preset", "frigate", "--remote", "llava.toml"]) == 2 and "it exists" in capsys.readouterr().err
    assert main(["gate", "--preset", "generic", "--remote", "missing.toml"]) == 2 and "missing.toml" in capsys.readouterr().err
    assert not (tmp_path / "generic.toml").exists()


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"topic": "a/#/b"}, "only at its end"),
        ({"topic": "a+"}, "whole levels"),
        ({"remote": "worker:x"}, "worker:N"),
        ({"picture": "a", "text": "b"}, "one of them"),
        ({"picture_hosts": ["http://a"]}, "want HOST"),
        ({"features": "f"}, "feature_count"),
        ({"class_names": ["a"]}, "1 names for 2"),
        ({"nonsense": 1}, "nonsense"),
        ({"budget": "x"}, "budget"),
        ({"policy": "h2t2", "miss_rate": 0.1}, "miss_rate"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_entry(entries, why, tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text(
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in {"topic": "t", "remote": "worker:1", **entries}.items())
    )
    with pytest.raises(UserError, match=why):
        gate_config.load(path)
        Gate(gate_config.load(path), Scripted()).close()


def test_a_state_has_a_size_that_the_fleet_reads(tmp_path):
    with Gate(configured(tmp_path), Scripted()) as gate:
        for n in range(16):
            gate.submit(Detection("ü" * 30 + f"{n:04}", 0.1), lambda decision: None)
        entries = gate_state.state(gate, boot=1, uptime_s=0, strangers=0, complaints=0)
        shown = parse_state(gate_state.encoded(entries).encode())
        assert len(shown.streams) == 16
        entries["class_names"] = ["x" * 63] * 40
        text = gate_state.encoded(entries)
        assert 3900 < len(text.encode()) <= 4096 and 0 < len(json.loads(text)["streams"]) < 16


POISON = jpeg("blue")


def spoken(word):
    return json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": word}}]}).encode()


def asking(folder, url, **entries):
    """The configuration of a gate that asks about every sample, and its language model behind a URL."""
    about = {"url": f"{url}/v1", "model": "m", "prompt": "{classes}", "classes": ["no", "yes"], "logprobs": False}
    (folder / "m.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in about.items()))
    always = {"policy": "h2t2", "exploration": "epsilon", "epsilon": 1.0}
    return configured(folder, remote="m.toml", **{**always, "deadline": "20s", **entries})


def sources(gate, count, picture=PHOTO):
    return [gate.decide("porch", 0.5, picture).source for _ in range(count)]


def test_a_picture_on_which_the_server_fails_holds_up_no_other(tmp_path):
    """It answers 500 to one picture each time, as servers do that cannot decode it; all others are fine."""

    def answer(_path, body, _headers):
        return (500, b"cannot decode") if base64.b64encode(POISON) in body else spoken("yes")

    now = [0.0]
    with serving(answer) as url, Gate(asking(tmp_path, url), clock=lambda: now[0]) as gate:
        assert sources(gate, 4) == ["remote"] * 4
        assert sources(gate, 1, POISON) == ["fallback"]
        for n in range(MAX_ATTEMPTS - 1):
            assert sources(gate, 3) == ["remote"] * 3 and not gate.health.unanswered
            assert until(lambda: gate.backlog.length == 1) and gate.failed == 0, n
            now[0] += 1000
            assert until(lambda: gate.backlog.attempts.waiting() or not gate.backlog.length)
        assert until(lambda: gate.failed == 1) and gate.backlog.length == 0
        assert sum(base64.b64encode(POISON) in body for *_, body in url.requests) == MAX_ATTEMPTS


def test_new_samples_end_an_outage_and_the_queue_keeps_what_it_could_not_ask(tmp_path):
    down, now = [True], [0.0]
    answer = lambda *_: (503, b"loading") if down[0] else spoken("yes")  # noqa: E731
    with serving(answer) as url, Gate(asking(tmp_path, url), clock=lambda: now[0]) as gate:
        sources(gate, 3)
        assert gate.health.is_away and "status 503" in gate.health.unanswered
        assert gate.backlog.length == 3 and gate.failed == 0
        down[0] = False

        def is_empty():
            now[0] += 1000  # again and again: the outcome of the test question may come last
            return gate.backlog.length == 0

        assert until(is_empty)
        assert sources(gate, 3) == ["remote"] * 3 and not gate.health.unanswered and gate.late == 3


def test_without_a_queue_a_new_sample_is_the_probe(tmp_path):
    remote, now = Scripted(), [0.0]
    with Gate(configured(tmp_path, deadline="1h"), remote, clock=lambda: now[0]) as gate:
        asked(gate, remote)
        remote.answer(why="refused", cause=Cause.SERVER)
        gate.backlog.remove(1)
        now[0] += 1000
        asked(gate, remote)
        assert len(remote.questions) == 1
        asked_before = gate.offloads
        while gate.offloads < asked_before + 3:
            gate.submit(Detection("porch", 0.45, payload=Payload(data=PHOTO, media="image/jpeg")), lambda _: None)
        assert len(remote.questions) == 1, "one probe at a time"
        remote.answer(1)
        assert not gate.health.is_away


SNAPSHOT_FAULTS = {
    "not there yet": (404, b"{}"), "an error": (500, b""), "a proxy": (502, b""), "too many": (429, b"", {"Retry-After": "1"}),
    "empty": (200, b"", {"Content-Type": "image/jpeg"}), "a reset": None,
}  # fmt: skip


@pytest.mark.parametrize("fault", SNAPSHOT_FAULTS)
def test_a_snapshot_that_is_not_there_yet_is_asked_for_again(tmp_path, fault):
    """Each ended the question for ever."""
    failing, now = [True], [0.0]

    def answer(path, _body, _headers):
        if not path.endswith(".jpg"):
            return spoken("yes")
        if failing[0] and SNAPSHOT_FAULTS[fault] is None:
            raise ConnectionResetError
        return SNAPSHOT_FAULTS[fault] if failing[0] else PHOTO

    with serving(answer) as url, Gate(asking(tmp_path, url, picture=url + "/{id}.jpg"), clock=lambda: now[0]) as gate:
        assert gate.decide("porch", 0.5, Payload(url=f"{url}/a.jpg")).source == "fallback"
        assert gate.backlog.length == 1 and not gate.health.is_away and gate.failed == 0
        failing[0] = False
        now[0] += 1000
        assert until(lambda: gate.late == 1) and gate.backlog.length == 0


def test_frigate_publishes_before_its_snapshot_exists(tmp_path):
    """The preset waits for it, so that the answer decides."""
    entries = of_preset("frigate", tmp_path)
    answers = iter([(404, b"{}"), PHOTO])
    with serving(lambda path, *_: next(answers) if path.endswith(".jpg") else spoken("yes")) as url:
        wait = {"picture": url + "/{id}.jpg", "picture_wait": entries.picture_wait, "picture_timeout": entries.picture_timeout}
        with Gate(asking(tmp_path, url, **wait)) as gate:
            assert gate.decide("porch", 0.5, Payload(url=f"{url}/a.jpg")).source == "remote"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((401, b"wrong key"), "status 401"),
        ((404, b'{"error": "model \\"m\\" not found"}'), "not found"),
        ((400, b"this model sees no pictures"), "sees no pictures"),
        (spoken(""), "an empty text"),
        (spoken("<think>hm"), "thinks"),
        ((503, b"loading"), "loading"),
    ],
    ids=str,
)
def test_a_test_question_tells_what_is_wrong_before_there_is_a_sample(tmp_path, answer, why):
    """Of 150 questions 146 were asked and charged, none was answered, and the state said that all is well."""
    with serving(lambda *_: answer) as url, Gate(asking(tmp_path, url), clock=lambda: 0.0) as gate:
        assert until(lambda: gate.health.unanswered)
        content = parse_state(json.dumps(gate_state.state(gate, boot=7, uptime_s=3, strangers=0, complaints=0)).encode())
        assert content.link == "silent" and why in content.unanswered
        paid, requests = gate.paid, len(url.requests)
        assert sources(gate, 20) == ["fallback"] * 20
        assert gate.paid == paid and len(url.requests) == requests and gate.backlog.length == 20


def test_a_test_question_may_be_answered_with_anything(tmp_path):
    with serving(lambda *_: spoken("I see nothing but grey.")) as url, Gate(asking(tmp_path, url)) as gate:
        assert until(lambda: gate.health.answers) and not gate.health.unanswered and gate.samples == 0


def test_a_model_that_loads_while_somebody_waits_is_loaded(tmp_path):
    """As Ollama: who hangs up ends the load. Each question of 8 s ended one, and none was answered."""
    loaded, waiting = threading.Event(), queue.Queue()

    def answer(*_):
        waiting.put(1)
        loaded.wait(60)
        return spoken("yes")

    with serving(answer) as url, Gate(asking(tmp_path, url, deadline="50ms", patience="50s")) as gate:
        assert [waiting.get(timeout=30), *sources(gate, 3)] == [1] + ["fallback"] * 3
        loaded.set()
        assert until(lambda: gate.late == 3), "each is answered, and teaches"
        assert until(lambda: gate.backlog.length == 0) and len(url.requests) == 4
        assert "too late" in gate.health.unanswered
