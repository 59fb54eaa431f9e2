"""A worker behind a broker: subscription, bounded queue, micro-batches, hot reload, drain at the end."""

from __future__ import annotations

import os
import queue
import random
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from h2t2.link import wire
from h2t2.link.paho import IDLE_MS, Session, make_client

from ...common.errors import UserError
from ..endpoint import Endpoint, unreachable
from .models import Model, Source
from .worker import Worker

if TYPE_CHECKING:
    from .metrics import Metrics

PLAIN = wire.topic("+", "request")
UNACKNOWLEDGED = 8  # requests whose acknowledgement may wait for their replies; brokers stop sending at 20
DRAIN = 30.0  # seconds for what was taken before the end
SHARED = "$share/rdl/" + PLAIN
LARGEST = 1 << 20  # bytes of a packet: a larger one is not taken from the broker; a request above wire.MAX_REQUEST is refused


@dataclass(frozen=True)
class Options:
    """batch: requests a batch at most; wait_ms: how long the first of a batch waits for others; waiting: requests in the queue
    at most, one more is answered "busy"; metrics: (host, port) or None; watch: look once a second whether the model's file
    changed; parent: the process without which it ends, 0 for none."""

    batch: int = 16
    wait_ms: float = 0.0
    waiting: int = 256
    metrics: tuple[str, int] | None = None
    watch: bool = True
    parent: int = 0


class Server:
    """Takes requests of any device and answers them until stop().

    The session's thread reads requests, runs the model and replies: handing every request to another thread costs a third of
    the speed. While the model runs, requests wait in the network; a model that hangs gets no more of them.
    """

    def __init__(self, source: Source, model_id: int, endpoint: Endpoint, options: Options) -> None:
        """UserError or ValueError for a bad model, Failure where the broker cannot be had."""
        self.source, self.endpoint, self.options = source, endpoint, options
        self._version = source.version()
        self.worker = Worker(source.load(), model_id, self._say)
        self._inbox: deque[tuple[str, bytes]] = deque()
        self._acks: deque[tuple[mqtt.Client, int, int]] = deque()
        self._due = 0.0  # when the batch that is being gathered is to be answered
        self._empty = threading.Event()
        self._stop = threading.Event()
        self._reload = threading.Event()
        self._next: queue.SimpleQueue[Model] = queue.SimpleQueue()
        self.shared = True
        self._metrics = self._listen() if options.metrics else None
        self._connect()

    def _listen(self) -> Metrics:
        """The metrics, served. They need prometheus_client, of the extra `fleet`: imported where they are asked for."""
        from .metrics import Metrics

        assert self.options.metrics
        made = Metrics(self._healthy)
        made.serve(*self.options.metrics)
        return made

    def _healthy(self) -> bool:
        return hasattr(self, "session") and self.session.up.is_set() and not self._stop.is_set()

    def _connect(self) -> None:
        """Shared subscription where the broker speaks MQTT 5, plain where it speaks 3.1.1 only. Failure where neither is had.

        A first connection finds that out without properties, which a 3.1.1 broker takes for the start of a long client id.
        """
        self.shared = True
        first = self._session(lambda: make_client("", mqtt.MQTTv5, **self.endpoint.login))
        try:
            first.open()
        except OSError as error:
            if not _speaks_not_5(str(error)):
                raise unreachable(error) from None
            self.shared = False
        finally:
            first.close()
        self.session = self._session(self._client)
        try:
            self.session.open()
        except OSError as error:
            self.session.close()
            raise unreachable(error) from None

    def _session(self, make: Callable[[], mqtt.Client]) -> Session:
        seed = random.SystemRandom().randrange(2**28)
        topics = [SHARED if self.shared else PLAIN]
        return Session(self.endpoint.host, self.endpoint.port, make, topics, seed=seed, work=self._work)

    def _client(self) -> mqtt.Client:
        login = self.endpoint.login
        client = make_client("", mqtt.MQTTv5 if self.shared else mqtt.MQTTv311, limit=LARGEST, manual_ack=True, **login)
        if self.shared:
            client.properties = Properties(PacketTypes.CONNECT)
            client.properties.MaximumPacketSize = LARGEST
        client.max_inflight_messages_set(4096)
        client.on_message = self._on_message
        return client

    def _on_message(self, client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        if len(self._inbox) >= UNACKNOWLEDGED:
            client.ack(message.mid, message.qos)
        else:
            self._acks.append((client, message.mid, message.qos))
        device = wire.device_of(message.topic)
        if device is None:
            return
        reply = wire.topic(device, "reply")
        oversize = len(message.payload) > wire.MAX_REQUEST
        if len(self._inbox) < self.options.waiting and not oversize:
            if not self._inbox:
                self._due = time.perf_counter() + self.options.wait_ms / 1000
            self._inbox.append((reply, bytes(message.payload)))
            return
        refusal = self.worker.refusal(bytes(message.payload), wire.MALFORMED if oversize else wire.BUSY)
        if refusal:
            client.publish(reply, refusal, qos=1)

    def stop(self) -> None:
        """No more requests are taken; what is in the queue is answered."""
        self._stop.set()

    def reload(self) -> None:
        """Read the model's file again; the old model serves until the new one is ready, and on where it is not usable."""
        self._reload.set()

    def serve_until_stopped(self) -> None:
        """Until stop(), and all that was taken by then is answered."""
        watcher = threading.Thread(target=self._watch, name="model watcher", daemon=True)
        watcher.start()
        self._stop.wait()
        self._leave()
        self._empty.clear()
        if self.session.up.is_set():
            self._empty.wait(DRAIN)
        end = time.monotonic() + 2
        while self.session.unacknowledged() > 0 and self.session.up.is_set() and time.monotonic() < end:
            time.sleep(0.01)
        self.session.close()
        if self._metrics:
            self._metrics.stop()

    def _leave(self) -> None:
        """Unsubscribe, and wait until the broker sends no more."""
        client = self.session.client
        if client is None:
            return
        left = threading.Event()
        client.on_unsubscribe = lambda *_: left.set()
        client.unsubscribe(SHARED if self.shared else PLAIN)
        left.wait(2)

    def _work(self) -> int:
        """Answer a batch that is full or due: milliseconds until the next may be."""
        if not self._inbox:
            self._acknowledge()  # of what was refused
            self._empty.set()
            return IDLE_MS
        left = self._due - time.perf_counter()
        if left > 0 and len(self._inbox) < self.options.batch and not self._stop.is_set():
            return max(1, round(left * 1000))
        self._answer([self._inbox.popleft() for _ in range(min(len(self._inbox), self.options.batch))])
        self._acknowledge()
        return 0

    def _acknowledge(self) -> None:
        """To the broker, once the replies are out: they are what a device waits for."""
        while self._acks:
            client, message, qos = self._acks.popleft()
            if client is self.session.client:
                client.ack(message, qos)

    def _answer(self, batch: list[tuple[str, bytes]]) -> None:
        started = time.perf_counter()
        if not self._next.empty():
            self.worker.model = self._next.get()
        before = dict(self.worker.counts) if self._metrics else {}
        for (topic, _), reply in zip(batch, self.worker.answers([payload for _, payload in batch])):
            if reply is not None:
                self.session.publish(topic, reply)
        if self._metrics:
            self._count(self._metrics, before, len(batch), time.perf_counter() - started)

    def _count(self, metrics: Metrics, before: dict[str, int], batch: int, seconds: float) -> None:
        for status, n in self.worker.counts.items():
            if n > before.get(status, 0):
                metrics.replies.labels(status).inc(n - before.get(status, 0))
        metrics.waiting.set(len(self._inbox))
        metrics.batch.observe(batch)
        metrics.seconds.observe(seconds)
        metrics.connections.set(self.session.connections)

    def _watch(self) -> None:
        """Load the model again when asked to, or when its file has changed and is whole."""
        while not self._stop.is_set():
            asked = self._reload.wait(1.0)
            if self.options.parent and os.getppid() != self.options.parent:
                self.stop()
                self._say("the parent is gone")
            self._reload.clear()
            version = self.source.version()
            if not asked and (not self.options.watch or version in (self._version, (0, 0))):
                continue
            self._version = version
            try:
                self._next.put(self.source.load())
            except (UserError, ValueError, OSError) as error:
                self._reloaded("failed")
                self._say(f"the model stays as it was: {error}")
            else:
                self._reloaded("done")
                self._say(f"reloaded {self.source.path}")

    def _reloaded(self, outcome: str) -> None:
        if self._metrics:
            self._metrics.reloads.labels(outcome).inc()

    def _say(self, text: str) -> None:
        with suppress(BrokenPipeError):  # whoever listened may be gone
            print(f"h2t2 rdl: {text}", file=sys.stderr, flush=True)


def _speaks_not_5(why: str) -> bool:
    """A 3.1.1 broker refuses the version, or hangs up on the unknown greeting."""
    return "protocol version" in why.lower() or "connection was lost" in why.lower() or "reset" in why.lower()


def serve(source: Source, model_id: int, endpoint: Endpoint, options: Options, ready: Callable[[str], None]) -> dict[str, int]:
    """Run a worker until SIGTERM or SIGINT, reload on SIGHUP; the counts of what it answered. ready: told its first words."""
    server = Server(source, model_id, endpoint, options)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: server.stop())
    signal.signal(signal.SIGHUP, lambda *_: server.reload())
    note = "" if server.shared else "; this broker speaks MQTT 3.1.1 only: run a single worker"
    ready(f"ready: {source.path} as model {model_id} on {endpoint.host}:{endpoint.port}{note}")
    server.serve_until_stopped()
    return dict(server.worker.counts)
