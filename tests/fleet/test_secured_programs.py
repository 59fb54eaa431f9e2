"""Programs on a broker of `h2t2 certs` and `h2t2 broker-config`, where each user connects once: gate, dashboard, metrics,
Home Assistant. tests/fleet/test_access.py has node and worker.

The gate runs on the one connection that its user may have: scores, decisions, questions, replies and its state.
"""

import json
import sqlite3
from collections import Counter
from contextlib import closing, contextmanager
from urllib.request import urlopen

import pytest
from command_line import started
from pages import dashboard
from secured import Client, options
from support import until

from h2t2.cpython import worker_wire
from h2t2.link import presence, wire
from h2t2_tools.fleet import broker, home_assistant
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.gate import GateConfig
from h2t2_tools.fleet.gate.door import Door
from h2t2_tools.fleet.monitoring.follower import Follower

COUNT = 200
pytestmark = pytest.mark.slow


def configured(folder):
    return GateConfig(
        topic="scores/+", key="$topic.1", identity="id", text="words", remote="worker:1", folder=folder, beta=0.01,
        policy="h2t2", epsilon=0.5, deadline=20, in_flight=COUNT,
    )  # fmt: skip


@contextmanager
def door_of(fleet, folder):
    with closing(Door(configured(folder), Endpoint("localhost", fleet.devices, **fleet.login("gate")))) as door:
        assert until(lambda: door._link.up.is_set())
        yield door


class Answering(Client):
    """A worker of model 1 that answers every request with class 1."""

    def __init__(self, fleet):
        super().__init__(fleet.workers, fleet.login("rdl"), [wire.topic("+", "request/1")])
        self.client.on_message = self._answer
        assert until(lambda: self.subscribed)
        self.client.publish(presence.worker_topic(1, "rdl"), b"1", 1, True).wait_for_publish(5)

    def _answer(self, client, _data, message):
        request = worker_wire.decode_request(bytes(message.payload))
        reply = worker_wire.encode_reply(wire.OK, request.boot, request.sequence, 1, 32768)
        client.publish(wire.topic("gate", "reply"), reply, 1)


def score(n):
    return json.dumps({"id": str(n), "score": n / COUNT, "words": f"words {n}"}).encode()


def test_the_gate_decides_every_detection_on_its_one_connection(fleet, tmp_path):
    """It opened two clients of one user, which evicted each other: 107 of 200 decided."""
    with closing(Answering(fleet)), door_of(fleet, tmp_path) as door:
        operator = Client(fleet.workers, fleet.login("operator"), ["scores/+/decision", wire.topic("gate", "state")])
        detector = Client(fleet.devices, fleet.login("detector"))
        with closing(operator), closing(detector):
            assert until(lambda: operator.subscribed and detector.up)
            for n in range(COUNT):
                detector.publish("scores/porch", score(n))

            def heard():
                return [json.loads(payload) for topic, payload in operator.messages if topic == "scores/porch/decision"]

            assert until(lambda: len(heard()) == COUNT)
            assert until(lambda: door.gate.replies > 20 and any("state" in topic for topic, _ in operator.messages))
            assert Counter(one["id"] for one in heard()) == dict.fromkeys(map(str, range(COUNT)), 1)
            assert (door._link.connections, door.unpublished, door.gate.fallbacks) == (1, 0, 0)


def test_what_a_gate_and_a_detector_may_reach(fleet):
    """A gate forges no scores and no other topic's decisions; a detector reaches its topics alone."""
    topics = ["scores/porch", "scores/porch/decision", "scores/a/b", wire.topic("dev-b", "reply"), "elsewhere"]
    gate, detector, operator, device = clients = [
        Client(fleet.workers if name == "operator" else fleet.devices, fleet.login(name), [*topics, "#"])
        for name in ("gate", "detector", "operator", "dev-b")
    ]
    assert until(lambda: all(one.subscribed for one in clients))
    for writer, name in ((gate, b"gate"), (detector, b"detector"), (operator, b"operator")):
        for topic in topics:
            writer.publish(topic, name)
    detector.publish("scores/porch", b"end")
    gate.publish("scores/porch/decision", b"end")
    assert until(lambda: ("scores/porch", b"end") in gate.messages and ("scores/porch/decision", b"end") in operator.messages)

    def heard(client):
        return {(topic, payload) for topic, payload in client.messages if topic in topics and payload != b"end"}

    everything = heard(gate) | heard(detector) | heard(operator) | heard(device)
    assert {topic for topic, payload in everything if payload == b"gate"} == {"scores/porch/decision"}
    assert {topic for topic, payload in everything if payload == b"detector"} == {*topics[:3]}
    assert {topic for topic, payload in everything if payload == b"operator"} == set()
    assert {topic for topic, _ in heard(gate)} == {"scores/porch"}
    assert {topic for topic, _ in heard(operator)} == {"scores/porch/decision"}
    for one in clients:
        one.close()


@contextmanager
def running(fleet, command, *words):
    """A command of an operator, until the context ends."""
    line = [command, *words, "--broker", f"mqtts://localhost:{fleet.workers}", *options(fleet, "watcher")]
    with started(*line) as process:
        yield
    assert process.returncode == 0 and "Traceback" not in process.log, process.log


def answer_of(url):
    """The text at a URL; "" while nobody serves it."""
    try:
        with urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


@pytest.mark.whole
def test_dashboard_metrics_and_home_assistant_see_the_gate(fleet, tmp_path):
    with door_of(fleet, tmp_path):
        port = broker.free_port()
        with running(fleet, "metrics", "--listen", port):
            assert until(lambda: 'device="gate"' in answer_of(f"http://127.0.0.1:{port}/metrics"))
        home = Client(fleet.workers, fleet.login("operator"), [home_assistant.topic("gate")])
        with closing(home), running(fleet, "home-assistant"):
            assert until(lambda: home.messages)
        history = tmp_path / "history.db"

        def recorded():
            with closing(sqlite3.connect(history)) as base:
                return base.execute("SELECT count(*) FROM devices WHERE device = 'gate'").fetchone()[0]

        with dashboard(f"mqtts://localhost:{fleet.workers}", tmp_path, *map(str, options(fleet, "watcher"))) as address:
            assert until(lambda: answer_of(address + "healthz")) and until(recorded)


def test_a_gate_is_removed_by_an_operator_who_connects_once(fleet, tmp_path):
    with door_of(fleet, tmp_path):
        pass
    to = Endpoint("localhost", fleet.workers, **fleet.login("watcher"))
    with closing(Follower(to).start()) as follower:

        def known():
            with follower.fleet() as devices:
                return "gate" in devices.devices and devices.devices["gate"].state

        assert until(known)
        follower.remove("gate")
        assert until(lambda: follower._session.up.is_set()) and not known()
