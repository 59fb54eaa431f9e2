"""What a worker tells Prometheus (/metrics) and a health check (/healthz: 200 while it can answer, else 503 and why)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from h2t2.link import wire

from ...common.errors import UserError

CONNECTIONS = 16  # at once; one more is closed
SECONDS = 5.0  # a connection may be silent for


class _Bounded(ThreadingHTTPServer):
    """Serves so many connections at once and no more, each in a thread."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = threading.BoundedSemaphore(CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


class Metrics:
    """Of one worker; unwell: asked by /healthz why it cannot answer, "" where it can."""

    def __init__(self, unwell: Callable[[], str]) -> None:
        self.registry = registry = CollectorRegistry()
        self.replies = Counter("h2t2_rdl_replies", "Requests by what became of them", ["status"], registry=registry)
        for status in (*wire.STATUS, "dropped"):
            self.replies.labels(status)
        self.waiting = Gauge("h2t2_rdl_waiting", "Requests in the queue", registry=registry)
        self.batch = Histogram("h2t2_rdl_batch_size", "Requests a batch", buckets=(1, 2, 4, 8, 16, 32, 64), registry=registry)
        self.seconds = Histogram("h2t2_rdl_batch_seconds", "From a batch's first request to its replies", registry=registry)
        self.reloads = Counter("h2t2_rdl_reloads", "Model reloads by outcome", ["outcome"], registry=registry)
        self.connections = Gauge("h2t2_rdl_connections", "Connections to the broker so far", registry=registry)
        self.unwell = unwell

    def serve(self, host: str, port: int) -> None:
        """Answer on that address from a thread. UserError where it cannot be had."""
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            timeout = SECONDS

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._send(200, CONTENT_TYPE_LATEST, generate_latest(metrics.registry))
                elif self.path == "/healthz":
                    why = metrics.unwell()
                    self._send(503 if why else 200, "text/plain", (why or "ok").encode() + b"\n")
                else:
                    self._send(404, "text/plain", b"/metrics or /healthz\n")

            def _send(self, status: int, kind: str, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        try:
            self._server = _Bounded((host, port), Handler)
        except OSError as error:
            raise UserError(f"--metrics {host}:{port}: {error.strerror}") from None
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
