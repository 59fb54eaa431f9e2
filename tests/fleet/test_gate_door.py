"""The gate's door to a broker: it waits for it, gives up old subscriptions, and notices large messages and namesakes."""

import json
import logging
import os
import signal
from contextlib import closing

import pytest
from gate_decisions import decision
from support import listening, until

from h2t2.clock import ticks_add, ticks_ms
from h2t2.cpython.mqtt_session import Session, make_client
from h2t2.cpython.worker_wire import decode_request, encode_reply
from h2t2.link import presence, wire
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.connection import scores_client
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.gate import Gate, GateConfig
from h2t2_tools.fleet.gate.door import Door
from h2t2_tools.fleet.gate.gate_link import GateLink
from h2t2_tools.fleet.monitoring.follower import Follower

pytestmark = pytest.mark.slow


def config(folder, **entries):
    return GateConfig(
        **{"topic": "scores/+", "score": "", "remote": "worker:1", "folder": folder, "device": "porch", **entries}
    )


def opened(folder, server, **entries):
    return closing(Door(config(folder, **entries), Endpoint(server.host, server.port)))


def publish(server, *messages):
    session = Session(server.host, server.port, lambda: make_client(""), ["none"]).start()
    session.open()
    for topic, payload in messages:
        assert session.publish(topic, payload, 1)
    assert until(lambda: not session.unacknowledged())
    session.close()


def is_kept(server, client_id):
    """Whether the broker keeps a session of a client. It has none afterwards."""
    present = []
    client = make_client(client_id, clean_session=False)
    client.on_connect = lambda _client, _data, flags, _reason, _properties: present.append(flags.session_present)
    client.connect(server.host, server.port)
    client.loop_start()
    assert until(lambda: present)
    client.disconnect()
    client.loop_stop()
    return present[0]


def test_the_gate_waits_for_its_broker(broker, tmp_path, caplog):
    caplog.set_level(logging.WARNING, "h2t2_tools")
    broker.stop()
    with opened(tmp_path, broker) as door:
        assert "waiting for it" in caplog.text
        broker.start()
        assert until(lambda: door._link.up.is_set())
        publish(broker, ("scores/1", b"0.5"))
        assert until(lambda: door.gate.samples == 1)


@pytest.mark.parametrize("method, answers", [("_on_ready", True), ("_run", False)], ids=["connected", "without a broker"])
def test_a_sigterm_as_the_door_opens_closes_it(method, answers, broker, tmp_path, monkeypatch):
    """It ended the command without close(): a model that had been asked kept the process for ever."""
    (tmp_path / "mine.py").write_text("def scores(batch):\n    return [1.0]\n")
    closed, close, on_ready = [], Door.close, Door._on_ready

    def signalled(door):
        if method == "_on_ready":
            on_ready(door)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Door, method, signalled)
    monkeypatch.setattr(Door, "close", lambda door: (closed.append(door), close(door)))
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    url = broker.url
    if not answers:
        broker.stop()
    lines = {"topic": "x", "remote": "mine.py:scores", "broker": url}
    (tmp_path / "gate.toml").write_text("".join(f"{name} = {value!r}\n" for name, value in lines.items()))
    try:
        assert main(["gate", str(tmp_path / "gate.toml")]) == 0
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    assert len(closed) == 1


def test_what_waited_at_the_broker_is_asked_about_once_the_workers_are_known(broker, tmp_path):
    """The broker delivers it before the subscription, and so before the workers' retained messages."""
    entries = {"score": "score", "text": "words", "beta": 0.01, "policy": "h2t2", "epsilon": 1.0, "deadline": 30}
    with opened(tmp_path, broker, **entries) as door:
        assert until(door._link.up.is_set)

    def worker():
        client = make_client("")
        client.on_message = answer
        return client

    def answer(client, _data, message):
        request = decode_request(bytes(message.payload))
        reply = encode_reply(wire.OK, request.boot, request.sequence, 1, 32768)
        client.publish(wire.topic("porch", "reply"), reply, 1)

    session = Session(broker.host, broker.port, worker, [wire.topic("+", "request/1")]).start()
    session.open()
    session.publish(presence.worker_topic(1, "w"), b"1", 1, True)
    publish(broker, *((f"scores/{n}", b'{"score": 0.5, "words": "x"}') for n in range(5)))
    with opened(tmp_path, broker, **entries) as door:
        counters = door.gate
        assert until(lambda: counters.samples == 5 and counters.replies + counters.fallbacks == counters.offloads)
        assert counters.replies > 0 == counters.fallbacks
    session.close()


def test_each_score_gets_one_decision_also_without_a_picture_that_can_be_asked_about(broker, tmp_path):
    """These messages were dropped with a line in the log: nothing came on /decision."""
    broken = [{}, {"picture": None}, {"picture": "?"}, {"picture": "bm8="}, {"id": None}, {"picture": "http://elsewhere/x.jpg"}]
    messages = [
        ("detector/porch", json.dumps({"id": str(n), "score": 0.45, **entry}).encode()) for n, entry in enumerate(broken)
    ]
    entries = {"topic": "detector/+", "key": "$topic.1", "identity": "id", "score": "score", "picture": "picture", "beta": 0.01}
    with listening(broker, "detector/+/decision") as (_, heard), opened(tmp_path, broker, **entries) as door:
        assert until(door._link.up.is_set)
        publish(broker, *messages)
        assert until(lambda: len(heard) == len(broken))
        assert door.strangers == 0 and not door.gate.backlog.unpublished()
    assert [decision["id"] for decision in heard].count("") == 1
    assert all(decision["reason"] for decision in heard) and {decision["source"] for decision in heard} <= {"local", "fallback"}
    assert len({decision["reason"] for decision in heard}) > 3


def test_a_command_that_is_too_large_is_counted_and_not_kept(broker, tmp_path):
    with opened(tmp_path, broker) as door:
        assert until(door._link.up.is_set)
        publish(broker, (wire.topic("porch", "command"), b" " * 400))
        assert until(lambda: door.strangers == 1) and not door._link.commands


def test_a_decision_waits_for_the_earlier_ones_of_its_connection(tmp_path):
    link = GateLink(config(tmp_path), 5, [], "localhost", 1)
    link.up.set()
    assert not link.publish_decision(decision(1, place=1)) and link.unpublished() == 0


def test_a_topic_that_is_no_longer_configured_is_given_up(broker, tmp_path):
    with opened(tmp_path, broker):
        pass
    with opened(tmp_path, broker, topic="others/+") as door:
        assert until(lambda: door._link.up.is_set())
        publish(broker, ("scores/1", b"0.5"), ("others/1", b"0.5"))
        assert until(lambda: door.gate.samples == 1)
        publish(broker, ("others/2", b"0.6"))
        assert until(lambda: door.gate.samples == 2)
    with opened(tmp_path, broker, topic="others/+") as door:
        assert door._topics.former == []


def test_a_gate_that_is_removed_has_no_subscription_left(broker, tmp_path):
    with opened(tmp_path, broker):
        pass
    with closing(Follower(Endpoint(broker.host, broker.port)).start()) as follower:

        def known():
            with follower.fleet() as fleet:
                return "porch" in fleet.devices and fleet.devices["porch"].state

        assert until(known)
        follower.remove("porch")
    assert not is_kept(broker, scores_client("porch"))


def test_messages_that_are_too_large_are_counted_and_logged(broker, tmp_path, caplog):
    with opened(tmp_path, broker) as door:
        publish(broker, ("scores/1", bytes(1_200_000)), ("scores/2", bytes(1_200_000)), ("scores/3", b"0.5"))
        assert until(lambda: door.gate.samples == 1 and door.strangers == 2)
        assert "it has more than 1,048,576 bytes (2 so far)" in caplog.text and door.oversize == 2


def test_another_client_of_this_name_is_named_once(broker, tmp_path, caplog):
    with opened(tmp_path, broker) as door:
        assert door.summary()["namesakes"] is False
        other = presence.status("online", door._boot + 1)
        for _ in range(3):
            up = door._link.connections
            door._link.renew()
            assert until(lambda: door._link.connections > up)  # noqa: B023
            publish(broker, (wire.topic("porch", "status"), other))
        assert until(lambda: door.summary()["namesakes"])
        assert caplog.text.count("another client has this name") == 1
        door._link.seen_at = ticks_add(ticks_ms(), -presence.GONE_MS - 1)
        assert until(lambda: not door.summary()["namesakes"])
        assert caplog.text.count("another client has this name") == 1 and not door._link.is_contested()


def test_two_gates_do_not_share_a_folder(tmp_path):
    (tmp_path / "mine.py").write_text("def scores(x): return [1.0] * len(x)\n")
    local = config(tmp_path, remote="mine.py:scores")
    with Gate(local) as gate:
        with pytest.raises(
            UserError, match=rf"gate-state: process {os.getpid()} h2t2 gate uses it; give one of them another `state`"
        ):
            Gate(local)
        assert gate.backlog.failures == 0
    Gate(local).close()
