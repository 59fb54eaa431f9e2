"""Visitors cannot shut a door of ours: idle and dripping connections, long headers, guesses behind a forged address."""

import asyncio
import contextlib
import http.client
import json
import queue
import socket
import threading

import pytest
from gate_decisions import Held
from prometheus_client import CollectorRegistry
from support import until

pytest.importorskip("fastapi", reason="the extra dashboard is not installed")

import uvicorn

from h2t2_tools.fleet import http_server
from h2t2_tools.fleet.gate import Gate, GateConfig
from h2t2_tools.fleet.gate.http_door import HttpDoor
from h2t2_tools.fleet.metrics_server import MetricsServer
from h2t2_tools.fleet.visitors import FREE

SAMPLE = json.dumps({"score": 0.5, "text": "x"})
HEAD = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 40\r\n"


@contextlib.contextmanager
def served(folder, token="", remote=None):
    """The port of a gate's door."""
    config = GateConfig(topic="x", remote="worker:1", folder=folder, policy="h2t2", epsilon=1.0, beta=0.01, deadline=60)
    with Gate(config, remote or Held(released=True)) as gate:
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
    return answer_of(one) == b""


def answer_of(one):
    """What comes until the other end closes a connection."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while more := one.recv(1 << 20):
            answer += more
    return answer


@pytest.mark.parametrize("first", [b"", HEAD, HEAD + b"\r\n{"], ids=["idle", "half a header", "half a body"])
def test_many_connections_keep_nobody_out(tmp_path, monkeypatch, first):
    monkeypatch.setattr(http_server, "MOST", 8)
    monkeypatch.setattr(http_server, "REQUEST_S", 3600)  # only a newcomer ends a connection
    with served(tmp_path) as port, opened(port, 40, first) as sockets:
        assert asked(port) == 200
        assert is_ended(sockets[0])


@pytest.mark.parametrize("first", [b"", HEAD, HEAD + b"\r\n{"], ids=["idle", "half a header", "half a body"])
def test_a_request_that_does_not_come_ends_its_connection(tmp_path, monkeypatch, first):
    monkeypatch.setattr(http_server, "REQUEST_S", 0.2)
    with served(tmp_path) as port, opened(port, 1, first) as sockets:
        assert is_ended(sockets[0])


def test_a_header_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", 3600)  # only its length ends the connection
    with served(tmp_path) as port, opened(port, 1, b"GET / HTTP/1.1\r\n") as (one,):
        with contextlib.suppress(OSError):
            for _ in range(http_server.LONGEST_HEADER // 1000 + 2000):
                one.sendall(b"x: " + b"y" * 1000 + b"\r\n")
        assert answer_of(one).split(b"\r\n")[0] in (b"", b"HTTP/1.1 400 Bad Request")


def test_an_answer_may_take_longer_than_a_request(tmp_path, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", 0.2)
    remote = Held()
    with served(tmp_path, remote=remote) as port:
        statuses = []
        thread = threading.Thread(target=lambda: statuses.append(asked(port)))
        thread.start()
        assert not until(lambda: statuses, 1)
        remote.released.set()
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
    monkeypatch.setattr(http_server, "MOST", 8)
    with metrics() as port, opened(port, 40, first) as sockets:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"ok\n")
        assert is_ended(sockets[0])


def test_metrics_end_a_connection_that_drips(monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", 0.3)
    with metrics() as port, opened(port, 1, b"GET /healthz HTTP/1.1\r\n") as (one,):

        def is_refused():
            try:
                one.sendall(b"x")  # never silent for so long
            except OSError:
                return True
            return False

        assert until(is_refused, 60)


UPGRADE = (
    b"GET /live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
MASKED_HI = b"\x81\x82\x00\x00\x00\x00hi"


async def application(scope, receive, send, free):
    """A WebSocket that repeats what it hears, an answer larger than a system stores, and one that waits for `free`."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    while scope["path"] == "/waits" and not free.is_set():
        await asyncio.sleep(0.01)
    body = b"x" * (1 << 24 if scope["path"] == "/large" else 2)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def pages(free=None):
    """The port and the connections of a server of pages with WebSockets, as NiceGUI runs the dashboard's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        async def served(scope, receive, send):
            await application(scope, receive, send, free)

        config = uvicorn.Config(served, interface="asgi3", log_config=None, lifespan="off", **http_server.OPTIONS)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1], server.server_state.connections
        finally:
            server.force_exit = server.should_exit = True
            thread.join(60)


def status(port, path="/"):
    """The status of a page; None where the server ends the connection without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection), contextlib.suppress(ConnectionError):
        connection.request("GET", path)
        return connection.getresponse().status


def read_exactly(one, size):
    """So many bytes; b"" where the connection ends before."""
    data = b""
    while len(data) < size and (more := one.recv(size - len(data))):
        data += more
    return data if len(data) == size else b""


def upgraded(one):
    """Make a connection a WebSocket."""
    one.sendall(UPGRADE)
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += read_exactly(one, 1)
    assert answer.startswith(b"HTTP/1.1 101 ")


def echo(one):
    """What a WebSocket repeats."""
    one.sendall(MASKED_HI)
    return read_exactly(one, 4)[2:]


def test_an_open_page_counts_and_stays(monkeypatch):
    monkeypatch.setattr(http_server, "MOST", 8)
    monkeypatch.setattr(http_server, "REQUEST_S", 3600)  # only a newcomer ends a connection
    with pages() as (port, _), opened(port, 1) as (page,):
        upgraded(page)
        with opened(port, 40) as idle:
            assert status(port) == 200
            assert all(map(is_ended, idle[:33])) and echo(page) == b"hi"


def test_where_every_connection_is_an_open_page_the_newcomer_goes(monkeypatch):
    monkeypatch.setattr(http_server, "MOST", 4)
    with pages() as (port, _), opened(port, 4) as sockets:
        for page in sockets:
            upgraded(page)
        assert [status(port) for _ in range(8)] == [None] * 8
        assert [echo(page) for page in sockets] == [b"hi"] * 4


@contextlib.contextmanager
def unreading(port, count, request):
    """Connections of a visitor who asks and reads no answer. Each has asked before the next comes."""
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the rest of the answer waits in the server
            one.connect(("127.0.0.1", port))
            one.sendall(request)
            one.settimeout(60)
            assert one.recv(1) == b"H"
            sockets.append(one)
        yield sockets


LARGE = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "request_", [LARGE, 100 * LARGE, LARGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), LARGE + b"?\r\n\r\n"],
    ids=["one answer", "pipelined", "closed", "then malformed"],
)  # fmt: skip
def test_answers_that_nobody_reads_keep_nobody_out(monkeypatch, request_):
    monkeypatch.setattr(http_server, "MOST", 8)
    monkeypatch.setattr(http_server, "REQUEST_S", 3600)
    with pages() as (port, _), unreading(port, 12, request_) as sockets:
        assert [status(port) for _ in range(3)] == [200] * 3
        assert all(map(is_cut_off, sockets[:4]))


def test_requests_that_are_sent_without_reading_keep_nobody_out(monkeypatch):
    """The answers are small, the first is not done yet, and the next requests have come already."""
    monkeypatch.setattr(http_server, "MOST", 8)
    monkeypatch.setattr(http_server, "REQUEST_S", 3600)
    free = threading.Event()
    with pages(free) as (port, present):
        try:
            with opened(port, 8, 3 * b"GET /waits HTTP/1.1\r\nHost: localhost\r\n\r\n") as sockets:
                assert until(lambda: sum(not connection.is_incomplete for connection in [*present]) == 8, 60)
                assert [status(port) for _ in range(3)] == [200] * 3
                assert all(map(is_ended, sockets[:1]))
        finally:
            free.set()


def is_cut_off(one):
    """Whether the other end has ended a connection within an answer, of which this end has read nothing yet."""
    return len(answer_of(one)) < 1 << 24


@pytest.mark.parametrize(
    "request_", [LARGE, 100 * LARGE, LARGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), LARGE + b"?\r\n\r\n"],
    ids=["one answer", "pipelined", "closed", "then malformed"],
)  # fmt: skip
def test_an_answer_that_nobody_reads_ends_its_connection(monkeypatch, request_):
    monkeypatch.setattr(http_server, "REQUEST_S", 0.3)
    with pages() as (port, present), unreading(port, 1, request_):
        assert until(lambda: not present, 60)


def test_a_visitor_who_reads_slowly_keeps_his_connection(monkeypatch):
    """Each look of the server's timer finds less unread than the look before, until he reads no more."""
    monkeypatch.setattr(http_server, "REQUEST_S", 3600)
    with pages() as (port, present), opened(port, 1, LARGE) as (one,):
        assert one.recv(1) == b"H"
        (connection,) = present

        def on_the_loop(action):
            results = queue.SimpleQueue()
            connection.loop.call_soon_threadsafe(lambda: results.put(action()))
            return results.get(timeout=60)

        def looks():
            return on_the_loop(lambda: (connection._expire(), not connection.is_aborted)[1])

        assert until(lambda: on_the_loop(lambda: connection.cycle.response_complete), 60)
        for _ in range(3):
            while on_the_loop(lambda: connection.transport.get_write_buffer_size() >= connection._unread):
                one.recv(1 << 16)
            assert looks()
        assert until(lambda: not looks(), 60)
