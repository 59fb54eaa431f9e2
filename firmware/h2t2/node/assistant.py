# Home Assistant's MQTT discovery: one retained message that says what a node shows there, and what it may be told. Its keys are
# Home Assistant's abbreviations, as a board must hold the message whole:
# https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery
import json

from .. import __version__
from ..core.numbers import ONE
from ..link import wire
from .commands import COSTS, LONGEST_PAUSE
from .node import STANDING

PREFIX = "homeassistant"
BIRTH = PREFIX + "/status"  # where Home Assistant says that it has come up
UP = b"online"
EACH_S = 1  # between two states that a changed decision is a reason for
NONE = "none"  # a decision without a device class

SHARE = "{{ (100 * value_json.offloads / value_json.samples) | round(1) if value_json.samples else 0 }}"
# what h2t2 fleet reckons as well: what offloads cost, and local decisions where none was answered, bin by bin
COST = (
    "{%% set v = value_json %%}{%% set n = v.answered | sum %%}{%% set m = (v.local_cost | sum) / [n, 1] | max %%}"
    "{%% set t = namespace(c=v.paid / %d) %%}{%% for s in v.scores %%}{%% set a = v.answered[loop.index0] %%}"
    "{%% set t.c = t.c + (s - a) * (v.local_cost[loop.index0] + m / 4) / (a + 0.25) / 1000 %%}{%% endfor %%}"
    "{{ (t.c / v.samples) | round(4) if n and v.samples else None }}" % ONE
)


def identity(device: str) -> str:
    """Of a device of any name, in the letters that Home Assistant takes: no two names have the same."""
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
    return "h2t2-" + "".join([chr(c) if chr(c) in plain else "_%02x" % c for c in device.encode()])


def topic(device: str) -> str:
    """Where a device's discovery message is; an empty one there takes the device back."""
    return "%s/device/%s/config" % (PREFIX, identity(device))


def discovery(device: str, names, state) -> str:
    """A device's message, JSON.

    names: [a binary sensor's device class, or "none"], or the names of three classes or more. state: a state of the device:
    what is not in it is not shown.
    """
    parts = {"decision": _decision(names)}
    parts["share"] = _sensor("Offload share", SHARE, unit_of_meas="%", stat_cla="measurement", ic="mdi:cloud-upload")
    if "local_cost" in state:
        parts["cost"] = _sensor("Cost a sample", COST, stat_cla="measurement", ic="mdi:scale-balance")
    if "link" in state:
        parts["link"] = _sensor("Link", "{{ value_json.link }}", dev_cla="enum", ops=list(STANDING), ent_cat="diagnostic")
    command = wire.topic(device, "command")
    for name in COSTS:
        if name in state:
            parts[name] = _number(name, command)
    if "paused" in state:
        parts["pause"] = {
            "p": "switch", "cmd_t": command, "name": "Pause", "ic": "mdi:pause", "ent_cat": "config",
            "val_tpl": "{{ 'ON' if value_json.paused else 'OFF' }}",
            "pl_on": '{"pause": %d}' % LONGEST_PAUSE, "pl_off": '{"pause": 0}', "stat_on": "ON", "stat_off": "OFF",
        }  # fmt: skip
    if "update" in state:  # in brackets: value_json.update would be the method of Python's dict
        parts["model"] = _version("Local model", "['update'].counter", ", 'release_summary': value_json['update'].said")
    elif "model" in state:
        parts["model"] = _version("Model", ".model")
    own = identity(device)
    for name in parts:
        parts[name]["uniq_id"] = "%s-%s" % (own, name)
    return json.dumps(
        {
            "dev": {"ids": [own], "name": device, "mf": "H2T2 Edge", "mdl": state.get("policy", "node"), "sw": __version__},
            "o": {"name": "h2t2-edge", "sw": __version__},
            "stat_t": wire.topic(device, "state"),
            "avty_t": wire.topic(device, "status"),
            "avty_tpl": "{{ 'online' if value[:6] == 'online' else 'offline' }}",
            "qos": 1,
            "cmps": parts,
        }
    )


def _decision(names):
    if len(names) > 1:
        listed = json.dumps(names)
        value = "{{ %s[value_json.last[1]] if value_json.last else None }}" % listed
        return _sensor("Decision", value, dev_cla="enum", ops=names)
    value = "{{ ('ON' if value_json.last[1] == 1 else 'OFF') if value_json.last else None }}"
    made = {"p": "binary_sensor", "name": "Decision", "val_tpl": value}
    if names[0] != NONE:
        made["dev_cla"] = names[0]
    return made


def _sensor(name, value, **more):
    more.update(p="sensor", name=name, val_tpl=value)
    return more


def _version(name, entry, more=""):
    """A version that Home Assistant shows and cannot change: no newer one is known there."""
    value = "value_json%s | string" % entry
    value = "{{ {'installed_version': %s, 'latest_version': %s%s} | tojson }}" % (value, value, more)
    return {"p": "update", "name": name, "val_tpl": value, "ent_cat": "diagnostic"}


def _number(cost, command):
    """A cost in 0..1, where the node has Q15."""
    return {
        "p": "number", "cmd_t": command, "name": cost, "min": 0, "max": 1, "step": "0.01", "mode": "box", "ent_cat": "config",
        "val_tpl": "{{ (value_json.%s / %d) | round(4) }}" % (cost, ONE),
        "cmd_tpl": '{"set": {"%s": {{ (value * %d) | round | int }}}}' % (cost, ONE),
    }  # fmt: skip


class Assistant:
    """Tells Home Assistant of a node whenever the link, or Home Assistant, has come up.

    link: made with also=BIRTH. names: as discovery's. told: it was, before a sleep that ended just now.
    """

    def __init__(self, link, device: str, names, told: bool = False):
        self.link = link
        self.device = device
        self.names = names
        self.connections = int(told)  # the link's, when it was told last
        self.decision = -1

    def look(self, state) -> None:
        """See to it. state(): the node's, a dict."""
        link = self.link
        if link.also_heard() == UP:
            self.connections = 0
        if link.is_connected() and link.connections != self.connections:
            if link.retain(topic(self.device), discovery(self.device, self.names, state())):
                self.connections = link.connections

    def news(self, last, since: int) -> bool:
        """Whether the last decision (Node.last) is another than the one told, since so many seconds."""
        if last is None or last[1] == self.decision or since < EACH_S:
            return False
        self.decision = last[1]
        return True
