"""The entities that a discovery message makes in Home Assistant, with their states."""

import json
import re
from typing import Any

Entity = dict[str, str]


def entity_id(platform: str, device: str, name: str) -> str:
    """The identifier that Home Assistant gives an entity which no user has renamed, of ASCII names."""
    return f"{platform}.{re.sub('[^a-z0-9]+', '_', f'{device} {name}'.lower()).strip('_')}"


def entities(discovery: dict[str, Any], state: dict[str, Any]) -> list[Entity]:
    """The entities of a device.

    Args:
        discovery: the content of its discovery message.
        state: of the device.

    Returns:
        "name", "kind", "entity", "state" and "unit" of each, in the message's order.
    """
    return [
        {
            "name": component["name"],
            "kind": component["p"].replace("_", " ") + (f" ({component['dev_cla']})" if "dev_cla" in component else ""),
            "entity": entity_id(component["p"], discovery["dev"]["name"], component["name"]),
            "state": state_of(component, state),
            "unit": component.get("unit_of_meas", ""),
        }
        for component in discovery["cmps"].values()
    ]


def state_of(component: dict[str, Any], state: dict[str, Any]) -> str:
    """The state that Home Assistant shows for an entity."""
    from jinja2 import Environment

    value = Environment().from_string(component["val_tpl"]).render(value_json=state)
    if value == "None":
        return "unknown"
    if component["p"] == "update":  # on: a newer version is there
        versions = json.loads(value)
        return "off" if versions["installed_version"] == versions["latest_version"] else "on"
    return value.lower() if component["p"] in ("binary_sensor", "switch") else value
