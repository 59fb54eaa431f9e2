"""Everything a broker tells of a fleet, message by message: devices and workers. No network here."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from h2t2.link import wire
from h2t2.node.package import CHUNK

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


class Fleet:
    """devices: by name. workers: model number -> those that serve it, by name. events: (device, kind, text) of commands and
    answers, for whoever takes them out. unread: messages that made no sense."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.devices: dict[str, Device] = {}
        self.workers: dict[int, dict[str, Worker]] = {}
        self.events: deque[tuple[str, str, str]] = deque(maxlen=EVENTS)
        self.unread = 0
        self._clock = clock

    @staticmethod
    def topics() -> list[str]:
        """What to subscribe to."""
        return [*(wire.topic("+", leaf) for leaf in LEAVES + SPOKEN), wire.presence("+", "+"), telemetry.ANY]

    def take(self, topic: str, payload: bytes, retained: bool = False) -> None:
        """A message from the broker; an empty one takes back what was retained."""
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
        if leaf == "state" and read is None:
            self.unread += 1
            return
        if name not in self.devices and len(self.devices) >= MOST:
            self.unread += 1
            return
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
        if not model.isdigit() or int(model) > 65535 or not name:
            return
        there = self.workers.get(int(model), {})
        if leaf[0] == "state":  # of one that has gone, or not yet come, it tells nothing
            read = telemetry.read(payload)
            if read is None:
                self.unread += 1
            elif name in there:
                there[name].take(read, self._clock())
        elif not payload:
            there.pop(name, None)
            if not there:
                self.workers.pop(int(model), None)
        elif name not in there and sum(map(len, self.workers.values())) < WORKERS:
            self.workers.setdefault(int(model), there)[name] = Worker(int(model), name)


def _of_an_update(payload: bytes) -> bool:
    """Whether that is a chunk of a package, or the answer to one: there are thousands, and nobody reads them."""
    return payload.startswith(CHUNK) or b'"next"' in payload
