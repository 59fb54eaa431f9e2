"""The messages of MQTT discovery, which describe a device to Home Assistant.

One retained message a device describes its entities, in Home Assistant's abbreviations:
https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery
"""

import json
from collections.abc import Sequence
from typing import Any

from h2t2 import __version__
from h2t2.core.numbers import ONE
from h2t2.link import wire
from h2t2.node.commands import COSTS, LONGEST_PAUSE
from h2t2.node.node import STANDING

from ..common.errors import UserError
from .monitoring import words
from .monitoring.savings import CHOICES, DIGITS, costs_of, saved_so_far
from .monitoring.state import State

PREFIX = "homeassistant"
ANY = PREFIX + "/device/+/config"  # the topics of all discovery messages for whole devices
ORIGIN = "h2t2-edge"
PLATFORMS = "binary_sensor", "sensor", "number", "switch", "update"
BIRTH = PREFIX + "/status"  # Home Assistant publishes "online" here when it has started
NONE = "none"  # a decision without a device class
# of a binary sensor: https://www.home-assistant.io/integrations/binary_sensor/#device-class
DEVICE_CLASSES = (
    "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door", "garage_door", "gas", "heat", "light",
    "lock", "moisture", "motion", "moving", "occupancy", "opening", "plug", "power", "presence", "problem", "running", "safety",
    "smoke", "sound", "tamper", "update", "vibration", "window",
)  # fmt: skip
NAME_LENGTH = 40  # characters of a class's name
PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")

SHARE = "{{ (100 * value_json.offloads / value_json.samples) | round(1) if value_json.samples else 0 }}"


def identity(device: str) -> str:
    """A device's identifier in the characters that Home Assistant accepts. Different names have different identifiers."""
    return "h2t2-" + "".join(chr(byte) if byte in PLAIN else f"_{byte:02x}" for byte in device.encode())


def topic(device: str) -> str:
    """The topic of a device's discovery message; an empty message there removes the device from Home Assistant."""
    return f"{PREFIX}/device/{identity(device)}/config"


def figures_beside(place: str) -> str:
    """The topic of what we compute of a device's state, for the sensors of its costs. place: that of its discovery message."""
    return place.removesuffix("config") + "figures"


def figures_topic(device: str) -> str:
    """The topic of a device's figures."""
    return figures_beside(topic(device))


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
        entry = identity(key).replace("h2t2-", "decision-", 1)
        choice, keys = f"value_json.streams[{_literal(key)}][0]", "value_json.streams"
        entities[entry] = _decision(names, key, choice, f"{_literal(key)} in {keys} and {choice} >= 0")
    entities["share"] = _sensor("Offload share", SHARE, unit_of_meas="%", stat_cla="measurement", ic="mdi:cloud-upload")
    if "local_cost" in state:
        entities.update(_figures(figures_topic(device)))
    if "link" in state:
        entities["link"] = _sensor("Link", "{{ value_json.link }}", dev_cla="enum", ops=list(STANDING), ent_cat="diagnostic")
    command = wire.topic(device, "command")
    prices = words.prices_by_event(state.get("class_names"))
    entities.update({key: _number(key, prices[key], command) for key in COSTS if key in state})
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
            "o": {"name": ORIGIN, "sw": __version__},
            "stat_t": wire.topic(device, "state"),
            "avty_t": wire.topic(device, "status"),
            "avty_tpl": "{{ 'online' if value[:6] == 'online' else 'offline' }}",
            "qos": 1,
            "cmps": entities,
        }
    )


def components(message: bytes | str) -> dict[str, str] | None:
    """The components that a discovery message describes, with their platforms; None where it is not one of ours."""
    try:
        content = json.loads(message)
        if content["o"]["name"] != ORIGIN:
            return None
        described = {name: one["p"] for name, one in content["cmps"].items() if len(one) > 1}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # anybody may publish there
        return None
    return {name: platform for name, platform in described.items() if platform in PLATFORMS}


def without(message: str, removed: dict[str, str]) -> str:
    """A discovery message that removes components, by their platforms, and describes the others.

    Home Assistant removes a component whose platform alone is said, and no component that is left out.
    """
    content = json.loads(message)
    content["cmps"] = {name: {"p": platform} for name, platform in removed.items()} | {
        name: one for name, one in content["cmps"].items() if name not in removed
    }
    return json.dumps(content)


def _decision(names: Sequence[str], name: str, choice: str, known: str) -> dict[str, Any]:
    """The entity of a decision. choice, known: Jinja expressions of the class, and of whether there is one."""
    if len(names) > 1:
        value = f"{{{{ [{', '.join(map(_literal, names))}][{choice}] if {known} else None }}}}"
        return _sensor(name, value, dev_cla="enum", ops=list(names))
    value = f"{{{{ ('ON' if {choice} == 1 else 'OFF') if {known} else None }}}}"
    entity = {"p": "binary_sensor", "name": name, "val_tpl": value}
    return entity if names[0] == NONE else {**entity, "dev_cla": names[0]}


def _literal(text: str) -> str:
    """A text as a Jinja literal. A message may have chosen it: of all but letters and digits it holds the codes alone."""
    plain = (c if c.isascii() and c.isalnum() else f"\\U{ord(c):08x}" for c in text)
    return f"'{''.join(plain)}'"


def _sensor(name: str, value: str, **options: Any) -> dict[str, Any]:
    return {**options, "p": "sensor", "name": name, "val_tpl": value}


def figures(state: State) -> str:
    """What we compute of a state for the sensors of figures_topic(), JSON text."""
    costs = costs_of(state)
    return json.dumps({"cost": round(costs.own, DIGITS) if costs else None, "saved": saved_so_far(state)})


def _figures(place: str) -> dict[str, dict[str, Any]]:
    """The sensors of what we compute: the cost of a sample, and what was saved, in the user's costs and in per cent."""
    options = {"stat_t": place, "stat_cla": "measurement", "ic": "mdi:scale-balance"}
    sensors = {
        "cost": _sensor("Cost a sample", "{{ value_json.cost | round(4) if value_json.cost is number else None }}", **options)
    }
    for choice in CHOICES:
        saving, name = f"value_json.saved.{choice}", f"Saved against {choice} asking"
        known = f"if value_json.saved and {saving}"
        sensors[f"saved-{choice}"] = _sensor(name, f"{{{{ {saving}.amount | round(3) {known} else None }}}}", **options)
        share = f"{{{{ (100 * {saving}.share) | round(1) {known} and {saving}.share is not none else None }}}}"
        sensors[f"saved-{choice}-share"] = _sensor(f"{name}, per cent", share, unit_of_meas="%", **options)
    return sensors


def _version(name: str, entry: str, summary: str = "") -> dict[str, Any]:
    """A version that Home Assistant shows and cannot change: installed and latest version are the same."""
    value = f"value_json{entry} | string"
    value = f"{{{{ {{'installed_version': {value}, 'latest_version': {value}{summary}}} | tojson }}}}"
    return {"p": "update", "name": name, "val_tpl": value, "ent_cat": "diagnostic"}


def _number(cost: str, name: str, command: str) -> dict[str, Any]:
    """A cost in 0..1, where the node has Q15."""
    return {
        "p": "number", "cmd_t": command, "name": name, "min": 0, "max": 1, "step": "0.01", "mode": "box", "ent_cat": "config",
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
