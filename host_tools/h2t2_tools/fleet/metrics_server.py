"""Metrics over HTTP: /metrics for Prometheus, /healthz for a health check: 200, or 503 and the reason."""

import logging
from collections.abc import Callable
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from .connections import Served

LOG = logging.getLogger(__name__)
TEXT = "text/plain; charset=utf-8"


class MetricsServer(Served):
    """Serves a registry from a thread until close().

    Args:
        unwell: says what is wrong, for /healthz; "" for nothing.
        note: says what else there is to know, for /healthz; "" for nothing.

    Raises:
        UserError: it cannot listen on that address.
    """

    def __init__(
        self, registry: CollectorRegistry, unwell: Callable[[], str], host: str, port: int, note: Callable[[], str] = lambda: ""
    ) -> None:
        self._registry, self._unwell, self._note = registry, unwell, note
        super().__init__(self._answer, host, port, f"metrics on {host}:{port}")

    async def _answer(self, scope: Any, _receive: Any, send: Any) -> None:
        status, kind, content = self._content(scope["path"])
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _content(self, path: str) -> tuple[int, str, bytes]:
        """Status, media type and content of a page."""
        if path == "/metrics":
            try:
                return 200, CONTENT_TYPE_LATEST, generate_latest(self._registry)
            except Exception as error:
                LOG.exception("the metrics")
                return 500, TEXT, f"the metrics cannot be collected: {type(error).__name__}\n".encode()
        if path == "/healthz":
            reason = self._unwell()
            return 503 if reason else 200, TEXT, "\n".join([*filter(None, (reason or "ok", self._note())), ""]).encode()
        return 404, TEXT, b"/metrics or /healthz\n"
