"""`h2t2 home-assistant`: announces the devices of a broker to Home Assistant, as the fleet's state changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..common.errors import UserError
from .endpoint import Endpoint
from .home_assistant import ANY, BIRTH, NONE, class_names, components, discovery, figures, figures_beside, topic, without
from .monitoring.follower import Follower
from .monitoring.state import State

ONLINE = b"online"
LOOK_S = 0.5  # between two looks at the fleet
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rule:
    """Devices whose name matches `pattern` (with * and ?, as file names) show their decisions by `names`."""

    pattern: str
    names: list[str]

    @classmethod
    def parse(cls, text: str) -> Rule:
        """The rule DEVICE=CLASS or DEVICE="A, B, C". UserError for anything else."""
        pattern, equals, names = text.rpartition("=")
        if not equals or not pattern:
            raise UserError(f"{text!r}: want DEVICE=CLASS, such as kitchen=motion, or DEVICE='cat, dog, bird'")
        return cls(pattern, class_names(names))


class Announcer:
    """Keeps a discovery message retained for every device that has published a state, and deletes it with the device.

    It publishes all messages again when the connection or Home Assistant has come up. What it deletes is what the broker holds.
    """

    topics: tuple[str, ...] = ANY, BIRTH

    def __init__(self, rules: Sequence[Rule]) -> None:
        """
        Args:
            rules: the first that matches a device applies. A device without one shows the names of its classes, and if it
                has none, a plain binary sensor or the numbers of its classes.
        """
        self._rules = rules
        self._published: dict[str, str] = {}  # topic -> message
        self._held: dict[str, dict[str, str]] = {}  # topic of a message of ours on the broker -> its components()
        self._mismatched: set[str] = set()
        self._listening = 0.0

    def begin(self) -> None:
        """As Beside.begin()."""
        self._held = {}

    def take(self, topic: str, payload: bytes) -> None:
        """As Beside.take(): Home Assistant has started or stopped, or a discovery message is on the broker."""
        if topic != BIRTH:
            self._hold(topic, payload)
        elif payload == ONLINE:
            self._listening = 0.0  # look() then publishes everything again

    def _hold(self, topic: str, payload: bytes) -> None:
        described = components(payload)
        self._held.pop(topic, None)
        if described is not None:
            self._held[topic] = described

    def look(self, follower: Follower) -> None:
        """Publish what has changed since the last look."""
        with follower.fleet() as fleet:
            if fleet.lost is not None:
                return
            messages: dict[str, str] = {}
            for name, device in fleet.devices.items():
                if device.state and not fleet.is_missing(name):
                    messages |= self._messages(name, device.state)
            removed = self._held.keys() - map(topic, fleet.devices) if fleet.is_settled else set()
            if fleet.listening != self._listening:
                self._listening = fleet.listening
                self._published = {}
        for place in removed:
            if follower.retain(figures_beside(place), b"") and follower.retain(place, b""):
                self._held.pop(place, None)
        self._published = {place: message for place, message in self._published.items() if place in messages}
        for place, message in messages.items():
            if self._published.get(place) == message:
                continue
            described = components(message) or {}
            gone = {key: p for key, p in self._held.get(place, {}).items() if described.get(key) != p}
            if gone:  # first; the next look announces what takes their places
                message = without(message, gone)
            if follower.retain(place, message.encode()):
                self._published[place] = message
                self._hold(place, message.encode())

    def _messages(self, name: str, state: State) -> dict[str, str]:
        """What shall be retained of a device, topic -> message."""
        place = topic(name)
        messages = {place: discovery(name, self._names(name, state), state.model_dump(exclude_unset=True))}
        if state.local_cost is not None:
            messages[figures_beside(place)] = figures(state)
        return messages

    def _names(self, device: str, state: State) -> list[str]:
        default = [NONE] if state.classes == 2 else [str(k) for k in range(state.classes)]
        if state.class_names and len(state.class_names) == state.classes:
            default = state.class_names
        names = next((rule.names for rule in self._rules if fnmatchcase(device, rule.pattern)), default)
        if len(names) == len(default) or (state.classes == 2 and len(names) == 1):
            return names
        if device not in self._mismatched:
            self._mismatched.add(device)
            LOG.warning("%s: %d names for %d classes; it is shown without them", device, len(names), state.classes)
        return default


def announce(to: Endpoint, rules: Sequence[Rule], is_ended: Callable[[], bool]) -> None:
    """Announce the devices of a broker until is_ended(), or an exception, ends it. Failure where the broker refuses us."""
    announcer = Announcer(rules)
    follower = Follower(to, announcer).start(patient=True)
    try:
        while not is_ended():
            announcer.look(follower)
            time.sleep(LOOK_S)
    finally:
        follower.close()
