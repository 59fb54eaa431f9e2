# From a board's config.json to a running node. The file is written by `h2t2 flash` from a commented config.toml, which also
# says what each entry means; all numbers in it are the core's integers.
import json
import os

from .calibrating import Calibrating
from .ldl_open import open_ldl
from .link_cost import LinkCost
from .link_mqtt import MqttLink
from .node import Node
from .policy import H2T2
from .recorded import Recorded
from .service import SOURCES, Service, telemetry
from .snapshot import file_store


def show(tag, k, decision, source):
    """What a board does with a decision unless it is told otherwise: one JSON line."""
    print('{"n": %d, "bin": %d, "decision": %d, "source": "%s"}' % (tag, k, decision, SOURCES[source]))


def size_of(shape):
    """Numbers in a tensor of this shape."""
    size = 1
    for n in shape:
        size *= n
    return size


def service(config, link, act=show, sensor=None, watchdog=lambda: None, boot=None):
    """The service of a config (dict). sensor: as Service's, None for the recorded samples the config names.

    ValueError, naming it, for an entry that is missing or does not fit the model.
    """
    for name in ("policy", "arguments", "ldl", "event", "remote_shape", "model_id", "window", "deadline_ms"):
        if name not in config:
            raise ValueError("config.json: no entry %s" % name)
    arguments = config["arguments"]
    policy = (Calibrating if config["policy"] == "calibrating" else H2T2)(**arguments)
    ldl = open_ldl(config["ldl"], config["event"], arguments["bits"])
    shape = tuple(config["remote_shape"])
    if sensor is None:
        sensor = Recorded(config["records"], ldl.input_size, size_of(shape))
    if boot is None:
        boot = int.from_bytes(os.urandom(4), "little") >> 2
    cost = LinkCost(*config["cost"]) if config.get("cost") else None
    when_down = config.get("when_down", "ask")
    node = Node(policy, ldl, link, act, config["model_id"], boot, config["window"], config["deadline_ms"], when_down, cost)
    store = file_store(config["snapshot"]) if config.get("snapshot") else None
    every = config.get("snapshot_every", 500), config.get("telemetry_every", 100)
    return Service(node, sensor, shape, store, every[0], every[1], watchdog)


def mqtt_link(config):
    """The MQTT link of a config; joins the wireless network first where it names one. ValueError for a bad certificate."""
    if config.get("wifi_name"):
        from .wifi import join

        join(config["wifi_name"], config["wifi_password"])
    tls = None
    if config.get("ca"):
        from .secure import context

        tls = context(config["ca"], config.get("cert"), config.get("key"))
    return MqttLink(
        config["broker"],
        config["port"],
        config["device"],
        config.get("user"),
        config.get("password"),
        config.get("keep_alive", 30),
        seed=int.from_bytes(os.urandom(4), "little") >> 4,
        tls=tls,
    )


def main(path="config.json"):
    """Run the node of a config file to the end of its samples; prints a JSON line a decision and a summary."""
    with open(path) as file:
        config = json.load(file)
    link = mqtt_link(config)
    running = service(config, link)
    try:
        link.open(config["deadline_ms"])
    except OSError as error:
        print("h2t2: %s; deciding locally until it answers" % error)
    print("h2t2: ready, device %s" % config["device"])
    running.run()
    link.close()
    summary = telemetry(running.node)
    summary["errors"] = running.errors
    summary["unsaved"] = running.unsaved
    summary["restored"] = running.restored
    summary["connections"] = link.connections
    print(json.dumps({"summary": summary}))
