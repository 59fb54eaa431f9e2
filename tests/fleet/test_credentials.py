"""What a credential of `h2t2 broker-config` can do to others: every topic, written and read by every kind. SECURITY.md says it.

The broker is a real Mosquitto, with passwords and with certificates. Some of what is allowed harms others: how far it goes with
a real node and a real worker's bytes is tested below.
"""

import json
import time

import pytest
from secured import Client
from states import Clock, say
from support import ROOT, until

from h2t2.cpython import worker_wire
from h2t2.cpython.paho import PahoLink
from h2t2.link import presence, wire
from h2t2_tools.fleet import home_assistant
from h2t2_tools.fleet.monitoring import fleet_report
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet
from h2t2_tools.fleet.rdl import telemetry

TOPICS = {
    "request": wire.topic("dev-b", "request/1"),
    "reply": wire.topic("dev-b", "reply"),
    "command": wire.topic("dev-b", "command"),
    "status": wire.topic("dev-b", "status"),
    "state": wire.topic("dev-b", "state"),
    "answer": wire.topic("dev-b", "answer"),
    "presence": presence.worker_topic(1, "other"),
    "worker's state": telemetry.topic(1, "other"),
    "discovery": home_assistant.topic("dev-b"),
    "broker's own": "$SYS/broker/uptime",
    "elsewhere": "garage/door/set",
}
# of another device, dev-b, or of all: what SECURITY.md's table says
WRITES = {
    "dev-a": set(),
    "rdl": {"reply", "presence", "worker's state"},
    "operator": {"command", "status", "state", "discovery"},
}
READS = {
    "dev-a": {"presence"},
    "rdl": {"request", "presence"},
    "operator": {"command", "status", "state", "answer", "presence", "worker's state", "discovery"},
}
OWN = {"request", "status", "state", "answer"}  # what dev-b writes of itself


def port(fleet, name):
    return fleet.devices if name.startswith("dev") else fleet.workers


def heard_of(clients):
    """(topic's name, payload) of everything that any of them heard."""
    names = {topic: name for name, topic in TOPICS.items()}
    return {(names.get(topic), payload) for client in clients for topic, payload in client.messages}


@pytest.mark.slow
def test_what_a_credential_writes_and_reads_of_others(fleet):
    """Each kind publishes on every topic, and listens to every topic; who may hear it is there to hear it."""
    listeners = {
        name: Client(port(fleet, name), fleet.login(name), list(TOPICS.values()))
        for name in ("dev-b", "rdl", "operator", "dev-a")
    }
    assert until(lambda: all(len(one.subscribed) == len(TOPICS) for one in listeners.values()), 30)
    for writer in listeners:
        for name, topic in TOPICS.items():
            listeners[writer].publish(topic, f"{writer} {name}".encode())
    end = Client(fleet.workers, fleet.login("operator"), [TOPICS["command"]])
    assert until(lambda: end.subscribed)
    end.publish(TOPICS["command"], b"the end")
    assert until(lambda: (TOPICS["command"], b"the end") in listeners["dev-b"].messages and end.messages)
    time.sleep(0.5)  # what is refused cannot be waited for
    everything = heard_of(listeners.values())
    for writer, allowed in {**WRITES, "dev-b": OWN}.items():
        assert {name for name, payload in everything if payload == f"{writer} {name}".encode()} == allowed, writer
    for reader, allowed in READS.items():
        read = {name for name, payload in heard_of([listeners[reader]]) if payload != b"the end"}
        assert read - {"broker's own"} == allowed, reader
        assert "broker's own" not in read
    for one in (*listeners.values(), end):
        one.close()


def test_a_device_retains_at_most_a_request_for_each_model_of_the_list(fleet):
    """It could retain one for each number: 300 messages took 58 MB of the broker."""
    bad = Client(fleet.devices, fleet.login("dev-a"))
    assert until(lambda: bad.up)
    topics = [wire.topic("dev-a", presence.request_leaf(number)) for number in range(40)]
    for topic in topics:
        bad.client.publish(topic, bytes(wire.MAX_DATA), 1, True).wait_for_publish(5)
    later = Client(
        fleet.workers, fleet.login("rdl"), [wire.topic("+", presence.request_leaf("+")), presence.worker_topic("+", "+")]
    )
    assert until(lambda: later.subscribed)
    later.publish(presence.worker_topic(1, "end"), b"1")  # what was retained came before it
    assert until(lambda: (presence.worker_topic(1, "end"), b"1") in later.messages)
    kept = {topic for topic, payload in later.messages if len(payload) == wire.MAX_DATA}
    assert kept == {topics[1], topics[2], topics[3], topics[6]}
    for topic in kept:
        bad.client.publish(topic, b"", 1, True).wait_for_publish(5)
    bad.close()
    later.close()


def test_a_worker_can_answer_wrongly_and_hide_other_workers_and_no_more(fleet):
    """It hears a request, so it can forge its answer; it can take back another worker's presence."""
    link = PahoLink("localhost", fleet.devices, "dev-b", 1, 5, **fleet.login("dev-b"))
    link.open()
    bad = Client(fleet.workers, fleet.login("rdl"), [wire.topic("+", "request/1"), presence.worker_topic("+", "+")])
    assert until(lambda: bad.subscribed)
    bad.client.publish(presence.worker_topic(1, "honest"), b"1", 1, True).wait_for_publish(5)
    assert until(lambda: link.receive(10) is None and link.workers() == 1)
    request = wire.encode_request(1, 5, 9, (4,), b"abcd")
    assert link.send(request) and until(lambda: any(payload == request for _, payload in bad.messages))
    bad.publish(wire.topic("dev-b", "reply"), worker_wire.encode_reply(wire.OK, 5, 9, 1, 32768))
    assert wire.decode_reply(link.receive(5000))[:4] == (wire.OK, 5, 9, 1)
    bad.client.publish(presence.worker_topic(1, "honest"), b"", 1, True).wait_for_publish(5)
    assert until(lambda: link.receive(10) is None and link.workers() == 0)
    bad.close()
    link.close()


def test_a_command_that_an_operator_retains_is_carried_out_by_nobody_who_comes_later(fleet):
    bad = Client(fleet.workers, fleet.login("operator"))
    assert until(lambda: bad.up)
    bad.client.publish(TOPICS["command"], b'{"pause": 600}', 1, True).wait_for_publish(5)
    link = PahoLink("localhost", fleet.devices, "dev-b", 1, 5, **fleet.login("dev-b"))
    link.open()
    bad.publish(TOPICS["command"], b"{}")  # live: it comes behind the retained one
    commands = []

    def command_arrived():
        link.receive(10)
        commands.append(link.command())
        return b"{}" in commands

    assert until(command_arrived, 30) and set(commands) - {None} == {b"{}"}
    bad.client.publish(TOPICS["command"], b"", 1, True).wait_for_publish(5)
    bad.close()
    link.close()


def test_a_device_can_say_anything_about_itself_and_nothing_about_others():
    """Its state, forged as it likes, changes no other device's row."""
    fleet = Fleet(Clock())
    say(fleet, "dev-b")
    before = fleet_report.of_fleet(fleet, fleet._clock())["devices"]
    for entries in ({"samples": 2**53 - 1}, {"link": "nobody"}, {"namesakes": True}, {"policy": "[/x]"}, {"time": 1}):
        say(fleet, "dev-a", **entries)
    fleet.take(wire.topic("dev-a", "state"), json.dumps({"device": "dev-b", "samples": 0}).encode())
    after = fleet_report.of_fleet(fleet, fleet._clock())["devices"]
    assert [one for one in after if one["device"] == "dev-b"] == before


def test_the_page_says_what_is_tested():
    """SECURITY.md's table names everything that a credential may write or read of others."""
    page = (ROOT / "SECURITY.md").read_text()
    table = {row.split("|")[1].strip(): row for row in page.splitlines() if row.startswith("| ")}
    for kind, name in (("a device's", "dev-a"), ("a worker's", "rdl"), ("an operator's", "operator")):
        _, _, writes, reads, *_ = table[kind].split("|")
        for cell, allowed in ((writes, WRITES[name]), (reads, READS[name])):
            named = {topic for topic in TOPICS if f"`{topic}`" in cell}
            assert named == allowed, (kind, cell)
