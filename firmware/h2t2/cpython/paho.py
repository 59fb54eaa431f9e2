# MQTT link for a Pi or a desktop, over paho-mqtt, with the behaviour of MqttLink.
import ssl
from threading import Event
from time import monotonic
from typing import Any

import paho.mqtt.client as mqtt

from ..link import presence, wire
from ..link.presence import BrokerLink
from .mqtt_session import Client, Session, make_client

MEET_S = 0.3  # within this time a reachable broker has named its workers
WORKERS = 1024  # remembered


class PahoLink(Session, BrokerLink):
    """Requests out, replies in, for one device. Its thread connects, reconnects and resubscribes.

    link = PahoLink("localhost", 1883, "porch", model=1, boot=start.boot_number())
    """

    most_unacknowledged = 16  # publications that the broker has not acknowledged; one more is refused

    def __init__(
        self,
        host: str,
        port: int,
        device: str,
        model: int | None,
        boot: int,
        *,
        user: str | None = None,
        password: str | None = None,
        keep_alive: int = 30,
        deadline_ms: int = 10000,
        seed: int = 1,
        buffer: int = 320,
        tls: ssl.SSLContext | None = None,
        begin: bool = True,
    ) -> None:
        """Begin to connect. Arguments as MqttLink's.

        Args:
            model: None looks out for the workers of every model.
            begin: False waits for start().
        """
        BrokerLink.__init__(self, boot, WORKERS)
        self.device = device
        self.model = model
        self._reply, self._command, self._status = [wire.topic(device, leaf) for leaf in ("reply", "command", "status")]
        self._login: dict[str, Any] = {"tls": tls, "user": user, "password": password, "limit": buffer}
        self._reply_came = Event()
        self._worker_came = Event()
        topics = [self._reply, self._command, self._status, presence.worker_topic("+" if model is None else model, "+")]
        Session.__init__(
            self,
            host,
            port,
            self._client_with_will,
            topics,
            keep_alive=keep_alive,
            deadline_ms=deadline_ms,
            seed=seed,
            on_up=self._announce,
            farewell=lambda session: session.publish(self._status, presence.status("offline", boot), 0, True),
        )
        if begin:
            self.start()

    def is_connected(self) -> bool:
        return self.up.is_set()

    def workers(self, model: int | None = None) -> int:
        """How many workers serve a model (the link's own), as far as they have announced themselves."""
        return self.count_workers(self.model if model is None else model)

    def open(self, wait_ms: int = 0) -> None:
        Session.open(self, wait_ms)
        self._worker_came.wait(MEET_S)

    def send(self, payload: bytes) -> bool:
        """Publish a request. False while the link is down or busy; it does not queue the request then."""
        leaf = presence.request_leaf(presence.model_of(payload))
        if not self._is_busy() and self.publish(wire.topic(self.device, leaf), payload):
            return True
        self.refused += 1
        return False

    def receive(self, wait_ms: int) -> bytes | None:
        # not SimpleQueue.get(): a signal at the end of its wait makes CPython 3.11 wait for ever
        end = monotonic() + wait_ms / 1000
        while True:
            self._reply_came.clear()
            if self.replies:
                return self.replies.pop(0)
            left_s = end - monotonic()
            if left_s <= 0:
                return None
            self._reply_came.wait(left_s)

    def report(self, message: str) -> None:
        if not self._is_busy():
            self.publish(wire.topic(self.device, "state"), message, 0, True)

    def answer(self, message: str) -> None:
        if not self._is_busy():
            self.publish(wire.topic(self.device, "answer"), message, 0)

    def _is_busy(self) -> bool:
        """Whether too many publications are not acknowledged."""
        return self.unacknowledged() >= self.most_unacknowledged

    def _announce(self, _session: Session) -> None:
        self.publish(self._status, presence.status("online", self.boot), 0, True)

    def is_contested(self) -> bool:
        return self.has_namesake()

    def _make_client(self) -> Client:
        return make_client("h2t2-" + self.device, **self._login)

    def _client_with_will(self) -> Client:
        self.forget_workers()
        client = self._make_client()
        client.will_set(self._status, presence.status("offline", self.boot), qos=0, retain=True)
        client.on_message = self._on_message
        return client

    def _on_message(self, _client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:  # the topic is no text
            return
        payload = bytes(message.payload)
        if topic == self._reply:
            self._enqueue(self.replies, payload)
            self._reply_came.set()
        elif topic == self._command:
            if not message.retain:
                self._enqueue(self.commands, payload)
        elif topic == self._status:
            self.take_status(payload, self.connections > self.is_connected())
        elif self.take_presence(topic, payload, message.retain) and self.workers():
            self._worker_came.set()
