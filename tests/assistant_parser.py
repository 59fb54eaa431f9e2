"""Runs where Home Assistant is installed: parses a discovery message with its parser and renders its templates.

Standard input: {"topic", "message", "state", "status": [...], "commands": {component: value}}. Standard output: {"version",
"components": {component: {"platform", "value", "available", "command", ...}}}. Of {"topic", "messages": [...]}, one after the
other: {"version", "shown": [{component: [platform, ...]}, ...]}, what its discovery shows after each. Home Assistant before
2024.11 parsed no message for a whole device; then each component is parsed as the message of its own that it stands for. Both
ways have run, with 2024.3.3 and 2025.1.4.
"""

import asyncio
import importlib
import json
import logging
import sys
from types import SimpleNamespace

from homeassistant import const, core
from homeassistant.components.mqtt import abbreviations, discovery
from homeassistant.components.mqtt.models import MqttData
from homeassistant.helpers.dispatcher import async_dispatcher_connect, async_dispatcher_send
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
        content = {**{name: device[key] for key, name in SHARED.items()}, **content}  # a component's own option counts
        content["device"] = {abbreviations.DEVICE_ABBREVIATIONS.get(key, key): value for key, value in device["dev"].items()}
        content["origin"] = {abbreviations.ORIGIN_ABBREVIATIONS.get(key, key): value for key, value in device["o"].items()}
        parsed[name] = (content.pop("platform"), content)
    return parsed


class Refusing(logging.Handler):
    def emit(self, record):
        raise ValueError(record.getMessage())


async def shown(hass, topic, messages):
    """Return what Home Assistant's discovery shows after each message; its entities are these few lines."""
    receive = []
    subscribe = lambda _hass, topic, take, *_arguments, **_options: receive.append(take) if "/device/" in topic else None  # noqa: E731

    async def subscribe_before(_hass, _topic, take, *_arguments):
        receive.append(take)

    hass.data["mqtt"] = data = MqttData(client=None, config=None)
    discovery.async_subscribe_internal = subscribe
    if not OWN_PARSER:
        discovery.mqtt.async_subscribe = subscribe_before
    discovery.async_get_mqtt = no_integrations
    entities = {}

    @core.callback  # otherwise it runs in a thread
    def add(payload):
        component, name = found = payload.discovery_data["discovery_hash"]
        entities.setdefault(name.split(" ")[-1], []).append(component)

        @core.callback
        def change(payload):
            if not payload:  # as its MqttDiscoveryUpdate does
                entities[name.split(" ")[-1]].remove(component)
                discovery.clear_discovery_hash(hass, found)
            done(found)

        async_dispatcher_connect(hass, updated(found), change)
        done(found)

    parts = (lambda found: found) if OWN_PARSER else (lambda found: (found,))
    updated = lambda found: discovery.MQTT_DISCOVERY_UPDATED.format(*parts(found))  # noqa: E731
    done = lambda found: async_dispatcher_send(hass, discovery.MQTT_DISCOVERY_DONE.format(*parts(found)), None)  # noqa: E731
    for platform in discovery.SUPPORTED_COMPONENTS:
        async_dispatcher_connect(hass, discovery.MQTT_DISCOVERY_NEW.format(platform, "mqtt"), add)
    if OWN_PARSER:
        data.platforms_loaded.update(discovery.SUPPORTED_COMPONENTS)
    await discovery.async_start(hass, "homeassistant", SimpleNamespace(entry_id="1"))
    report = []
    for message in messages:
        for place, payload in [(topic, message)] if OWN_PARSER else alone(topic, message):
            receive[0](SimpleNamespace(topic=place, payload=payload, timestamp=0.0))
        await hass.async_block_till_done()
        report.append({name: list(platforms) for name, platforms in entities.items() if platforms})
    return report


def alone(topic, message):
    """Yield (topic, payload) of the messages of single components that a device's message stands for."""
    for name, content in json.loads(message)["cmps"].items():
        payload = json.dumps(content) if len(content) > 1 else ""  # without its platform it would be empty: it is removed
        yield f"homeassistant/{content['p']}/{topic.split('/')[2]}/{name}/config", payload


async def no_integrations(_hass):
    return {}


async def main():
    request = json.load(sys.stdin)
    hass = core.HomeAssistant("/nowhere") if core.HomeAssistant.__init__.__code__.co_argcount > 1 else core.HomeAssistant()
    if "messages" in request:
        report = {"version": const.__version__, "shown": await shown(hass, request["topic"], request["messages"])}
        json.dump(report, sys.stdout)
        return
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
