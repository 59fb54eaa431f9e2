"""A fleet as the messages on its broker describe it: devices and workers. No network here."""

import logging
import time
from collections import deque
from collections.abc import Callable

from h2t2.cpython import device_names
from h2t2.link import presence, wire
from h2t2.node.package import CHUNK

from ...common.errors import InvalidMessage
from ...common.log import is_logged
from ...common.untrusted import parse_integer, printable
from ..rdl import telemetry
from . import state
from .watched_device import Device
from .watched_worker import Worker

MAX_DEVICES = 10000  # devices: a stranger must not fill the memory
MAX_WORKERS = 1024
LEAVES = ("status", "state")
EVENT_LEAVES = ("command", "answer")  # messages that become events
EVENTS = 1000  # that wait for whoever takes them out; one more drops the oldest
LONGEST = 300  # characters of an event
SETTLED_S = 5.0  # without a retained message, after which the broker has sent all that it retains
LOG = logging.getLogger(__name__)


class Fleet:
    """A fleet, updated by take().

    Attributes:
        devices: by name.
        workers: model number -> the workers that serve it, by name.
        events: (device, kind, text) of commands and answers, until somebody takes them out.
        refused_count: number of invalid messages.
        refusal: topic of the last invalid message, and the reason.
        listening: Unix seconds since when we receive every message.
        lost: Unix seconds when the connection was lost; None while there is one.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.devices: dict[str, Device] = {}
        self.workers: dict[int, dict[str, Worker]] = {}
        self.events: deque[tuple[str, str, str]] = deque(maxlen=EVENTS)
        self.refused_count = 0
        self.refusal = ""
        self._clock = clock
        self.listening = clock()
        self.lost: float | None = None
        self._retained_at = 0.0  # Unix seconds of the last retained message
        # what no message of this connection has named: devices, and workers by (model number, name)
        self._missing: set[str | tuple[int, str]] = set()
        self._former: dict[str, Device] = {}  # devices that the broker did not hold any more; they may come back

    @staticmethod
    def topics() -> list[str]:
        """The topics to subscribe to."""
        return [
            *(wire.topic("+", leaf) for leaf in LEAVES + EVENT_LEAVES),
            presence.worker_topic("+", "+"),
            telemetry.ANY_STATE,
        ]

    def take(self, topic: str, payload: bytes, retained: bool = False) -> None:
        """Take a message; an empty one deletes what was retained. An invalid one is counted and logged, and raises nothing."""
        if retained:
            self._retained_at = self._clock()
        try:
            self._dispatch(topic, payload, retained)
        except InvalidMessage as error:
            self.refuse(topic, str(error))
        except Exception as error:  # a defect must not end the session
            LOG.exception("a message on %s", printable(topic[:LONGEST]))
            self.refuse(topic, f"{type(error).__name__}: {error}")

    def lose(self) -> None:
        """Note that the connection is lost."""
        if self.lost is None:
            self.lost = self._clock()

    def begin(self) -> None:
        """Note that a connection begins: the broker will send what it retains."""
        self._missing = {*self.devices, *((model, name) for model, served in self.workers.items() for name in served)}

    def is_missing(self, device: str) -> bool:
        """Whether no message of this connection has named a device."""
        return device in self._missing

    @property
    def is_settled(self) -> bool:
        """Whether the broker has sent all that it retains."""
        quiet_s = self._clock() - max(self.listening, self._retained_at)
        return self.lost is None and abs(quiet_s) >= SETTLED_S  # also where the clock was set back

    def settle(self) -> None:
        """Forget the devices and workers that the broker does not hold, as soon as it has sent all that it holds."""
        if not self._missing or not self.is_settled:
            return
        self._former = {}
        for one in self._missing:
            if isinstance(one, tuple):
                self._remove_worker(*one)
            elif one in self.devices:
                self._former[one] = self.devices.pop(one)
        self._missing = set()

    def listen(self) -> None:
        """Note that there is a connection again."""
        self.lost, self.listening = None, self._clock()

    def refuse(self, topic: str, why: str) -> None:
        """Count and log an invalid message."""
        self.refused_count += 1
        self.refusal = printable(f"{topic[:LONGEST]}: {why[:LONGEST]}")
        if is_logged(self.refused_count):
            LOG.warning("refused a message: %s (%d so far)", self.refusal, self.refused_count)

    @property
    def refused_text(self) -> str:
        """A sentence about the messages that were refused, "" where none were."""
        noun = "messages were" if self.refused_count != 1 else "message was"
        return f"{self.refused_count:,} {noun} refused, the last on {self.refusal}" if self.refused_count else ""

    def _dispatch(self, topic: str, payload: bytes, retained: bool) -> None:
        if topic.startswith(presence.TOPICS):
            self._worker(topic[len(presence.TOPICS) :], payload)
            return
        name = device_names.device_of(topic)
        leaf = topic.rsplit("/", 1)[-1]
        if name is not None and leaf in EVENT_LEAVES and not retained and not _of_an_update(payload):
            self.events.append((name, leaf, payload[:LONGEST].decode(errors="replace")))
        if name is None or leaf not in LEAVES:
            return
        if not payload:
            self._remove(name, leaf)
            return
        parsed = state.parse_state(payload) if leaf == "state" else None
        if name not in self.devices and len(self.devices) >= MAX_DEVICES:
            raise InvalidMessage(f"more than {MAX_DEVICES:,} devices")
        self._missing.discard(name)
        device = self.devices.get(name) or self.devices.setdefault(name, self._former.pop(name, Device(name)))
        if parsed is None:
            device.take_status(payload, self._clock())
        else:
            device.take_state(parsed, self._clock(), retained)

    def _remove(self, name: str, leaf: str) -> None:
        device = self.devices.get(name)
        if device is None:
            return
        if leaf == "state":
            device.state = None
        else:
            device.online = None
        if device.state is None and device.online is None:
            del self.devices[name]

    def _worker(self, address: str, payload: bytes) -> None:
        model, name, *leaf = address.split("/")[:3] + [""]
        number = parse_integer(model, 65535)
        if number is None or not name:
            raise InvalidMessage("want the number of a model, 0 to 65535, and the name of a worker")
        served = self.workers.get(number, {})
        self._missing.discard((number, name))
        if leaf[0] == "state":  # the state of an unannounced worker is ignored
            parsed = telemetry.parse_state(payload)
            if name in served:
                served[name].take(parsed, self._clock())
        elif not payload:
            self._remove_worker(number, name)
        elif name not in served and sum(map(len, self.workers.values())) < MAX_WORKERS:
            self.workers.setdefault(number, served)[name] = Worker(number, name)

    def _remove_worker(self, model: int, name: str) -> None:
        served = self.workers.get(model, {})
        served.pop(name, None)
        if not served:
            self.workers.pop(model, None)


def _of_an_update(payload: bytes) -> bool:
    """Whether a payload is a chunk of an update package, or the answer to one: nobody reads thousands of them."""
    return payload.startswith(CHUNK) or b'"next"' in payload
