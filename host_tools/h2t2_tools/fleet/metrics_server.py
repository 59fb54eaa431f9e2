"""Metrics over HTTP: /metrics for Prometheus, /healthz for a health check: 200, or 503 and the reason."""

import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest

from .http_server import Served

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
        names = parse_qs(scope["query_string"].decode(errors="replace")).get("name[]", [])
        status, kind, content = self._content(scope["path"].rstrip("/"), names)
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _content(self, path: str, names: list[str]) -> tuple[int, str, bytes]:
        """Status, media type and content of a page. names: the samples that the visitor wants; []: all."""
        if path == "/metrics":
            try:
                return 200, CONTENT_TYPE_LATEST, generate_latest(_Selection(self._registry, names) if names else self._registry)
            except Exception as error:
                LOG.exception("the metrics")
                return 500, TEXT, f"the metrics cannot be collected: {type(error).__name__}\n".encode()
        if path == "/healthz":
            reason = self._unwell()
            return 503 if reason else 200, TEXT, "\n".join([*filter(None, (reason or "ok", self._note())), ""]).encode()
        return 404, TEXT, b"/metrics or /healthz\n"


class _Selection(CollectorRegistry):
    """The samples of these names, or of metrics of these names.

    prometheus_client's restricted_registry() wants collectors that know their names before.
    """

    def __init__(self, registry: CollectorRegistry, names: list[str]) -> None:
        super().__init__()
        self._registry, self._names = registry, {*names}

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if {sample.name, metric.name} & self._names]
            if metric.samples:
                yield metric
