# From a node's configuration to the running node: the one place where its parts are put together, on a board and on a Pi. The
# configuration is a dict of the core's integers; a board's stands in config.json, which `h2t2 flash` writes from a commented
# config.toml that also says what each entry means.
import json
import os

from ..core import policies
from ..ldl.open import open_ldl
from ..link.cost import LinkCost
from .node import Node
from .recorded import Recorded
from .service import SOURCES, Service, telemetry
from .snapshot import file_store

WANTED = ("policy", "arguments", "ldl", "event", "remote_shape", "model_id", "window", "deadline_ms")


def show(tag, k: int, decision: int, source: int) -> None:
    """What a board does with a decision unless it is told otherwise: one JSON line."""
    print('{"n": %d, "bin": %d, "decision": %d, "source": "%s"}' % (tag, k, decision, SOURCES[source]))


def size_of(shape) -> int:
    """Numbers in a tensor of this shape."""
    size = 1
    for n in shape:
        size *= n
    return size


def service(config, link, act=show, sensor=None, watchdog=lambda: None, boot=None, log=print) -> Service:
    """The service of a configuration (dict) on an open or opening link.

    act(tag, k, decision, source): called once a sample. sensor: as Service's, None for the recorded samples that the
    configuration names. boot: this start's number (a random one). ValueError, naming it, for an entry that is missing or does
    not fit the model.
    """
    for name in WANTED:
        if name not in config:
            raise ValueError("config.json: no entry %s" % name)
    arguments = config["arguments"]
    policy = policies.kind(config["policy"])(**arguments)
    ldl = open_ldl(config["ldl"], config["event"], arguments["bits"], config.get("resolver", "reference"))
    shape = tuple(config["remote_shape"])
    if sensor is None:
        sensor = Recorded(config["records"], ldl.input_size, size_of(shape))
    node = Node(
        policy,
        ldl,
        link,
        act,
        config["model_id"],
        boot_number() if boot is None else boot,
        config["window"],
        config["deadline_ms"],
        config.get("when_down", "ask"),
        LinkCost(*config["cost"]) if config.get("cost") else None,
    )
    store = file_store(config["snapshot"]) if config.get("snapshot") else None
    every = config.get("snapshot_every", 500), config.get("telemetry_every", 100)
    return Service(node, sensor, shape, store, every[0], every[1], watchdog, log)


def boot_number() -> int:
    """A number for this start, 0..2^30 - 1, that is never the last one's but by a chance of 1 in 10^9."""
    return int.from_bytes(os.urandom(4), "little") >> 2


def summary(running: Service, link) -> dict:
    """What a node has counted, at its end: telemetry, and what its service and its link know."""
    made = telemetry(running.node)
    for owner, names in (
        (running, ("errors", "restored", "saves", "unsaved", "commands", "commands_refused")),
        (link, ("connections", "oversize", "dropped", "refused")),
    ):
        for name in names:
            made[name] = getattr(owner, name)
    return made


def mqtt_link(config):
    """The MQTT link of a config; joins the wireless network first where it names one. ValueError for a bad certificate."""
    if config.get("wifi_name"):
        from ..link.wifi import join

        join(config["wifi_name"], config["wifi_password"])
    tls = None
    if config.get("ca"):
        from ..link.tls import context

        tls = context(config["ca"], config.get("cert"), config.get("key"))
    from ..link.mqtt import MqttLink

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


def main(path: str = "config.json") -> None:
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
    print(json.dumps({"summary": summary(running, link)}))
