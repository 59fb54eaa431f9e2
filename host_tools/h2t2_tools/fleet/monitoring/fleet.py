"""Everything a broker tells of a fleet, message by message: devices and workers. No network here."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from h2t2.link import wire
from h2t2.node.package import CHUNK

from ...common.errors import is_deliberate
from ...common.untrusted import parse_integer, printable
from ..rdl import telemetry
from . import state
from .device import Device
from .worker import Worker

MOST = 10000  # devices remembered: a stranger must not fill the memory
WORKERS = 1024
LEAVES = ("status", "state")
SPOKEN = ("command", "answer")  # what is kept as events
EVENTS = 1000  # not yet fetched; one more drops the oldest
LONGEST = 300  # characters of one
SAID = 20  # refused messages in the log, before they are said now and then
LOG = logging.getLogger(__name__)


class Fleet:
    """devices: by name. workers: model number -> those that serve it, by name. events: (device, kind, text) of commands and
    answers, for whoever takes them out. unread: messages that were refused. refusal: topic of the last of them, and why.

    listening: Unix seconds since when everything is heard that is said. lost: when the broker was lost, None while it is there:
    until it is back nothing that devices do is known, and nobody is silent."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.devices: dict[str, Device] = {}
        self.workers: dict[int, dict[str, Worker]] = {}
        self.events: deque[tuple[str, str, str]] = deque(maxlen=EVENTS)
        self.unread = 0
        self.refusal = ""
        self._clock = clock
        self.listening = clock()
        self.lost: float | None = None

    @staticmethod
    def topics() -> list[str]:
        """What to subscribe to."""
        return [*(wire.topic("+", leaf) for leaf in LEAVES + SPOKEN), wire.presence("+", "+"), telemetry.ANY]

    def take(self, topic: str, payload: bytes, retained: bool = False) -> None:
        """A message from the broker; an empty one takes back what was retained. One that makes no sense is refused: whatever a
        device says, the thread that listens goes on."""
        try:
            self._take(topic, payload, retained)
        except Exception as error:
            if is_deliberate(error):
                self.refuse(topic, str(error))
            else:
                LOG.exception("a message on %s", printable(topic[:LONGEST]))
                self.refuse(topic, f"{type(error).__name__}: {error}")

    def lose(self) -> None:
        """The broker is away."""
        if self.lost is None:
            self.lost = self._clock()

    def listen(self) -> None:
        """The broker is there, and tells everything from now on."""
        self.lost, self.listening = None, self._clock()

    def refuse(self, topic: str, why: str) -> None:
        """Count a message that cannot be used."""
        self.unread += 1
        self.refusal = printable(f"{topic[:LONGEST]}: {why[:LONGEST]}")
        if self.unread <= SAID or not self.unread & 1023:  # a stranger must not fill the log
            LOG.warning("a message is refused: %s (%d so far)", self.refusal, self.unread)

    @property
    def refused(self) -> str:
        """A sentence about the messages that were refused, "" where none were."""
        were = "messages were" if self.unread != 1 else "message was"
        return f"{self.unread:,} {were} refused, the last on {self.refusal}" if self.unread else ""

    def _take(self, topic: str, payload: bytes, retained: bool) -> None:
        if topic.startswith(wire.PRESENCE):
            self._worker(topic[len(wire.PRESENCE) :], payload)
            return
        name = wire.device_of(topic)
        leaf = topic.rsplit("/", 1)[-1]
        if name is not None and leaf in SPOKEN and not retained and not _of_an_update(payload):
            self.events.append((name, leaf, payload[:LONGEST].decode(errors="replace")))
        if name is None or leaf not in LEAVES:
            return
        if not payload:
            self._forget(name, leaf)
            return
        read = state.read(payload) if leaf == "state" else None
        if name not in self.devices and len(self.devices) >= MOST:
            raise ValueError(f"more than {MOST:,} devices")
        device = self.devices.setdefault(name, Device(name))
        if read is None:
            device.take_status(payload, self._clock())
        else:
            device.take_state(read, self._clock(), retained)

    def _forget(self, name: str, leaf: str) -> None:
        device = self.devices.get(name)
        if device is None:
            return
        if leaf == "state":
            device.state = None
        else:
            device.online = None
        if device.state is None and device.online is None:
            del self.devices[name]

    def _worker(self, rest: str, payload: bytes) -> None:
        model, name, *leaf = rest.split("/")[:3] + [""]
        number = parse_integer(model, 65535)
        if number is None or not name:
            raise ValueError("no number of a model, 0 to 65535, and name of a worker")
        there = self.workers.get(number, {})
        if leaf[0] == "state":  # of one that has gone, or not yet come, it tells nothing
            read = telemetry.read(payload)
            if name in there:
                there[name].take(read, self._clock())
        elif not payload:
            there.pop(name, None)
            if not there:
                self.workers.pop(number, None)
        elif name not in there and sum(map(len, self.workers.values())) < WORKERS:
            self.workers.setdefault(number, there)[name] = Worker(number, name)


def _of_an_update(payload: bytes) -> bool:
    """Whether that is a chunk of a package, or the answer to one: there are thousands, and nobody reads them."""
    return payload.startswith(CHUNK) or b'"next"' in payload
