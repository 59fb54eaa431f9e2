"""Metrics over HTTP: /metrics for Prometheus, /healthz for a health check: 200, or 503 and the reason."""

import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from ..common.errors import UserError

LOG = logging.getLogger(__name__)
CONNECTIONS = 16  # at a time; one more is closed
SECONDS = 5.0  # for which a connection may be silent


class _Bounded(ThreadingHTTPServer):
    """Serves at most CONNECTIONS at a time, each in a thread."""

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


class MetricsServer:
    """Serves a registry from a thread until stop().

    Args:
        unwell: says what is wrong, for /healthz; "" for nothing.
        note: says what else there is to know, for /healthz; "" for nothing.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        unwell: Callable[[], str],
        host: str,
        port: int,
        note: Callable[[], str] = lambda: "",
    ) -> None:
        """UserError where it cannot listen on that address."""

        class Handler(BaseHTTPRequestHandler):
            timeout = SECONDS

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._metrics()
                elif self.path == "/healthz":
                    why = unwell()
                    lines = "\n".join(filter(None, (why or "ok", note())))
                    self._send(503 if why else 200, "text/plain; charset=utf-8", lines.encode() + b"\n")
                else:
                    self._send(404, "text/plain", b"/metrics or /healthz\n")

            def _metrics(self) -> None:
                try:
                    text = generate_latest(registry)
                except Exception as error:
                    LOG.exception("the metrics")
                    self._send(500, "text/plain", f"the metrics cannot be collected: {type(error).__name__}\n".encode())
                else:
                    self._send(200, CONTENT_TYPE_LATEST, text)

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
            raise UserError(f"metrics on {host}:{port}: {error.strerror}") from None
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
