"""Visitors cannot shut a door of ours: idle and dripping connections, long headers, guesses behind a forged address."""

import contextlib
import http.client
import json
import socket
import threading

import pytest
from prometheus_client import CollectorRegistry
from support import until

pytest.importorskip("fastapi", reason="the extra dashboard is not installed")

from h2t2_tools.fleet import connections
from h2t2_tools.fleet.gate import Gate, GateConfig
from h2t2_tools.fleet.gate.http_door import HttpDoor
from h2t2_tools.fleet.gate.remote import Answer
from h2t2_tools.fleet.metrics_server import MetricsServer
from h2t2_tools.fleet.visitors import FREE

SAMPLE = json.dumps({"score": 0.5, "text": "x"})
HEAD = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 40\r\n"


class Remote:
    """Answers 1 once the test lets it."""

    def __init__(self):
        self.free = threading.Event()
        self.free.set()

    def test(self, deliver):
        pass

    def ask(self, question, deliver):
        threading.Thread(target=lambda: self.free.wait(60) and deliver(Answer(1)), daemon=True).start()

    def close(self):
        self.free.set()


@contextlib.contextmanager
def served(folder, token="", remote=None):
    """The port of a gate's door."""
    config = GateConfig(topic="x", remote="worker:1", folder=folder, policy="h2t2", epsilon=1.0, beta=0.01, deadline=60)
    with Gate(config, remote or Remote()) as gate:
        door = HttpDoor(gate, config, "127.0.0.1", 0, token)
        try:
            yield door.port
        finally:
            door.close()


def asked(port, **headers):
    """The status of a decision."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/decide", SAMPLE, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@contextlib.contextmanager
def opened(port, count, first=b""):
    """Connections of a visitor who sends this and then nothing."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
        for one in sockets:
            one.sendall(first)
            one.settimeout(60)
        yield sockets


def is_ended(one):
    """Whether the other end closes a connection without an answer."""
    try:
        return one.recv(1000) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("first", [b"", HEAD, HEAD + b"\r\n{"], ids=["idle", "half a header", "half a body"])
def test_many_connections_keep_nobody_out(tmp_path, monkeypatch, first):
    monkeypatch.setattr(connections, "MOST", 8)
    monkeypatch.setattr(connections, "REQUEST_S", 3600)  # only a newcomer ends a connection
    with served(tmp_path) as port, opened(port, 40, first) as sockets:
        assert asked(port) == 200
        assert is_ended(sockets[0])


@pytest.mark.parametrize("first", [b"", HEAD, HEAD + b"\r\n{"], ids=["idle", "half a header", "half a body"])
def test_a_request_that_does_not_come_ends_its_connection(tmp_path, monkeypatch, first):
    monkeypatch.setattr(connections, "REQUEST_S", 0.2)
    with served(tmp_path) as port, opened(port, 1, first) as sockets:
        assert is_ended(sockets[0])


def test_a_header_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_S", 3600)  # only its length ends the connection
    with served(tmp_path) as port, opened(port, 1, b"GET / HTTP/1.1\r\n") as (one,):
        with contextlib.suppress(OSError):
            for _ in range(connections.LONGEST_HEADER // 1000 + 2000):
                one.sendall(b"x: " + b"y" * 1000 + b"\r\n")
        assert is_ended(one)


def test_an_answer_may_take_longer_than_a_request(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_S", 0.2)
    remote = Remote()
    remote.free.clear()
    with served(tmp_path, remote=remote) as port:
        statuses = []
        thread = threading.Thread(target=lambda: statuses.append(asked(port)))
        thread.start()
        assert not until(lambda: statuses, 1)
        remote.free.set()
        thread.join(60)
        assert statuses == [200]


def test_guesses_of_the_token_are_counted_by_the_real_address(tmp_path):
    with served(tmp_path, token="0123456789abcdef") as port:
        guesses = [asked(port, Authorization=f"Bearer {n}", **{"X-Forwarded-For": f"10.0.0.{n}"}) for n in range(FREE + 3)]
        assert guesses == [401] * FREE + [429] * 3
        assert asked(port, Authorization="Bearer 0123456789abcdef") == 429


def test_a_token_that_is_right_is_no_guess(tmp_path):
    with served(tmp_path, token="0123456789abcdef") as port:
        assert [asked(port, Authorization="Bearer 0123456789abcdef") for _ in range(10)] == [200] * 10
        assert [asked(port) for _ in range(10)] == [401] * 10  # nobody guesses without a token
        assert asked(port, Authorization="Bearer 0123456789abcdef") == 200


@contextlib.contextmanager
def metrics():
    """The port of a server of metrics."""
    with contextlib.closing(MetricsServer(CollectorRegistry(), lambda: "", "127.0.0.1", 0)) as server:
        yield server.port


@pytest.mark.parametrize("first", [b"", b"GET /healthz HTTP/1.1\r\n"])
def test_metrics_answer_beside_connections_that_drip(monkeypatch, first):
    monkeypatch.setattr(connections, "MOST", 8)
    with metrics() as port, opened(port, 40, first) as sockets:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"ok\n")
        assert is_ended(sockets[0])


def test_metrics_end_a_connection_that_drips(monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_S", 0.3)
    with metrics() as port, opened(port, 1, b"GET /healthz HTTP/1.1\r\n") as (one,):

        def is_refused():
            try:
                one.sendall(b"x")  # never silent for so long
            except OSError:
                return True
            return False

        assert until(is_refused, 60)
