"""Follows a fleet on its broker, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from h2t2.cpython.mqtt_session import Session
from h2t2.link import wire

from ...common.errors import Failure
from .. import home_assistant
from ..connection import connect, forget, scores_client
from ..endpoint import Endpoint
from .watched_fleet import Fleet

KEEP_ALIVE_S = 10  # a lost broker is noticed within twice that: before a device counts as silent
GATHER_MS = 100  # between two reads: waking the thread for every message costs twice as much
GATE = "gate"  # how a gate has started
REMOVED_S = 3.0  # how long the broker may take to delete what it retains of a device


class Beside(Protocol):
    """Who reads further topics, all below home_assistant.PREFIX. The session's thread calls its methods."""

    topics: tuple[str, ...]

    def begin(self) -> None:
        """A connection begins: the broker will send what it retains on these topics."""

    def take(self, topic: str, payload: bytes) -> None:
        """Take a message."""


class Follower:
    """From start() to close(). It reconnects by itself, and then receives the retained messages once more."""

    def __init__(self, to: Endpoint, beside: Beside | None = None) -> None:
        self._fleet = Fleet()
        self._beside = beside
        self._lock = threading.Lock()
        self._to = to
        self._session: Session

    def start(self, *, patient: bool = False) -> Follower:
        """Connect. Failure where the broker cannot be reached; patient: as connection.start()'s."""
        topics = [*Fleet.topics(), *(self._beside.topics if self._beside else ())]
        options = {"keep_alive": KEEP_ALIVE_S, "on_up": self._on_up, "gather_ms": GATHER_MS}
        self._session = connect(self._to, topics, self._take, begin=self._begin, patient=patient, **options)
        return self

    def close(self) -> None:
        self._session.close()

    @property
    def trouble(self) -> str:
        """Why there is no connection, "" while there is one."""
        return "" if self._session.up.is_set() else self._session.trouble or "not connected"

    @property
    def refused_text(self) -> str:
        """A sentence about the messages that were refused, "" for none."""
        with self._lock:
            return self._fleet.refused_text

    @contextmanager
    def fleet(self) -> Iterator[Fleet]:
        """The fleet, which does not change until the context ends."""
        with self._lock:
            if not self._session.up.is_set():
                self._fleet.lose()
            self._fleet.settle()
            yield self._fleet

    def retain(self, topic: str, payload: bytes) -> bool:
        """Publish a retained message; an empty payload deletes what is retained there. False while there is no connection."""
        return self._session.publish(topic, payload, 1, True)

    def remove(self, device: str) -> None:
        """Remove a device from the broker, and so from Home Assistant: delete every retained message about it.

        Raises:
            Failure: the device is online, or the broker keeps the messages.
        """
        with self.fleet() as fleet:
            entry = fleet.devices.get(device)
            is_gate = entry is not None and entry.state is not None and entry.state.start == GATE
        if entry and entry.online:
            raise Failure(f"{device} is online and would come back: stop it first")
        own = (wire.topic(device, "status"), wire.topic(device, "state"))
        for topic in (*own, home_assistant.topic(device), home_assistant.figures_topic(device)):
            self.retain(topic, b"")
        end = time.monotonic() + REMOVED_S
        while self._session.unacknowledged() or self._knows(device):
            if time.monotonic() > end:
                raise Failure(f"the broker does not remove {device}: may this user publish on its topics?")
            time.sleep(0.02)
        if is_gate:  # last: where a user connects once, this ends our connection
            forget(self._to, scores_client(device))

    def _knows(self, device: str) -> bool:
        with self.fleet() as fleet:
            return device in fleet.devices

    def _begin(self) -> None:
        with self._lock:
            self._fleet.begin()
            if self._beside:
                self._beside.begin()

    def _on_up(self, _session: Session) -> None:
        with self._lock:
            self._fleet.listen()

    def _take(self, message: Any) -> None:
        """Raise nothing: an exception would end the connection, and a retained message would come again with the next one."""
        with self._lock:
            try:
                topic = message.topic
            except UnicodeDecodeError:
                self._fleet.refuse("a topic", "it is no UTF-8")
                return
            if self._beside and topic.startswith(home_assistant.PREFIX):
                self._beside.take(topic, bytes(message.payload))
            else:
                self._fleet.take(topic, bytes(message.payload), message.retain)
