"""The parts of the gate: messages, addresses of pictures, lessons, the queue, streams. Strangers write the messages."""

import base64
import contextlib
import json
import queue
import socket
import threading
from array import array

import pytest
from http_server import serving
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Template
from support import until

from h2t2.core.policies import make
from h2t2.core.policy import OFFLOAD
from h2t2.cpython.worker_wire import decode_request, encode_reply
from h2t2.link import wire
from h2t2_tools.cli.main import main
from h2t2_tools.common import policies
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import home_assistant
from h2t2_tools.fleet.gate import Detection, Gate, GateConfig, Payload, config, presets, state
from h2t2_tools.fleet.gate.backlog import Backlog
from h2t2_tools.fleet.gate.detection import Decision
from h2t2_tools.fleet.gate.message import Ignored, Reader
from h2t2_tools.fleet.gate.picture_client import Allowed, PictureClient, Unreadable
from h2t2_tools.fleet.gate.remote import Answer, Question, WorkerRemote
from h2t2_tools.fleet.gate.streams import Streams
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.queue.lesson import Lesson
from h2t2_tools.proof.gate_day.messages import bird, event, jpeg

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
    monkeypatch.setattr(client._http, "send", refuse)
    with pytest.raises(Unreadable):
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
    ("answer", "why"),
    [
        ((302, b"", {"Location": "http://169.254.169.254/"}), "status 302"),
        ((404, b"no"), "status 404"),
        (b"<html>", "want a picture"),
        (PHOTO + bytes(20_000), "more than 10,000 bytes"),
        ((200, PHOTO, {"Content-Encoding": "gzip"}), "compressed"),
        (b"", "want a picture"),
    ],
)
def test_what_is_no_picture_is_refused(answer, why):
    with serving(lambda *_: answer) as url:
        client = PictureClient([Allowed.parse(url.removeprefix("http://"))], 10_000, 5)
        with pytest.raises(Unreadable, match=why):
            client.fetch(f"{url}/a.jpg")
        assert len(url.requests) == 1


def test_a_picture_that_is_not_there_yet_gets_time_to_appear():
    answers = iter([(404, b""), (503, b""), PHOTO, (404, b"")])
    with serving(lambda *_: next(answers)) as url:
        client = PictureClient([Allowed.parse(url.removeprefix("http://"))], 10_000, 5, 30)
        assert client.fetch(f"{url}/a.jpg") == (PHOTO, "image/jpeg")
        client.close()
        with pytest.raises(Unreadable, match="status 404"):
            PictureClient([Allowed.parse(url.removeprefix("http://"))], 10_000, 5).fetch(f"{url}/b.jpg")


def test_a_function_learns_what_the_detector_named(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def scores(x): return [float((c.key, c.label) == ('Parus major', 'Great Tit') and len(c) > 9) for c in x]\n"
    )
    with Gate(configured(tmp_path, remote="mine.py:scores", key="k")) as gate:
        decisions = [gate.decide(key, 0.5, PHOTO, label="Great Tit") for key in ("Parus major", "Corvus corax")]
    assert [(one.decision, one.source) for one in decisions] == [(1, "remote"), (0, "remote")]


KINDS = {
    "adaptive": {}, "h2t2": {}, "miss_rate": {"miss_rate": 0.05}, "guaranteed": {"miss_rate": 0.05, "confidence": 0.9},
    "classes": {"costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, "head": {"features": 3},
    "class-head": {"costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]], "features": 3},
}  # fmt: skip


def twin_policies(kind):
    numbers = {name: value for name, value in KINDS[kind].items() if name != "features"}
    arguments = policies.policy_arguments(
        "h2t2" if kind == "h2t2" else "adaptive", {**policies.DEFAULTS, **numbers, "beta": 0.2}
    )
    arguments |= {"features": 3} if "features" in KINDS[kind] else {}
    return [make("h2t2" if kind == "h2t2" else "adaptive", {**arguments, "window": window}) for window in (8, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_lesson_teaches_what_its_ticket_would_have_taught(kind):
    """Bit for bit, whatever the policy: the state after a stored lesson is that after a label in time."""
    prompt, gated = twin_policies(kind)
    for n in range(250):
        score = n * 7919 % 256
        scores, features = [score * 40, 16384 - score * 40, 0], [n % 50, -n % 40, 7]
        reading = {
            "classes": scores, "head": array("i", [score, *features]), "class-head": array("i", [*scores, *features]),
        }.get(kind, score >> 4)  # fmt: skip
        action = prompt.decide(reading)
        assert gated.decide(reading) == action
        if action == OFFLOAD:
            label = int(score > 100 + n % 60)
            lesson = Lesson.take(gated, tuple(reading) if "features" in KINDS[kind] else ())
            assert prompt.learn(prompt.ticket, label)
            assert Lesson.parse(lesson.as_json()).teach(gated, label)
            counters = {"last", "ticket"}  # a lesson opens a ticket of its own
            for (mine, name, *_), (theirs, *_) in zip(prompt.number_rows(), gated.number_rows()):
                assert name in counters or getattr(mine, name) == getattr(theirs, name), name
    assert prompt.lessons == gated.lessons > 20
    for (mine, start, stop, *_), (theirs, *_) in zip(prompt.array_rows(), gated.array_rows()):
        assert mine[start:stop] == theirs[start:stop]


def test_queued_samples_survive_and_the_oldest_go_first(tmp_path):
    times = [1000.0]
    backlog = Backlog(tmp_path / "q.db", 10**9, 60, 100, clock=lambda: times[0])
    lesson = Lesson(bin=5, beta=6554, local=1, chance=1 << 20, probability=3000, wish=7)
    first = Detection("porch", 0.4, identity="a", topic="t", label="person", payload=Payload(url="http://x/a.jpg"))
    number = backlog.add(first, lesson)
    backlog.keep_payload(number, Payload(data=PHOTO, media="image/jpeg"))
    backlog.add(Detection("porch", (0.1, 0.2, 0.7), payload=Payload(tensor=(1.0, 2.5))), lesson)
    backlog.close()
    backlog = Backlog(tmp_path / "q.db", 10**9, 60, 100, clock=lambda: times[0])
    assert backlog.length == 2 and len(backlog.undecided()) == 2
    waiting = backlog.oldest()
    assert waiting.lesson == lesson and waiting.detection.payload == Payload(data=PHOTO, media="image/jpeg")
    after = backlog.oldest({waiting.number})
    assert after.detection.score == (0.1, 0.2, 0.7) and after.detection.payload.tensor == (1.0, 2.5)
    times[0] = 1050.0
    for n in range(200):
        backlog.add(Detection("porch", 0.4, identity=str(n), payload=Payload(data=b"x")), lesson)
    assert backlog.length == 202
    times[0] = 1065.0
    for n in range(64):
        backlog.add(Detection("hall", 0.4, identity=f"b{n}", payload=Payload(data=b"x")), lesson)
    assert backlog.dropped == 2 and backlog.oldest().detection.identity == "0"
    backlog.close()


def test_the_queue_is_bounded_by_size(tmp_path):
    backlog = Backlog(tmp_path / "q.db", 1_000_000, 1e9, 100)
    lesson = Lesson(bin=5, beta=6554, local=1, chance=1 << 20, probability=3000)
    for n in range(256):
        backlog.add(Detection("porch", 0.4, identity=str(n), payload=Payload(data=bytes(20_000))), lesson)
    assert 10 < backlog.length < 120 and backlog.length + backlog.dropped == 256
    assert int(backlog.oldest().detection.identity) == backlog.dropped
    backlog.close()


def decision(identity, **more):
    entries = {"key": "k", "decision": 1, "label": "yes", "source": "local", "score": 0.5, "bin": 8, "cost": None}
    return Decision(**{"id": identity, **entries, "unfamiliar": False, "detected": "", "ms": 1, "topic": "t", **more})


def test_decisions_are_remembered_by_identity_and_the_oldest_forgotten(tmp_path):
    backlog = Backlog(tmp_path / "q.db", 10**9, 60, 50)
    for n in range(128):
        backlog.decide(decision(str(n)))
    assert backlog.decision("t", "127") == decision("127") and backlog.decision("other", "127") is None
    assert backlog.decision("t", "1") is None
    backlog.close()


class Scripted:
    """A remote model whose answers a test gives."""

    def __init__(self):
        self.questions = []

    def ask(self, question, done):
        self.questions.append((question, done))

    def close(self):
        pass

    def answer(self, label=-1, **more):
        _, done = self.questions.pop(0)
        done(Answer(label, **more))


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
        assert len(decisions) == count and gate.lessons == 1 and gate.counters.late == 1


def test_a_question_that_will_have_no_answer_leaves_the_queue(tmp_path):
    remote = Scripted()
    with Gate(configured(tmp_path), remote) as gate:
        asked(gate, remote)
        remote.answer(why="no picture")
        assert gate.backlog.length == 0 and gate.counters.failed == 1 and gate.counters.fallbacks == 1


def test_an_identity_is_decided_once_also_after_a_restart(tmp_path):
    decisions = []
    detection = Detection("porch", 0.99, identity="a", topic="t", payload=Payload(data=PHOTO, media="image/jpeg"))
    for _ in range(2):
        with Gate(configured(tmp_path), Scripted()) as gate:
            gate.submit(detection, decisions.append)
            gate.submit(detection, decisions.append)
    assert len(decisions) == 4 and len(set(decisions)) == 1 and gate.counters.repeated == 2 and gate.counters.samples == 0


def test_a_message_that_comes_again_while_its_question_is_open_waits_for_the_same_decision(tmp_path):
    remote, first, second = Scripted(), [], []
    with Gate(configured(tmp_path, deadline="1h"), remote) as gate:
        asked(gate, remote, first.append, topic="t")
        gate.submit(Detection("porch", 0.1, identity=remote_identity(gate), topic="t"), second.append)
        remote.answer(0)
        assert second == [first[-1]] and gate.counters.repeated == 1


def remote_identity(gate):
    (pending,) = gate._pending.values()
    return pending.detection.identity


def killed(gate):
    """End a gate as a kill does: it decides and saves nothing more."""
    gate._ended.set()
    gate._thread.join()
    gate.backlog.close()


def test_a_gate_with_a_head_starts_again_after_a_kill(tmp_path):
    settings = configured(tmp_path, features="f", feature_count=2, deadline="1h")
    first, remote, decisions = Gate(settings, Scripted()), Scripted(), []
    asked(first, first._remote, features=(3, -4))
    killed(first)
    with Gate(settings, remote, decisions.append) as gate:
        assert [(one.source, one.bin) for one in decisions] == [("fallback", 7)]
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
    with Gate(configured(tmp_path, **entries), Scripted()) as gate:
        assert until(lambda: gate.backlog.length == 0)
        assert gate.counters.failed == 1 and gate.account.paid == 0 and not gate._remote.questions


def test_a_label_that_the_policy_refuses_leaves_the_queue(tmp_path):
    first, remote = Gate(configured(tmp_path), Scripted()), Scripted()
    asked(first, first._remote)
    first.close()
    with Gate(configured(tmp_path), remote) as gate:
        gate.streams.get("porch").policy.learn = lambda *_: 1 // 0
        assert until(lambda: remote.questions)
        remote.answer(1)
        assert gate.backlog.length == 0 and gate.counters.late == 0


class Replies:
    """A link whose workers answer every request with 1."""

    def __init__(self):
        self.requests = queue.Queue()

    def is_connected(self):
        return True

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
        return encode_reply(wire.OK, request.boot, request.sequence, 1, 20000)


def test_a_callback_that_fails_ends_no_thread_of_the_transport(tmp_path, caplog):
    remote, labels = WorkerRemote(configured(tmp_path), Replies(), 7), []
    question = Question(Payload(tensor=(1.0,)), Lesson(bin=1, beta=1, local=0, chance=1, probability=1))
    remote.ask(question, lambda answer: 1 // 0)
    remote.ask(question, lambda answer: labels.append(answer.label))
    assert until(lambda: labels == [1], 10)
    assert "ZeroDivisionError" in caplog.text
    remote.close()


def test_only_answers_in_time_count_as_answered(tmp_path):
    remote = Scripted()
    with Gate(configured(tmp_path, deadline="10ms"), remote) as gate:
        asked(gate, remote)
        assert until(lambda: gate.counters.fallbacks == 1)
        remote.answer(1)
        assert gate.counters.late == 1 and sum(gate.account.answered) == sum(gate.account.waits) == 0


def test_the_costs_of_classes_may_stand_in_a_file(tmp_path):
    (tmp_path / "costs.csv").write_text("0,1,1\n1,0,1\n1,1,0\n")
    path = tmp_path / "gate.toml"
    path.write_text('topic = "t"\nremote = "worker:1"\nclass_costs = "costs.csv"\n')
    loaded = config.load(path)
    (tmp_path / "costs.csv").unlink()
    assert loaded.classes == 3 and loaded.names == ["0", "1", "2"]
    with Gate(loaded, Scripted()) as gate:
        gate.submit(Reader(loaded).read("t", b'{"score": [0.1, 0.1, 0.8]}'), lambda _: None)
        assert gate.counters.samples == 1


def test_a_look_at_the_queue_reads_one_sample_and_none_without_a_budget(tmp_path):
    lesson = Lesson(bin=7, beta=6554, local=1, chance=1 << 20, probability=3000)
    with Gate(configured(tmp_path, budget="8/day"), Scripted()) as gate, gate._lock:
        gate._asked_from_queue = 1  # the gate's own thread asks nothing
        numbers = [gate.backlog.add(Detection("porch", 0.45, payload=Payload(data=PHOTO)), lesson) for _ in range(50)]
        gate._pending = dict.fromkeys(numbers[:40])
        statements = []
        gate.backlog._base.set_trace_callback(statements.append)
        gate._asked_from_queue = 0
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
        assert len(remote.questions) <= 2 and gate.counters.unaffordable > 200


def test_a_new_stream_starts_from_what_the_others_have_learned_also_after_a_restart(tmp_path):
    streams = Streams(configured(tmp_path), tmp_path / "s")
    porch = streams.get("porch").policy
    for _ in range(3000):
        k = 12 if porch.lessons % 2 else 3  # high scores are false alarms here
        if porch.decide(k) == OFFLOAD:
            Lesson.take(porch).teach(porch, int(k == 3))
    streams.get("hall")
    for stream in streams:
        stream.keeper.save()
        stream.store.flush()
    again = Streams(configured(tmp_path), tmp_path / "s")
    for hall in (streams.get("hall").policy, again.get("hall").policy):
        assert hall.lessons == 0 and hall.likely(12) == 0 and hall.likely(3) == 1
    assert again.get("porch").policy.lessons == porch.lessons


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


def test_scores_that_a_stream_has_hardly_met_are_flagged(tmp_path):
    decisions, payload = [], Payload(data=PHOTO, media="image/jpeg")
    with Gate(configured(tmp_path, in_flight=1000), Scripted()) as gate:
        for n in range(400):
            gate.submit(Detection("porch", 0.02 + n % 10 / 100, payload=payload), decisions.append)
        gate.submit(Detection("porch", 0.97, payload=payload), decisions.append)
        gate.submit(Detection("new", 0.97, payload=payload), decisions.append)
    flags = {one.key: one.unfamiliar for one in decisions if one.score == 0.97}
    assert flags == {"porch": True, "new": False} and gate.counters.unfamiliar < 5


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
        text = json.dumps(state.state(gate, boot=7, uptime_s=3, strangers=0, complaints=0), separators=(",", ":"))
    content = parse_state(text.encode())
    assert content.samples == 71 and content.streams["front_door"][1] == 31 and len(content.streams) == 16
    message = json.loads(home_assistant.discovery("gate", ["motion"], content.model_dump(exclude_unset=True)))
    assert message["cmps"]["decision-front_5fdoor"]["name"] == "front_door"
    shown = Template(message["cmps"]["decision-front_5fdoor"]["val_tpl"])
    for streams, word in (
        ({"front_door": [1, 9, 2]}, "ON"),
        ({"front_door": [0, 9, 2]}, "OFF"),
        ({"front_door": [-1, 9, 2]}, "None"),
    ):
        assert shown.render(value_json={"streams": streams}) == word
    assert shown.render(value_json={"streams": {}}) == "None"
    assert "states" not in json.dumps([entity for entity in message["cmps"].values() if "streams" in entity["val_tpl"]])


def test_the_command_writes_a_preset_that_loads_and_refuses_to_overwrite(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llava.toml").write_text(
        'url = "http://localhost:1/v1"\nmodel = "m"\nprompt = "Yes?"\nclasses = ["no", "yes"]\n'
    )
    assert main(["gate", "--preset", "frigate", "--remote", "llava.toml"]) == 0
    assert "h2t2 gate frigate.toml" in capsys.readouterr().out
    assert config.load(tmp_path / "frigate.toml").key == "after.camera"
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
        config.load(path)
        Gate(config.load(path), Scripted()).close()


def test_a_state_has_a_size_that_the_fleet_reads(tmp_path):
    with Gate(configured(tmp_path), Scripted()) as gate:
        for n in range(16):
            gate.submit(Detection("ü" * 30 + f"{n:04}", 0.1), lambda decision: None)
        entries = state.state(gate, boot=1, uptime_s=0, strangers=0, complaints=0)
        shown = parse_state(state.encoded(entries).encode())
        assert len(shown.streams) == 16
        entries["class_names"] = ["x" * 63] * 40
        text = state.encoded(entries)
        assert 3900 < len(text.encode()) <= 4096 and 0 < len(json.loads(text)["streams"]) < 16
