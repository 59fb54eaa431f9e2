"""One HTTP client: a deadline for the whole of a call, one rule for repetitions, a count of what may be charged."""

import contextlib
import json
import os
import select
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from http_server import serving
from support import until, worker_replies

from h2t2.link import wire
from h2t2_tools.fleet import certs
from h2t2_tools.fleet.calls import Calls, Limits
from h2t2_tools.fleet.failures import Later, Misconfigured, Refused
from h2t2_tools.fleet.gate.picture_client import Allowed, PictureClient
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.models.web import Web
from h2t2_tools.fleet.rdl.worker import Worker


@contextlib.contextmanager
def listening(answer, threads=False):
    """A server that reads a request and passes its connection to `answer`, again and again: (port, bodies).

    threads: several requests at a time.
    """
    bodies, ended = [], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                if threads:
                    threading.Thread(target=serve_one, args=(connection,), daemon=True).start()
                else:
                    serve_one(connection)

        def serve_one(connection):
            with connection, contextlib.suppress(OSError):
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                head, _, body = data.partition(b"\r\n\r\n")
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
                while lengths and len(body) < int(lengths[0].split(b":")[1]):
                    body += connection.recv(65536)
                bodies.append(body)
                answer(connection, ended)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], bodies
        ended.set()
        server.shutdown(socket.SHUT_RDWR)


def drip(connection, ended):
    """A header that never ends: each read is in time."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Pad: ")
    while not ended.wait(0.1):
        connection.sendall(b"a")


def test_a_server_that_drips_its_header_holds_nobody_longer_than_the_deadline():
    """The server drips until the test ends: a limit on each read would wait for ever."""
    with listening(drip) as (port, _), pytest.raises(Later, match="no whole answer in 0"):
        PictureClient([Allowed.parse(f"127.0.0.1:{port}")], 1 << 20, 0.3).fetch(f"http://127.0.0.1:{port}/x.jpg")
    with listening(drip) as (port, _), pytest.raises(Later, match="no whole answer in 0"):
        Web(timeout_s=0.3).call(f"http://127.0.0.1:{port}/x")


def test_a_name_whose_look_up_hangs_holds_nobody_longer_than_the_deadline(monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(60))
    calls = Calls()
    with pytest.raises(Later, match="no whole answer in 0"):
        calls.call(calls.request("GET", "http://nvr.lan/x.jpg"), Limits(seconds=0.2, size=10))
    with pytest.raises(Later, match="no whole answer"):
        PictureClient([Allowed.parse("10.0.0.0/8")], 1 << 20, 0.2).fetch("http://nvr.lan/x.jpg")
    ended.set()


def test_closing_a_client_ends_its_calls():
    with listening(drip) as (port, bodies):
        calls, errors = Calls(), []

        def call():
            try:
                calls.call(calls.request("GET", f"http://127.0.0.1:{port}/"), Limits(seconds=3600, size=10, repeat_s=3600))
            except Later as error:
                errors.append(str(error))

        thread = threading.Thread(target=call)
        thread.start()
        until(lambda: bodies)
        calls.close()
        thread.join(30)
        assert errors and "closed" in errors[0]
        with pytest.raises(Later, match="closed"):
            calls.call(calls.request("GET", f"http://127.0.0.1:{port}/"), Limits(seconds=3600, size=10))


def chat_model(folder, port, **entries):
    """A language model behind a port. entries: further ones of its description, m.toml."""
    about = {"url": f"http://127.0.0.1:{port}/v1", "model": "m", "prompt": "{classes}", "classes": ["no", "yes"], **entries}
    path = folder / "m.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in about.items()))
    return models.load(models.Source(str(path), media="image/jpeg"))


class Loading:
    """A server that loads its model only while somebody waits, as Ollama does. It has loaded it once `may_load` is set."""

    def __init__(self):
        self.may_load, self.loaded, self.abandoned, self.aborted = (threading.Event() for _ in range(4))
        self._waiting, self._lock = 0, threading.Lock()

    def __call__(self, connection, ended):
        if self._wait(connection, ended):
            answer = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]})
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n"
            self.loaded.set()
            connection.sendall((head + answer).encode())

    def _wait(self, connection, ended):
        """Wait for the model; False where the client hangs up before."""
        with self._lock:
            self._waiting += 1
        try:
            while not (self.loaded.is_set() or self.may_load.is_set() or ended.is_set()):
                if select.select([connection], [], [], 0.01)[0]:
                    self.abandoned.set()
                    return False
            return True
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting and not self.loaded.is_set() and not self.may_load.is_set():
                    self.aborted.set()


def request_of_a_picture(n):
    return wire.encode_request(3, 1, n, (3,), b"\xff\xd8\xff", dtype=wire.RAW, media="image/jpeg")


def test_a_server_that_loads_its_model_only_while_somebody_waits_answers_a_worker(tmp_path):
    """The worker's replies are in time, and one request waits on: without it the server would never have a model."""
    server = Loading()
    with listening(server, threads=True) as (port, _):
        model = chat_model(tmp_path, port, timeout_s=0.2)
        worker = Worker(model, 3, media="image/jpeg")
        assert [wire.decode_reply(reply)[0] for reply in worker_replies(worker, [request_of_a_picture(0)])] == [wire.LATER]
        model._web._until = 0.0  # its pause after a failure
        assert [wire.decode_reply(reply)[0] for reply in worker_replies(worker, [request_of_a_picture(1)])] == [wire.LATER]
        server.may_load.set()
        assert server.loaded.wait(30) and not server.aborted.is_set()
        model._web._until = 0.0
        model._web._timeout = model._timeout = 30.0
        assert [wire.decode_reply(reply)[0] for reply in worker_replies(worker, [request_of_a_picture(2)])] == [wire.OK]
        model.close()


def late(calls, port, late_s):
    with pytest.raises(Later, match="no whole answer"):
        calls.call(calls.request("GET", f"http://127.0.0.1:{port}/"), Limits(seconds=1, size=10, late_s=late_s))


def test_one_late_request_goes_on_until_its_client_ends():
    server = Loading()
    with listening(server, threads=True) as (port, _):
        calls = Calls()
        late(calls, port, 3600)
        assert not server.abandoned.is_set()
        late(calls, port, 3600)
        assert server.abandoned.wait(30) and not server.aborted.is_set()
        calls.close()
        assert server.aborted.wait(30)


def test_a_late_request_ends_after_its_time():
    server = Loading()
    with listening(server, threads=True) as (port, _):
        calls = Calls()
        late(calls, port, 0.5)
        assert server.aborted.wait(30)
        late(calls, port, 3600)
        assert calls._late
        calls.close()


def test_a_post_that_the_server_has_read_is_not_repeated(tmp_path):
    """It may have been charged. The limit of a day is what the server has received, not less."""
    with listening(lambda connection, _: None) as (port, bodies):
        model = chat_model(tmp_path, port, requests_a_day=3)
        for _ in range(6):
            model._web._until = 0.0  # its pause after a failure
            with pytest.raises(Later):
                model.scores([b"\xff\xd8\xff"])
        assert len(bodies) == json.loads((tmp_path / "m.spent.json").read_text())["requests"] == 3


@pytest.mark.parametrize(
    ("method", "status", "requests"), [("POST", 503, 3), ("POST", 500, 1), ("POST", 504, 1), ("GET", 500, 3), ("GET", 400, 1)]
)
def test_what_was_not_begun_is_repeated_and_each_request_counted(method, status, requests):
    answers, counted = iter([(status, b"later")] * 2), []
    with serving(lambda *_: next(answers, b"yes")) as url:
        calls = Calls()
        limits = Limits(seconds=60, size=100, repeat_s=60)
        with contextlib.suppress(Later, Refused):
            calls.call(calls.request(method, f"{url}/x"), limits, lambda: counted.append(1))
        assert len(url.requests) == len(counted) == requests


def test_an_address_that_is_none_is_the_set_ups_fault():
    calls = Calls()
    for url in ("http://[::1/x", "ftp://127.0.0.1/x"):
        with pytest.raises(Misconfigured):
            calls.call(calls.request("GET", url), Limits(seconds=5, size=10))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_calls_in_a_thread_of_its_own():
    with serving(lambda *_: b"yes") as url:
        Web().call(url)
        child = os.fork()
        if not child:
            try:
                os._exit(0 if Web().call(url)[0] == b"yes" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


def test_a_certificate_that_nobody_trusts_is_the_set_ups_fault(tmp_path):
    certs.make(tmp_path, ["127.0.0.1"], [], 30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        calls = Calls()
        with pytest.raises(Misconfigured, match="certificate"):
            calls.call(calls.request("GET", f"https://127.0.0.1:{server.server_port}/?key=hush"), Limits(seconds=30, size=10))
        server.shutdown()


def test_no_message_shows_the_query_of_an_address():
    with serving(lambda *_: (500, b"oops")) as url:
        calls = Calls()
        with pytest.raises(Later, match="status 500") as raised:
            calls.call(calls.request("POST", f"{url}/x?key=hush"), Limits(seconds=30, size=10))
        assert "hush" not in str(raised.value)
