"""`h2t2 home-assistant`: announces the devices of a broker to Home Assistant, by MQTT discovery.

One retained message a device describes its entities, in Home Assistant's abbreviations:
https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from h2t2 import __version__
from h2t2.core.numbers import ONE
from h2t2.link import wire
from h2t2.node.commands import COSTS, LONGEST_PAUSE
from h2t2.node.node import STANDING

from ..common.errors import UserError

if TYPE_CHECKING:
    from .endpoint import Endpoint
    from .monitoring.follower import Follower
    from .monitoring.state import State

PREFIX = "homeassistant"
BIRTH = PREFIX + "/status"  # Home Assistant publishes "online" here when it has started
ONLINE = b"online"
LOOK_S = 0.5  # between two looks at the fleet
NONE = "none"  # a decision without a device class
# of a binary sensor: https://www.home-assistant.io/integrations/binary_sensor/#device-class
DEVICE_CLASSES = (
    "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door", "garage_door", "gas", "heat", "light",
    "lock", "moisture", "motion", "moving", "occupancy", "opening", "plug", "power", "presence", "problem", "running", "safety",
    "smoke", "sound", "tamper", "update", "vibration", "window",
)  # fmt: skip
NAME_LENGTH = 40  # characters of a class's name
PLAIN_KEY = re.compile(r"[\w .+-]{1,64}")  # the key of a gate's stream that is shown: no character of a template
PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")

SHARE = "{{ (100 * value_json.offloads / value_json.samples) | round(1) if value_json.samples else 0 }}"
# seen.costs.of_counters as a template: offloads at their cost, and the estimated cost of local decisions in each bin
COST = (
    "{% set v = value_json %}{% set n = v.answered | sum %}{% set m = (v.local_cost | sum) / [n, 1] | max %}"
    f"{{% set t = namespace(c=v.paid / {ONE}) %}}"
    "{% for s in v.scores %}{% set a = v.answered[loop.index0] %}"
    "{% set t.c = t.c + (s - a) * (v.local_cost[loop.index0] + m / 4) / (a + 0.25) / 1000 %}{% endfor %}"
    "{{ (t.c / v.samples) | round(4) if n and v.samples else None }}"
)

LOG = logging.getLogger(__name__)


def identity(device: str) -> str:
    """A device's identifier in the characters that Home Assistant accepts. Different names have different identifiers."""
    return "h2t2-" + "".join(chr(byte) if byte in PLAIN else f"_{byte:02x}" for byte in device.encode())


def topic(device: str) -> str:
    """The topic of a device's discovery message; an empty message there removes the device from Home Assistant."""
    return f"{PREFIX}/device/{identity(device)}/config"


def discovery(device: str, names: Sequence[str], state: dict[str, Any]) -> str:
    """A device's discovery message.

    Args:
        device: its name in the topics.
        names: the device class of a binary sensor, or "none"; or the names of three classes or more.
        state: a state of the device. An entity whose value it does not hold is left out.

    Returns:
        JSON text.
    """
    entities = {"decision": _decision(names, "Decision", "value_json.last[1]", "value_json.last")}
    for key in state.get("streams") or ():
        if PLAIN_KEY.fullmatch(key):  # a message chose the key: it must not be a template
            entry = identity(key).replace("h2t2-", "decision-", 1)
            choice, keys = f"value_json.streams['{key}'][0]", "value_json.streams"
            entities[entry] = _decision(names, key, choice, f"'{key}' in {keys} and {choice} >= 0")
    entities["share"] = _sensor("Offload share", SHARE, unit_of_meas="%", stat_cla="measurement", ic="mdi:cloud-upload")
    if "local_cost" in state:
        entities["cost"] = _sensor("Cost a sample", COST, stat_cla="measurement", ic="mdi:scale-balance")
    if "link" in state:
        entities["link"] = _sensor("Link", "{{ value_json.link }}", dev_cla="enum", ops=list(STANDING), ent_cat="diagnostic")
    command = wire.topic(device, "command")
    entities.update({name: _number(name, command) for name in COSTS if name in state})
    if "paused" in state:
        entities["pause"] = {
            "p": "switch", "cmd_t": command, "name": "Pause", "ic": "mdi:pause", "ent_cat": "config",
            "val_tpl": "{{ 'ON' if value_json.paused else 'OFF' }}",
            "pl_on": f'{{"pause": {LONGEST_PAUSE}}}', "pl_off": '{"pause": 0}', "stat_on": "ON", "stat_off": "OFF",
        }  # fmt: skip
    if "update" in state:  # in brackets: value_json.update would be the method of Python's dict
        entities["model"] = _version("Local model", "['update'].counter", ", 'release_summary': value_json['update'].said")
    elif "model" in state:
        entities["model"] = _version("Model", ".model")
    own = identity(device)
    for name, entity in entities.items():
        entity["uniq_id"] = f"{own}-{name}"
    runtime = state.get("runtime") or __version__
    return json.dumps(
        {
            "dev": {"ids": [own], "name": device, "mf": "H2T2 Edge", "mdl": state.get("policy") or "node", "sw": runtime},
            "o": {"name": "h2t2-edge", "sw": __version__},
            "stat_t": wire.topic(device, "state"),
            "avty_t": wire.topic(device, "status"),
            "avty_tpl": "{{ 'online' if value[:6] == 'online' else 'offline' }}",
            "qos": 1,
            "cmps": entities,
        }
    )


def _decision(names: Sequence[str], name: str, choice: str, known: str) -> dict[str, Any]:
    """The entity of a decision. choice, known: Jinja expressions of the class, and of whether there is one."""
    if len(names) > 1:
        value = f"{{{{ {json.dumps(list(names))}[{choice}] if {known} else None }}}}"
        return _sensor(name, value, dev_cla="enum", ops=list(names))
    value = f"{{{{ ('ON' if {choice} == 1 else 'OFF') if {known} else None }}}}"
    entity = {"p": "binary_sensor", "name": name, "val_tpl": value}
    return entity if names[0] == NONE else {**entity, "dev_cla": names[0]}


def _sensor(name: str, value: str, **options: Any) -> dict[str, Any]:
    return {**options, "p": "sensor", "name": name, "val_tpl": value}


def _version(name: str, entry: str, summary: str = "") -> dict[str, Any]:
    """A version that Home Assistant shows and cannot change: installed and latest version are the same."""
    value = f"value_json{entry} | string"
    value = f"{{{{ {{'installed_version': {value}, 'latest_version': {value}{summary}}} | tojson }}}}"
    return {"p": "update", "name": name, "val_tpl": value, "ent_cat": "diagnostic"}


def _number(cost: str, command: str) -> dict[str, Any]:
    """A cost in 0..1, where the node has Q15."""
    return {
        "p": "number", "cmd_t": command, "name": cost, "min": 0, "max": 1, "step": "0.01", "mode": "box", "ent_cat": "config",
        "val_tpl": f"{{{{ (value_json.{cost} / {ONE}) | round(4) }}}}",
        "cmd_tpl": f'{{"set": {{"{cost}": {{{{ (value * {ONE}) | round | int }}}}}}}}',
    }  # fmt: skip


def class_names(text: str) -> list[str]:
    """The names that discovery() takes, of "motion", "none" or "cat, dog, bird".

    Raises:
        UserError: an unknown device class, or names that cannot be shown.
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) == 1 and names[0] not in (NONE, *DEVICE_CLASSES):
        raise UserError(f"{names[0]!r}: want {NONE} or a device class of a binary sensor: {', '.join(DEVICE_CLASSES)}")
    if len(names) == 2:
        raise UserError(f"{text!r}: of two classes give the device class of class 1, such as motion")
    if len({*names}) != len(names) or not all(0 < len(name) <= NAME_LENGTH and name.isprintable() for name in names):
        raise UserError(f"{text!r}: want different names of 1 to {NAME_LENGTH} characters")
    return names


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
        self._published: dict[str, str] = {}
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
            states = {name: device.state for name, device in fleet.devices.items() if device.state}
            removed = self._published.keys() - fleet.devices.keys()
            if fleet.listening != self._listening:
                self._listening = fleet.listening
                self._published = dict.fromkeys(removed, "")
        for name in removed:
            if follower.retain(topic(name), b""):
                del self._published[name]
        for name, state in states.items():
            message = discovery(name, self._names(name, state), state.model_dump(exclude_unset=True))
            if self._published.get(name) != message and follower.retain(topic(name), message.encode()):
                self._published[name] = message

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
    """Announce the devices of a broker until an exception ends it. Failure where the broker cannot be reached."""
    from .monitoring.follower import Follower

    announcer = Announcer(rules)
    follower = Follower(to, {BIRTH: announcer.take_birth}).start()
    try:
        while True:
            announcer.look(follower)
            time.sleep(LOOK_S)
    finally:
        follower.close()
