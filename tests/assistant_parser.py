"""Runs where Home Assistant is installed: what its own parser and templates make of a discovery message.

Standard input: {"topic", "message", "state", "status": [...], "commands": {component: value}}. Standard output: {"version",
"components": {component: {"platform", "value", "available", "command", ...}}}. Before 2024.11 it knew no message for a whole
device: then each component is parsed as the message of its own that it stands for.
"""

import asyncio
import importlib
import json
import logging
import sys

from homeassistant import const, core
from homeassistant.components.mqtt import abbreviations, discovery
from homeassistant.helpers.template import Template

# https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
NEWER = {"cmps": "components", "p": "platform"}
OWN_PARSER = hasattr(discovery, "_parse_device_payload")
SHARED = {"stat_t": "state_topic", "avty_t": "availability_topic", "avty_tpl": "availability_template", "qos": "qos"}


def components(hass, topic, message):
    """Component -> (platform, its configuration), as the parser has it."""
    if OWN_PARSER:
        said = logging.getLogger(discovery.__name__)
        said.addHandler(Refusing())
        parsed = discovery._parse_device_payload(hass, message, topic.split("/")[2], None)
        made = {}
        for name, content in parsed["components"].items():
            content = dict(content)
            platform = str(content.pop("platform"))
            discovery._merge_common_device_options(content, parsed)
            made[name] = (platform, {**content, "device": parsed["device"], "origin": parsed["origin"]})
        return made
    device = json.loads(message)
    made = {}
    for name, content in device["cmps"].items():
        content = {abbreviations.ABBREVIATIONS.get(key, NEWER.get(key, key)): value for key, value in content.items()}
        content.update({name: device[key] for key, name in SHARED.items()})
        content["device"] = {abbreviations.DEVICE_ABBREVIATIONS.get(key, key): value for key, value in device["dev"].items()}
        content["origin"] = {abbreviations.ORIGIN_ABBREVIATIONS.get(key, key): value for key, value in device["o"].items()}
        made[name] = (content.pop("platform"), content)
    return made


class Refusing(logging.Handler):
    def emit(self, record):
        raise ValueError(record.getMessage())


async def main():
    given = json.load(sys.stdin)
    hass = core.HomeAssistant("/nowhere") if core.HomeAssistant.__init__.__code__.co_argcount > 1 else core.HomeAssistant()
    text = lambda template: template.template if isinstance(template, Template) else template  # noqa: E731
    made = {}
    for name, (platform, content) in components(hass, given["topic"], given["message"]).items():
        checked = importlib.import_module(f"homeassistant.components.mqtt.{platform}").DISCOVERY_SCHEMA(content)
        render = lambda key: Template(text(checked[key]), hass).async_render_with_possible_json_value(given["state"], None)  # noqa: B023, E731
        told = {"platform": platform, "value": render("value_template"), "unique_id": checked["unique_id"]}
        told["topic"] = checked["state_topic"]
        (available,) = checked.get("availability") or [
            {"topic": checked["availability_topic"], "value_template": checked["availability_template"]}
        ]
        template = Template(text(available["value_template"]), hass)
        told["available"] = [template.async_render_with_possible_json_value(status, None) for status in given["status"]]
        told["device_class"] = checked.get("device_class")
        if "command_topic" in checked:
            told["command_topic"] = checked["command_topic"]
            if "command_template" in checked:
                value = given["commands"][name]
                told["command"] = Template(text(checked["command_template"]), hass).async_render(
                    {"value": value}, parse_result=False
                )
            else:
                told["command"] = [checked["payload_on"], checked["payload_off"]]
        made[name] = told
    json.dump({"version": const.__version__, "components": made}, sys.stdout)


asyncio.run(main())
