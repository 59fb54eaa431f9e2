"""A worker behind a broker: presence, subscription, inbox, micro-batches, hot reload, drain at the end."""

from __future__ import annotations

import logging
import queue
import random
import secrets
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from h2t2.cpython import device_names, worker_wire
from h2t2.cpython.mqtt_session import IDLE_MS, Client, Session, make_client
from h2t2.link import presence, wire
from h2t2.link.statuses import STATUS

from ...common.errors import UserError
from ...common.log import is_logged
from .. import connection
from ..endpoint import Endpoint, unreachable
from ..samples.sample_store import Keeper
from .desk import Desk, Person
from .inbox import Inbox, Item
from .models import Model, OnServer, Source, load, warmed
from .models.chain import Chain
from .telemetry import Telemetry, digest, topic
from .watchdog import BatchNote
from .worker import SURGE, Worker
from .worker_options import WorkerOptions

if TYPE_CHECKING:
    from ..metrics_server import MetricsServer
    from .metrics import Metrics

LOG = logging.getLogger(__name__)
GROUP = "$share/rdl/"  # workers of one model share its requests
UNACKNOWLEDGED = 8  # requests whose acknowledgement may wait for their replies; brokers of MQTT 3.1.1 stop sending at 20
RECEIVE_MAXIMUM = 1024  # of MQTT 5, instead of 20: while requests wait at the broker, nobody can refuse those that will be late
WAIT_SHARE = 1 / 16  # of a batch's time, for a broker that holds more requests back
DRAIN = 30.0  # seconds for the requests that were taken before the end
LARGEST = 1 << 20  # bytes of a packet that we take from the broker; a request above wire.MAX_REQUEST is refused
HANGS_UP = 3  # disconnects in a row after which we give up
TEST_S = 120.0  # for the answer to the test question
WAIT_S = 1.0  # between two attempts to reach the broker at the start


class Server:
    """Takes requests of any device for one model and answers them until stop().

    The session's thread reads requests, runs the model and replies: handing every request to another thread costs a third of
    the speed. Between two batches it reads new requests, so that they wait in the inbox, which takes devices in turn and
    refuses requests that would be late. A retained message on worker_topic() announces the model while the connection lasts.
    """

    def __init__(
        self,
        source: Source,
        model_id: int,
        endpoint: Endpoint,
        options: WorkerOptions,
        *,
        metrics: tuple[str, int] | None = None,
        desk: Desk | None = None,
    ) -> None:
        """Load the model and connect; wait for a broker that does not answer.

        Args:
            desk: where a person answers in the model's place.

        Raises:
            UserError, ValueError: a bad model.
            Failure: the broker refuses.
        """
        self._desk = desk
        self.source, self.endpoint, self.options = source, endpoint, options
        self._version = source.version()
        self._stopping = False  # no Event: a signal handler that sets one may wait for its own thread
        self._metrics: Metrics | None = None
        self._scraped: MetricsServer | None = None
        if metrics:
            self._serve_metrics(*metrics)
        self.note = BatchNote(options.hang_after)
        model = Person() if desk else load(source, LOG.warning)
        test(model)
        self.worker = Worker(model, model_id, LOG.warning, note=self.note, limit=source.limit, media=source.media)
        self._keeper = Keeper(Path(options.keep), options.keep_mb, LOG.warning) if options.keep else None
        self._name = secrets.token_hex(4)
        self._presence = presence.worker_topic(model_id, self._name)
        self._telemetry = Telemetry(source.path, digest(source.file), time.perf_counter())
        self._telemetry_topic = topic(model_id, self._name)
        self._inbox = Inbox(options.queue)
        self._acks: deque[tuple[mqtt.Client, int, int]] = deque()
        self._recent_seconds = 0.0  # seconds a request has recently taken while others waited
        self._due = 0.0  # when the next batch is due
        self._empty = threading.Event()
        self._reload = threading.Event()
        self._next: queue.SimpleQueue[Model] = queue.SimpleQueue()
        self.shared = True
        self.session: Session
        self._connect()

    def _serve_metrics(self, host: str, port: int) -> None:
        """Serve metrics. prometheus_client is of the extra `fleet`, hence the late import."""
        from ..metrics_server import MetricsServer
        from .metrics import Metrics

        self._metrics = Metrics()
        self._scraped = MetricsServer(self._metrics.registry, self._unwell, host, port)

    def _unwell(self) -> str:
        """Why the worker cannot answer now, "" where it can."""
        if self._stopping:
            return "it is ending"
        if not hasattr(self, "session") or not self.session.up.is_set():
            return "not connected to the broker"
        until = self.note.until
        hangs = until and time.monotonic() > until - 3 / 4 * self.options.hang_after
        return "the model has not answered for too long" if hangs else ""

    def _connect(self) -> None:
        """Connect, with a shared subscription where the broker speaks MQTT 5, and a plain one where it speaks 3.1.1 only.

        A first connection finds that out. It has no properties: a 3.1.1 broker would take them for the start of a long client
        id.
        """
        tries = hung_up = 0
        while not self._stopping:
            why = self._connection_error(lambda: make_client("", mqtt.MQTTv5, **self.endpoint.login))
            self.shared = not why
            if why and _lacks_mqtt5(why):
                why = self._connection_error(lambda: make_client("", mqtt.MQTTv311, **self.endpoint.login))
            if not why:
                break
            hung_up = hung_up + 1 if _lacks_mqtt5(why) else 0
            if any(word in why for word in connection.REFUSALS) or hung_up == HANGS_UP:
                wants = "; it hangs up: does it want a certificate, or TLS?" if hung_up else ""
                raise unreachable(OSError(why + wants))
            if not tries:
                LOG.warning("%s; waiting for it", why)
            tries += 1
            time.sleep(WAIT_S)
        end, seed = self.endpoint, random.SystemRandom().randrange(2**28)
        self.session = Session(
            end.host, end.port, self._client, [self._subscription], seed=seed, work=self._work, on_up=self._announce,
            farewell=self._withdraw,
        )  # fmt: skip
        connection.start(self.session, patient=True)

    def _connection_error(self, make: Callable[[], Client]) -> str:
        """Why such a client cannot connect and subscribe, "" where it can."""
        session = Session(self.endpoint.host, self.endpoint.port, make, [self._presence]).start()
        try:
            session.open()
        except OSError as error:
            return str(error)
        finally:
            session.close()
        return ""

    @property
    def _subscription(self) -> str:
        """The topic of its requests, shared with other workers where the broker supports it."""
        topic = wire.topic("+", presence.request_leaf(self.worker.model_id))
        return GROUP + topic if self.shared else topic

    def _announce(self, session: Session) -> None:
        session.publish(self._presence, b"1", 1, True)

    def _withdraw(self, session: Session) -> None:
        session.publish(self._presence, b"", 1, True)

    def _client(self) -> Client:
        login = self.endpoint.login
        client = make_client("", mqtt.MQTTv5 if self.shared else mqtt.MQTTv311, limit=LARGEST, manual_ack=True, **login)
        client.will_set(self._presence, b"", qos=1, retain=True)
        if self.shared:
            client.properties = Properties(PacketTypes.CONNECT)
            client.properties.MaximumPacketSize = LARGEST
            client.properties.ReceiveMaximum = RECEIVE_MAXIMUM
        client.max_inflight_messages_set(4096)
        client.on_message = self._on_message
        return client

    def _on_message(self, client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        device = device_names.device_of(message.topic)
        if device is not None:
            self._take(device, bytes(message.payload))
        if len(self._inbox) >= UNACKNOWLEDGED:
            client.ack(message.mid, message.qos)
        else:
            self._acks.append((client, message.mid, message.qos))

    def _take(self, device: str, payload: bytes) -> None:
        """Put a request into the inbox; refuse what is no request, or comes too late."""
        reply = wire.topic(device, "reply")
        try:
            request = worker_wire.decode_request(payload)
        except ValueError:
            status = worker_wire.refusal(payload)
            if status == wire.OTHER_VERSION and is_logged(self.worker.counts[STATUS[status]] + 1):
                text = f"{device}: a request of version {payload[0]} of the wire format; this worker reads {wire.VERSION}"
                LOG.warning("%s: update the device's runtime, or this worker", text)
            self._refuse(reply, self.worker.refuse(payload))
            return
        clock_s = time.perf_counter()
        if not self._inbox:
            self._due = clock_s + self.options.batch_wait
        left_ms = 0 if self._desk else request.remaining_ms  # a person's answer teaches, however late
        item = Item(device, reply, request, clock_s + left_ms / 1000 if left_ms else float("inf"), clock_s)
        refused = self._inbox.add(item, clock_s, self._each())
        if refused:
            self._refuse(refused.reply, self.worker.reply(wire.BUSY, refused.request))

    def _refuse(self, topic: str, refusal: bytes | None) -> None:
        if refusal:
            self.session.publish(topic, refusal, 0)  # losing it costs the device its deadline
        if self._metrics:
            self._metrics.count(self.worker.counts)

    def stop(self) -> None:
        """Take no more requests; those in the queue are answered."""
        self._stopping = True

    def reload(self) -> None:
        """Load the model's file again. The old model serves until the new one is ready, or stays if that is bad."""
        self._reload.set()

    def serve_until_stopped(self) -> None:
        """Serve until stop(), and until every request that was taken is answered."""
        watcher = threading.Thread(target=self._watch_model, name="model watcher", daemon=True)
        watcher.start()
        while not self._stopping:
            time.sleep(0.05)
        self._unsubscribe()
        self._empty.clear()
        if self.session.up.is_set():
            self._empty.wait(DRAIN)
        end = time.monotonic() + 2
        while self.session.unacknowledged() > 0 and self.session.up.is_set() and time.monotonic() < end:
            time.sleep(0.01)
        self.session.close()
        if self._keeper:
            self._keeper.close()
        if self._scraped:
            self._scraped.close()

    def _unsubscribe(self) -> None:
        """Withdraw the presence, unsubscribe, and wait until the broker sends no more."""
        client = self.session.client
        if client is None:
            return
        self._withdraw(self.session)
        unsubscribed = threading.Event()
        client.on_unsubscribe = lambda *_: unsubscribed.set()
        client.unsubscribe(self._subscription)
        unsubscribed.wait(2)

    def _work(self) -> int:
        """Answer a batch that is full or due; the milliseconds until the next call."""
        self.note.report_alive()
        self._publish_state()
        if self._desk:
            self._take_answers(self._desk)
        if not self._inbox:
            self._acknowledge()  # of refused requests
            self._empty.set()
            return IDLE_MS
        wait_s = self._due - time.perf_counter()
        if wait_s > 0 and len(self._inbox) < self.options.batch and not self._stopping:
            return max(1, round(wait_s * 1000))
        started = time.perf_counter()
        batch, late = self._inbox.take(self.options.batch, started, self._each())
        for item in late:
            self._refuse(item.reply, self.worker.reply(wire.BUSY, item.request))
        together = len(batch) + len(late) > 1  # a single reply goes out at once
        if together:
            self.session.cork(True)
        if batch:
            self._answer(batch)
        self._acknowledge()
        if together:
            self.session.cork(False)
        if len(self._inbox) >= UNACKNOWLEDGED:
            self.session.drain(int(WAIT_SHARE * 1000 * (time.perf_counter() - started)))
        if batch and self._inbox:
            took = (time.perf_counter() - started) / len(batch)
            self._recent_seconds += (min(took, SURGE * self._each()) - self._recent_seconds) / 8
        else:
            self._recent_seconds = self.worker.seconds_each
        return 0 if self._inbox else IDLE_MS

    def _publish_state(self) -> None:
        """Publish the worker's state, when it is due."""
        clock_s = time.perf_counter()
        if clock_s >= self._telemetry.due:
            message = self._telemetry.message(clock_s, len(self._inbox), self._each(), self.worker.counts)
            self.session.publish(self._telemetry_topic, message, 0)

    def _each(self) -> float:
        """Seconds a request takes: the model's; while requests wait, with reading and refusing others."""
        return max(self.worker.seconds_each, self._recent_seconds)

    def _acknowledge(self) -> None:
        """Acknowledge requests to the broker, after the replies, for which devices wait."""
        while self._acks:
            client, message, qos = self._acks.popleft()
            if client is self.session.client:
                client.ack(message, qos)

    def _answer(self, batch: list[Item]) -> None:
        started = time.perf_counter()
        if not self._next.empty():
            self.worker.model = self._next.get()
        if self._desk:
            self._put_on_desk(batch, self._desk)
            return
        for item, reply in zip(batch, self.worker.answer([item.request for item in batch])):
            self._reply(item, reply)
        if self._metrics:
            self._count(self._metrics, len(batch), time.perf_counter() - started)

    def _reply(self, item: Item, reply: bytes) -> None:
        self.session.publish(item.reply, reply)
        self._telemetry.answered(time.perf_counter() - item.came)
        if self._keeper:
            self._keeper.keep(item.device, item.request, reply)

    def _put_on_desk(self, batch: list[Item], desk: Desk) -> None:
        """Put requests on the desk; refuse those of another kind."""
        for item in batch:
            wrong = self.worker.request_error(item.request)
            if wrong:
                self._refuse(item.reply, self.worker.reply(wrong, item.request))
            else:
                desk.add(item)

    def _take_answers(self, desk: Desk) -> None:
        for answer in desk.take_answers(at_once=self._stopping):
            self.worker.counts[STATUS[answer.status]] += 1
            self._reply(answer.waiting.item, answer.reply())

    def _count(self, metrics: Metrics, batch: int, seconds: float) -> None:
        metrics.count(self.worker.counts)
        metrics.waiting.set(len(self._inbox))
        metrics.batch.observe(batch)
        metrics.seconds.observe(seconds)
        metrics.connections.set(self.session.connections)
        model = self.worker.model
        if isinstance(model, Chain):
            metrics.second.labels("asked").set(model.asked_count)
            metrics.second.labels("failed").set(model.failed_count)

    def _watch_model(self) -> None:
        """Load the model again on reload(), or when its file has changed. Nothing ends this thread."""
        while not self._stopping:
            requested = self._reload.wait(1.0)
            self._reload.clear()
            try:
                self._check_model(requested)
            except Exception:
                LOG.exception("the check of the model's file")

    def _check_model(self, requested: bool) -> None:
        """Load the model if its file has changed; requested: in any case."""
        if not self.session.up.is_set():
            self.note.report_alive()  # otherwise the session's thread reports it
        version = self.source.version()
        if not requested and (self.options.no_watch or version in (self._version, ())):
            return
        self._version = version
        try:
            self._next.put(warmed(load(self.source, LOG.warning)))
        except Exception as error:  # whatever a user's model raises: the old one serves on
            self._reloaded("failed")
            expected = isinstance(error, (UserError, OSError))
            LOG.error("the model stays as it was: %s", error, exc_info=None if expected else error)
        else:
            self._reloaded("done")
            self._telemetry.version = digest(self.source.file)
            LOG.info("reloaded %s", self.source.path)

    def _reloaded(self, outcome: str) -> None:
        if self._metrics:
            self._metrics.reloads.labels(outcome).inc()


def test(model: Model) -> None:
    """Ask a model on a server a test question, which may load it, before a request waits for that.

    A failure is logged: it may pass.
    """
    try:
        if isinstance(model, OnServer):
            model.test(TEST_S)
    except (ValueError, OSError) as error:
        LOG.warning("the remote model does not answer a test question: %s", error)


def _lacks_mqtt5(why: str) -> bool:
    """A 3.1.1 broker refuses the version, or hangs up on the unknown greeting."""
    return "protocol version" in why.lower() or "connection was lost" in why.lower() or "reset" in why.lower()


def serve(
    source: Source,
    model_id: int,
    endpoint: Endpoint,
    options: WorkerOptions,
    ready: Callable[[str], None],
    *,
    metrics: tuple[str, int] | None = None,
) -> dict[str, int]:
    """Run a worker until SIGTERM or SIGINT; reload on SIGHUP.

    Args:
        ready: is called with a line of text once the worker serves.

    Returns:
        The counts of its replies, by status.
    """
    server = Server(source, model_id, endpoint, options, metrics=metrics)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: server.stop())
    signal.signal(signal.SIGHUP, lambda *_: server.reload())
    hint = "" if server.shared else "; this broker speaks MQTT 3.1.1 only: run a single worker"
    ready(f"ready: {source.path} as model {model_id} on {endpoint.host}:{endpoint.port}{hint}")
    server.serve_until_stopped()
    return dict(server.worker.counts)
