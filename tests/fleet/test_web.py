"""Calls to a model's server: over connections that are kept, within limits, without redirects."""

import contextlib
import gzip
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from h2t2_tools.fleet.failures import Later
from h2t2_tools.fleet.rdl.models import web
from h2t2_tools.fleet.rdl.models.web import Web


class Server(ThreadingHTTPServer):
    """HTTP/1.1: it keeps connections. opened: how many there were. answer: called with the handler."""

    daemon_threads = True

    def __init__(self, answer):
        self.opened, self.asked = 0, []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(handler):
                self.opened += 1
                super().setup()

            def do_POST(handler):
                handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
                self.asked.append(handler.path)
                answer(handler)

            do_GET = do_POST

            def log_message(handler, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/x"
        threading.Thread(target=self.serve_forever, daemon=True).start()


def reply(handler, content=b"{}", status=200, **headers):
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    with contextlib.suppress(OSError):
        handler.wfile.write(content)


@contextlib.contextmanager
def serving(answer=reply):
    server = Server(answer)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def test_twenty_requests_take_one_connection():
    with serving() as server:
        one = Web()
        assert [one.json(server.url, {"n": n}) for n in range(20)] == [{}] * 20
        assert server.opened == 1 and len(server.asked) == 20


def test_threads_share_connections():
    together = threading.Barrier(4)

    def answer_four(handler):
        together.wait(30)  # four requests are under way, so there are four connections
        reply(handler)

    with serving(answer_four) as server, ThreadPoolExecutor(4) as threads:
        one = Web()
        assert list(threads.map(lambda n: one.json(server.url, n), range(40))) == [{}] * 40
        assert server.opened == 4


FIRST_CALLS = """
import asyncio, sys, time
from concurrent.futures import ThreadPoolExecutor
from h2t2_tools.fleet.rdl.models.web import Web

new_loop, loops = asyncio.new_event_loop, []

def slow_start():
    time.sleep(0.1)
    loops.append(new_loop())
    return loops[-1]

asyncio.new_event_loop = slow_start
client = Web()
with ThreadPoolExecutor(4) as threads:
    print(len(list(threads.map(lambda n: client.json(sys.argv[1], n), range(8)))), len(loops))
"""


def test_first_calls_of_several_threads_start_one_event_loop():
    """A connection belongs to the loop that opened it: calls fail that get one from another loop."""
    with serving() as server:
        child = subprocess.run([sys.executable, "-c", FIRST_CALLS, server.url], capture_output=True, text=True, timeout=60)
    assert (child.stdout, child.stderr) == ("8 1\n", "")


def test_a_server_that_closes_after_each_answer_is_asked_anew():
    def closing(handler):
        reply(handler, Connection="close")

    with serving(closing) as server:
        one = Web()
        assert [one.json(server.url, n) for n in range(5)] == [{}] * 5 and server.opened == 5


def test_a_kept_connection_that_the_server_has_closed_is_no_failure():
    """It closes without a word, as servers do with a connection that was idle for long."""

    def silent_close(handler):
        reply(handler)
        handler.close_connection = True

    with serving(silent_close) as server:
        one = Web()
        assert [one.json(server.url, n) for n in range(20)] == [{}] * 20


def test_a_redirect_is_an_error_and_not_followed():
    with serving(lambda handler: reply(handler, status=302, Location="/elsewhere")) as server:
        with pytest.raises(ValueError, match="status 302"):
            Web("token").json(server.url, 1)
        assert server.asked == ["/x"]


def test_a_packed_answer_is_refused_before_it_bursts():
    packed = gzip.compress(bytes(1 << 24))
    answer = lambda handler: reply(handler, packed, Content_Encoding="gzip")  # noqa: E731
    with serving(answer) as server, pytest.raises(ValueError, match="compressed"):
        Web().json(server.url, 1)


def test_an_answer_that_is_too_long_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(web, "LARGEST", 1000)
    with serving(lambda handler: reply(handler, bytes(100_000))) as server, pytest.raises(ValueError, match="more than 1,000"):
        Web().json(server.url, 1)


def test_a_server_that_drips_runs_out_of_time():
    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(1000):
                handler.wfile.write(b" ")
                time.sleep(0.05)

    with serving(drip) as server:
        one = Web(timeout_s=0.5)
        with pytest.raises(Later, match="no whole answer in 0.5 s"):
            one.json(server.url, 1)
        with pytest.raises(Later, match="it failed; asked again"):
            one.json(server.url, 1)


@pytest.mark.parametrize("after, wait", [("7", 7), ("²", 0), ("99999999999", 60), ("Wed, 21 Oct 2026 07:28:00 GMT", 0)])
def test_a_server_says_when_it_may_be_asked_again(after, wait):
    def busy(handler):
        handler.send_response(503)
        handler.wfile.write(b"")
        handler._headers_buffer.append(f"Retry-After: {after}\r\nContent-Length: 0\r\n".encode("latin-1"))
        handler.end_headers()

    with serving(busy) as server:
        with pytest.raises(Later, match="status 503") as later:
            Web().json(server.url, 1)
        assert wait <= later.value.retry_s <= max(wait, 5)


def test_where_nobody_listens_it_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(Later, match="refused"):
            Web(timeout_s=2).json(f"http://127.0.0.1:{taken.getsockname()[1]}/x", 1)
    with pytest.raises(ValueError, match="Invalid"):
        Web().json("http://[::1/x", 1)
