"""A gate's only connection: that of a device, on which scores also come in, at QoS 1, and decisions go out, at QoS 2.

A decision's packet id follows from its place in the outbox, and the outbox stores that the broker has taken the decision over,
before the broker may forward it. So after a kill the next start goes on with the same handshake, and nobody hears a decision
twice. Only one decision is under way at a time: under MQTT 3.1.1 a broker may drop what exceeds its own limit, and not say so.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any

import paho.mqtt.client as mqtt

from h2t2.cpython.mqtt_session import Client, Session, make_client
from h2t2.cpython.paho import MEET_S, PahoLink
from h2t2.link import presence, wire

from ..connection import scores_client, start
from ..detections import LARGEST, OWN
from .detection import Decision
from .gate_backlog import Backlog
from .gate_config import GateConfig

OWN_LIMIT = 320  # bytes of a reply or a command
Take = Callable[[mqtt.MQTTMessage, Callable[[], object]], object]
FIRST_PACKET = 1024  # ids below are those of other packets


class GateClient(Client):
    """A client whose publications at QoS 2 can have an id of the caller's choice, which outlives the client.

    Attributes:
        on_received: is called with the id of a publication that the broker has taken over, before it may forward it.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.on_received: Callable[[int], object] = lambda packet: None
        self._chosen = threading.local()

    @contextmanager
    def packet_id(self, packet: int) -> Iterator[None]:
        """Within the context this thread publishes under an id."""
        self._chosen.packet = packet
        try:
            yield
        finally:
            self._chosen.packet = 0

    def release(self, packet: int, topic: str) -> None:
        """Let the broker forward what an earlier client has published under an id."""
        message = mqtt.MQTTMessage(packet, topic.encode())
        message.qos, message.state = 2, mqtt.mqtt_ms_wait_for_pubcomp
        with self._out_message_mutex:
            self._out_messages[packet] = message
            self._inflight_messages += 1
            super()._send_pubrel(packet)

    def _mid_generate(self) -> int:
        chosen = getattr(self._chosen, "packet", 0)
        if chosen:
            return int(chosen)
        if self._last_mid >= FIRST_PACKET // 2:  # far below: two threads may count at once
            self._last_mid = 0
        return super()._mid_generate()

    def _send_pubrel(self, mid: int) -> mqtt.MQTTErrorCode:
        self.on_received(mid)
        return super()._send_pubrel(mid)


class GateLink(PahoLink):
    """The link of a gate. Its client keeps its session at the broker, so that scores wait there while the gate is away.

    Replies, commands and presence come at QoS 0: the broker keeps none of them for a gate that is away.
    """

    most_unacknowledged = waiting_limit = 512  # questions and answers: the gate asks less at once
    client: GateClient | None
    _backlog: Backlog
    _take: Take
    _on_ready: Callable[[], object]

    def __init__(self, config: GateConfig, boot: int, former_topics: list[str], host: str, port: int, **login: Any) -> None:
        """
        Args:
            former_topics: of scores in the past, which are given up.
            login: as PahoLink's.
        """
        self._scores = config.topic
        self._queue: deque[Decision] = deque()
        self._current: Decision | None = None  # under way on this connection
        self._has_begun = False
        self._queue_lock = threading.Lock()  # never held while paho is called, as Session's
        self._early: list[mqtt.MQTTMessage] = []  # scores that came before the subscription
        login |= {"buffer": LARGEST, "begin": False}
        super().__init__(host, port, config.device, config.worker, boot, seed=boot >> 2, **login)
        self._former_topics = former_topics

    def serve(self, backlog: Backlog, take: Take, on_ready: Callable[[], object]) -> None:
        """Begin to connect. A broker that does not answer may come later.

        Args:
            backlog: stores how far the broker has each decision.
            take: is called with a message of the gate's topic, and with what acknowledges it.
            on_ready: is called at each connection, before the first message.

        Raises:
            Failure: the broker refuses us.
        """
        self._backlog, self._take, self._on_ready = backlog, take, on_ready
        start(self, patient=True)

    def open(self, wait_ms: int = 0) -> None:
        """As Session.open."""
        Session.open(self, wait_ms)

    def meet(self) -> None:
        """Wait until a worker has announced itself, or the connection is old enough to have heard of all of them."""
        self._worker_came.wait(max(0.0, self._up_since + MEET_S - monotonic()))

    def unpublished(self) -> int:
        """Decisions that wait for this connection, or are under way on it."""
        return len(self._queue) + (self._current is not None)

    def begin_decisions(self, unpublished: list[Decision]) -> None:
        """Publish what earlier connections left; from now on publish_decision() works, until this connection ends."""
        self._queue.extend(unpublished)
        self._has_begun = True
        self._publish_next()

    def publish_decision(self, decision: Decision) -> bool:
        """Publish a decision behind the earlier ones. False while that is not possible: the next connection begins with it."""
        if not (self._has_begun and self.up.is_set()):
            return False
        self._queue.append(decision)
        self._publish_next()
        return True

    def _publish_next(self) -> None:
        with self._queue_lock:
            client = self.client
            if client is None or self._current or not self._queue:
                return
            self._current = decision = self._queue.popleft()
        topic, packet = decision.topic + OWN, packet_of(decision)
        self._count_sent()
        if decision.place in self._backlog.received:
            client.release(packet, topic)
        else:
            with client.packet_id(packet):
                client.publish(topic, decision.as_json(), qos=2)

    def _on_publish(self, client: object, data: object, mid: int, *rest: object) -> None:
        super()._on_publish(client, data, mid, *rest)
        with self._queue_lock:
            decision = self._current
            if decision is None or packet_of(decision) != mid:
                return
            self._current = None
        self._backlog.note_published(decision.place)
        self._publish_next()

    def _on_received(self, packet: int) -> None:
        decision = self._current
        if decision and packet_of(decision) == packet:
            self._backlog.note_received(decision.place)

    def _make_client(self) -> GateClient:
        with self._queue_lock:
            self._queue.clear()
            self._current, self._has_begun = None, False
        self._early.clear()
        self._worker_came.clear()
        name = scores_client(self.device)
        client = make_client(name, kind=GateClient, manual_ack=True, clean_session=False, **self._login)
        assert isinstance(client, GateClient)
        client.max_inflight_messages_set(0)  # no limit of paho's: decisions have their own, and pass questions
        client.on_socket_register_write = self._wake  # so that no other thread waits for a callback of this session's
        client.on_received = self._on_received
        return client

    def _subscriptions(self) -> list[tuple[str, int]]:
        return [*((topic, 0) for topic in self._topics), (self._scores, 1)]

    def _on_connect(self, client: Any, data: object, flags: Any, reason: Any, properties: object) -> None:
        if not flags.session_present:  # the broker knows of no decision that we have begun to publish
            self._backlog.forget_received()
        super()._on_connect(client, data, flags, reason, properties)

    def _announce(self, session: Session) -> None:
        super()._announce(session)
        self._on_ready()
        early, self._early = self._early, []
        for message in early:
            self._on_message(self.client, None, message)

    def _on_message(self, client: Any, data: object, message: mqtt.MQTTMessage) -> None:
        own = True
        with suppress(UnicodeDecodeError):  # the topic is no text
            own = message.topic.startswith((presence.TOPICS, wire.topic(self.device, "")))
        if not own and not self.up.is_set():
            self._early.append(message)
        elif not own:
            self._take(message, once(partial(client.ack, message.mid, message.qos)))
        else:
            client.ack(message.mid, message.qos)
            if len(message.payload) > OWN_LIMIT:
                self.oversize += 1
            else:
                super()._on_message(client, data, message)


def packet_of(decision: Decision) -> int:
    """The packet id of a decision. Decisions less than 64,512 places apart have different ones."""
    return FIRST_PACKET + decision.place % (65536 - FIRST_PACKET)


def once(action: Callable[[], object]) -> Callable[[], None]:
    """A function that calls an action at its first call, and does nothing later."""
    pending = [action]

    def call() -> None:
        if pending:
            pending.pop()()

    return call
