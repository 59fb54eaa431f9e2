"""A worker's metrics for Prometheus."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from h2t2.link.statuses import STATUS


class Metrics:
    """The metrics of one worker, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.replies = Counter("h2t2_rdl_replies", "Requests by outcome", ["status"], registry=registry)
        for status in (*STATUS, "dropped"):
            self.replies.labels(status)
        self.waiting = Gauge("h2t2_rdl_waiting", "Requests in the queue", registry=registry)
        self.batch = Histogram("h2t2_rdl_batch_size", "Requests a batch", buckets=(1, 2, 4, 8, 16, 32, 64), registry=registry)
        self.seconds = Histogram("h2t2_rdl_batch_seconds", "From a batch's first request to its replies", registry=registry)
        self.reloads = Counter("h2t2_rdl_reloads", "Model reloads by outcome", ["outcome"], registry=registry)
        self.second = Gauge(
            "h2t2_rdl_second", "Samples of the second model of a chain, since it was loaded", ["what"], registry=registry
        )
        self.connections = Gauge("h2t2_rdl_connections", "Connections to the broker so far", registry=registry)
        self._counts: dict[str, int] = {}

    def count(self, counts: Mapping[str, int]) -> None:
        """Count replies. counts: by status, since the start."""
        for status, n in counts.items():
            self.replies.labels(status).inc(n - self._counts.get(status, 0))
        self._counts = {**counts}
