"""A broker set up by `h2t2 broker-config`: who reaches what."""

import json
import os
import subprocess
import sys

import pytest
from command_line import started
from secured import NAMES, Client, Fleet, links, options
from support import need_mosquitto, until

from h2t2.cpython.paho import PahoLink
from h2t2.link import wire
from h2t2_tools.fleet import certs
from h2t2_tools.fleet.endpoint import PASSWORD

REQUESTS = wire.topic("+", "request/1")
REQUEST = wire.encode_request(1, 5, 1, (4,), b"abcd")


@links
def test_an_offload_through_the_secured_broker(fleet, kind):
    """Device, worker and operator, each with its own login: request, reply and command arrive."""
    host = "localhost"
    link = kind(host, fleet.devices, "dev-a", 1, 5, **fleet.login("dev-a"))
    link.open()
    worker = Client(fleet.workers, fleet.login("rdl"), [REQUESTS])
    operator = Client(fleet.workers, fleet.login("operator"), [wire.topic("+", "state")])
    assert until(lambda: worker.subscribed and operator.subscribed)
    assert link.send(REQUEST)
    assert until(lambda: link.receive(10) is None and worker.messages) and worker.messages == [
        (wire.topic("dev-a", "request/1"), REQUEST)
    ]
    worker.publish(wire.topic("dev-a", "reply"), b"reply")
    assert link.receive(5000) == b"reply"
    operator.publish(wire.topic("dev-a", "command"), b"{}")
    assert until(lambda: link.receive(10) is None and link.command() == b"{}")
    link.report("{}")
    assert until(lambda: link.receive(10) is None and operator.messages)
    for one in (worker, operator, link):
        one.close()


def test_a_device_reaches_its_own_topics_only(fleet):
    """Device A reads and writes nothing of device B's; nor may it reply, command, or hear requests."""
    everything = ["h2t2/2/dev-b/#", "h2t2/2/+/request/1", "h2t2/2/+/reply", "#", "$SYS/#", "$share/rdl/h2t2/2/+/request/1"]
    a = Client(fleet.devices, fleet.login("dev-a"), everything)
    b = Client(fleet.devices, fleet.login("dev-b"), [wire.topic("dev-b", leaf) for leaf in ("reply", "command")])
    worker = Client(fleet.workers, fleet.login("rdl"), [wire.topic("+", leaf) for leaf in ("request/1", "status", "state")])
    assert until(lambda: a.subscribed and b.subscribed and worker.subscribed)
    for leaf in ("request/1", "reply", "command", "status", "state", "answer"):
        a.publish(wire.topic("dev-b", leaf), b"forged")
        a.publish(wire.topic("dev-a", leaf), b"own")
    b.publish(wire.topic("dev-b", "request/1"), b"private")
    worker.publish(wire.topic("dev-b", "reply"), b"label")
    assert until(lambda: b.messages and len(worker.messages) >= 2)
    end = wire.topic("dev-a", "request/1"), b"end"  # the broker delivers in order: what it refused will not come after this
    a.publish(*end)
    assert until(lambda: end in worker.messages)
    worker.publish(wire.topic("dev-b", "reply"), b"end")
    assert until(lambda: len(b.messages) >= 2)
    assert b.messages == [(wire.topic("dev-b", "reply"), payload) for payload in (b"label", b"end")]
    assert sorted(worker.messages) == sorted([(end[0], b"own"), (wire.topic("dev-b", "request/1"), b"private"), end])
    assert not [topic for topic, _ in a.messages if "dev-b" in topic or "request" in topic]
    assert not [payload for _, payload in a.messages if payload in (b"private", b"label")]
    for one in (a, b, worker):
        one.close()


def serves(fleet, link):
    """Whether a request of a device still reaches a worker through its broker."""
    worker = Client(fleet.workers, fleet.login("rdl"), [REQUESTS])
    assert until(lambda: worker.subscribed) and link.send(REQUEST)
    arrived = until(lambda: worker.messages)
    worker.close()
    return arrived and link.is_connected()


@pytest.mark.slow
def test_a_device_cannot_be_a_worker_or_take_anothers_place(fleet):
    """On the workers' port a device is refused; with another's client id on its own port it does not push that one out."""
    login = fleet.login("dev-a")
    try:  # with certificates it is genuine, and not one of those that this listener knows
        a = Client(fleet.workers, login)
        assert until(lambda: a.refused or (fleet.client_certs and not a.client.is_connected())) and not a.up
        a.close()
    except OSError as error:
        assert fleet.client_certs, error
    link = PahoLink("localhost", fleet.devices, "dev-b", 1, 5, **fleet.login("dev-b"))
    link.open()
    thief = Client(fleet.devices, login, client_id="dev-b")
    assert until(lambda: thief.up)
    assert serves(fleet, link) and link.connections == 1
    for one in (thief, link):
        one.close()


def test_a_client_id_belongs_to_its_user(fleet):
    """An operator that calls itself dev-b does not push dev-b off the broker."""
    link = PahoLink("localhost", fleet.devices, "dev-b", 1, 5, **fleet.login("dev-b"))
    link.open()
    thief = Client(fleet.workers, fleet.login("operator"), client_id="dev-b")
    assert until(lambda: thief.up)
    assert serves(fleet, link) and link.connections == 1
    for one in (thief, link):
        one.close()


def test_only_listed_names_connect_and_what_was_taken_back_does_not(tmp_path, localhost):
    """With certificates: one of the same authority that no list names, a revoked one, a worker's on the devices' listener."""
    need_mosquitto()
    fleet = Fleet(tmp_path, True)
    certs.make(tmp_path / "certs", ["localhost"], ["stranger"], 30)
    assert certs.revoke(tmp_path / "certs", ["dev-a"]) == 1
    fleet.write()
    fleet.start()
    try:
        for name, port, passes in (
            ("dev-b", fleet.devices, True), ("dev-a", fleet.devices, False), ("stranger", fleet.devices, False),
            ("rdl", fleet.devices, False), ("rdl", fleet.workers, True), ("stranger", fleet.workers, False),
            ("dev-b", fleet.workers, False),
        ):  # fmt: skip
            link = PahoLink("localhost", port, name, 1, 5, deadline_ms=3000, **fleet.login(name))
            if passes:
                link.open()
            else:
                with pytest.raises(OSError):
                    link.open()
            assert link.is_connected() == passes, name
            link.close()
    finally:
        fleet.stop()


@links
def test_without_the_right_login_nobody_connects(fleet, kind):
    """No login, a wrong password, a password of somebody else, an unknown user; no certificate, one of another authority."""
    logins = [{"tls": fleet.tls()}]
    if fleet.client_certs:
        logins += [{"tls": fleet.tls("dev-a", "foreign")}, {"tls": fleet.tls(), "user": "dev-a", "password": "x"}]
    else:
        logins += [
            {"tls": fleet.tls(), "user": "dev-a", "password": "wrong"},
            {"tls": fleet.tls(), "user": "dev-a", "password": fleet.password("dev-b")},
            {"tls": fleet.tls(), "user": "stranger", "password": fleet.password("dev-a")},
            {"tls": fleet.tls(), "user": "rdl", "password": fleet.password("rdl")},  # a worker, on the devices' port
        ]
    for login in logins:
        link = kind("localhost", fleet.devices, "dev-a", 1, 5, deadline_ms=3000, **login)
        with pytest.raises(OSError) as error:
            link.open()
        assert fleet.client_certs or login.get("password", "?") not in str(error.value)
        assert not link.is_connected() and link.connections == 0
        link.close()


def run(fleet, *words, password=None, timeout=280):
    environment = {**os.environ, **({PASSWORD: password} if password else {})}
    return subprocess.run(
        [sys.executable, "-m", "h2t2_tools", *map(str, words)], capture_output=True, text=True, timeout=timeout, env=environment
    )


@pytest.mark.whole
def test_a_worker_without_certificate_or_password_cannot_connect(fleet):
    """`h2t2 rdl` itself: status 1 and a reason, no traceback, no password told."""
    url = f"mqtts://localhost:{fleet.workers}"
    attempts = [["--ca", fleet.folder / "certs/ca.crt"]]
    if fleet.client_certs:
        attempts.append(options(fleet, "rdl", "foreign"))
    else:
        attempts.append(["--ca", fleet.folder / "certs/ca.crt", "--user", "rdl"])
        attempts.append([*options(fleet, "dev-a")])
    for words in attempts:
        done = run(fleet, "rdl", "--broker", url, *words)
        assert done.returncode == 1 and "h2t2: broker localhost" in done.stderr and "Traceback" not in done.stderr
        assert not [name for name in NAMES if not fleet.client_certs and fleet.password(name) in done.stderr]


@pytest.mark.whole
def test_node_worker_and_operator_with_their_commands(fleet):
    """The whole thing as a user runs it; secrets by file and by environment, none in what is printed."""
    to_workers, url = f"mqtts://localhost:{fleet.workers}", f"mqtts://localhost:{fleet.devices}"
    with started("rdl", "--broker", to_workers, *options(fleet, "rdl"), ready="ready") as worker:
        words = ["node", "--broker", url, "--device", "dev-a"]
        more = ["--samples", "60", "--beta", "0", "--deadline", "20s"]  # a busy machine shakes hands for seconds
        login = options(fleet, "dev-a")
        if fleet.client_certs:
            done = run(fleet, *words, *more, *login)
        else:
            own = ["--ca", fleet.folder / "certs/ca.crt", "--user", "dev-a"]
            done = run(fleet, *words, *more, *own, password=fleet.password("dev-a"))
        summary = json.loads(done.stdout.splitlines()[-1])["summary"]
        assert summary["replies"] > 20 and summary["fallbacks"] == 0, done.stderr
        command = ["command", "dev-a", "--beta", "0.25", "--broker", to_workers, *options(fleet, "operator")]
        told = run(fleet, *command)
        assert told.returncode == 1 and "dev-a: it is offline" in told.stderr
        with started(*words, "--every", "20ms", *login, stdout=subprocess.PIPE) as node:
            assert "start" in node.stdout.readline()
            told = run(fleet, *command)
            assert told.returncode == 0 and "done by dev-a: beta 0.25" in told.stdout, told.stderr
        assert json.loads(node.output.splitlines()[-1])["summary"]["beta"] == 8192 and "command: set" in node.log
    told = done.stdout + done.stderr + worker.log
    assert fleet.client_certs or not [name for name in NAMES if fleet.password(name) in told]
