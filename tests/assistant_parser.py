"""Runs where Home Assistant is installed: parses a discovery message with its parser and renders its templates.

Standard input: {"topic", "message", "state", "status": [...], "commands": {component: value}}. Standard output: {"version",
"components": {component: {"platform", "value", "available", "command", ...}}}. Home Assistant before 2024.11 parsed no message
for a whole device; then each component is parsed as the message of its own that it stands for.
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
    """Return component -> (platform, its parsed configuration)."""
    if OWN_PARSER:
        logger = logging.getLogger(discovery.__name__)
        logger.addHandler(Refusing())
        message_parts = discovery._parse_device_payload(hass, message, topic.split("/")[2], None)
        parsed = {}
        for name, content in message_parts["components"].items():
            content = dict(content)
            platform = str(content.pop("platform"))
            discovery._merge_common_device_options(content, message_parts)
            parsed[name] = (platform, {**content, "device": message_parts["device"], "origin": message_parts["origin"]})
        return parsed
    device = json.loads(message)
    parsed = {}
    for name, content in device["cmps"].items():
        content = {abbreviations.ABBREVIATIONS.get(key, NEWER.get(key, key)): value for key, value in content.items()}
        content.update({name: device[key] for key, name in SHARED.items()})
        content["device"] = {abbreviations.DEVICE_ABBREVIATIONS.get(key, key): value for key, value in device["dev"].items()}
        content["origin"] = {abbreviations.ORIGIN_ABBREVIATIONS.get(key, key): value for key, value in device["o"].items()}
        parsed[name] = (content.pop("platform"), content)
    return parsed


class Refusing(logging.Handler):
    def emit(self, record):
        raise ValueError(record.getMessage())


async def main():
    request = json.load(sys.stdin)
    hass = core.HomeAssistant("/nowhere") if core.HomeAssistant.__init__.__code__.co_argcount > 1 else core.HomeAssistant()
    text = lambda template: template.template if isinstance(template, Template) else template  # noqa: E731
    report = {}
    for name, (platform, content) in components(hass, request["topic"], request["message"]).items():
        checked = importlib.import_module(f"homeassistant.components.mqtt.{platform}").DISCOVERY_SCHEMA(content)
        render = lambda key: Template(text(checked[key]), hass).async_render_with_possible_json_value(request["state"], None)  # noqa: B023, E731
        row = {"platform": platform, "value": render("value_template"), "unique_id": checked["unique_id"]}
        row["topic"] = checked["state_topic"]
        (available,) = checked.get("availability") or [
            {"topic": checked["availability_topic"], "value_template": checked["availability_template"]}
        ]
        template = Template(text(available["value_template"]), hass)
        row["available"] = [template.async_render_with_possible_json_value(status, None) for status in request["status"]]
        row["device_class"] = checked.get("device_class")
        if "command_topic" in checked:
            row["command_topic"] = checked["command_topic"]
            if "command_template" in checked:
                value = request["commands"][name]
                row["command"] = Template(text(checked["command_template"]), hass).async_render(
                    {"value": value}, parse_result=False
                )
            else:
                row["command"] = [checked["payload_on"], checked["payload_off"]]
        report[name] = row
    json.dump({"version": const.__version__, "components": report}, sys.stdout)


asyncio.run(main())
