"""`h2t2 home-assistant`: announces the devices of a broker to Home Assistant, as the fleet's state changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..common.errors import UserError
from .endpoint import Endpoint
from .home_assistant import BIRTH, NONE, class_names, discovery, figures, figures_topic, topic
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

    It publishes all messages again when the connection or Home Assistant has come up.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        """
        Args:
            rules: the first that matches a device applies. A device without one shows the names of its classes, and if it
                has none, a plain binary sensor or the numbers of its classes.
        """
        self._rules = rules
        self._published: dict[str, str] = {}  # topic -> message
        self._mismatched: set[str] = set()
        self._listening = 0.0

    def take_birth(self, payload: bytes) -> None:
        """Take a message on BIRTH: Home Assistant has started or stopped. The follower's thread calls it."""
        if payload == ONLINE:
            self._listening = 0.0  # look() then publishes everything again

    def look(self, follower: Follower) -> None:
        """Publish what has changed since the last look."""
        with follower.fleet() as fleet:
            if fleet.lost is not None:
                return
            messages: dict[str, str] = {}
            for name, device in fleet.devices.items():
                messages |= self._messages(name, device.state) if device.state else {}
            places = {place for name in fleet.devices for place in (topic(name), figures_topic(name))}
            removed = self._published.keys() - places
            if fleet.listening != self._listening:
                self._listening = fleet.listening
                self._published = dict.fromkeys(removed, "")
        for place in removed:
            if follower.retain(place, b""):
                del self._published[place]
        for place, message in messages.items():
            if self._published.get(place) != message and follower.retain(place, message.encode()):
                self._published[place] = message

    def _messages(self, name: str, state: State) -> dict[str, str]:
        """What shall be retained of a device, topic -> message."""
        messages = {topic(name): discovery(name, self._names(name, state), state.model_dump(exclude_unset=True))}
        if state.local_cost is not None:
            messages[figures_topic(name)] = figures(state)
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


def announce(to: Endpoint, rules: Sequence[Rule]) -> None:
    """Announce the devices of a broker until an exception ends it. Failure where the broker refuses us."""
    announcer = Announcer(rules)
    follower = Follower(to, {BIRTH: announcer.take_birth}).start(patient=True)
    try:
        while True:
            announcer.look(follower)
            time.sleep(LOOK_S)
    finally:
        follower.close()
