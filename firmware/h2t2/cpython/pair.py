# A node of a pair's folder, as `h2t2 pair` makes it, on a Pi or a desktop. Boards get the same entries from `h2t2 flash`.
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .. import units
from ..core.defaults import BITS
from ..ldl.open import open_ldl
from ..link import wire
from ..node import start
from ..node.service import Service
from .paho import PahoLink
from .threaded_sensor import ThreadedSensor

LATE_LABELS = 256  # labels that may be outstanding


def configuration(folder: str | os.PathLike[str], beta: float | None = None, bits: int = BITS) -> dict[str, Any]:
    """Return the entries of a configuration that a pair describes.

    Args:
        folder: Of the pair.
        beta: Cost of an offload, 0..1; None: the pair's.
        bits: The score is cut into 2^bits bins.

    Raises:
        ValueError: The folder holds no pair.
    """
    path = Path(folder)
    try:
        pair = json.loads((path / "pair.json").read_text())
        remote, events, costs = pair["remote"], pair.get("event_index", {}), pair.get("costs")
        policy: dict[str, Any] = {"bits": bits, "beta": pair["beta"] if beta is None else beta, "window": LATE_LABELS}
        event = events.get("ldl", 0)
        size = 1
        for n in remote["shape"]:
            size *= n
        scaling = {"rdl": (size, remote["scale"], remote["zero_point"])}
        config = {
            "policy": "adaptive",
            "arguments": units.policy(**policy, **({"costs": costs} if costs else {})),
            "ldl": str(path / "ldl.tflite"),
            "event": event,
            "remote_shape": remote["shape"],
            "remote_dtype": wire.DTYPES.index(remote.get("dtype", wire.DTYPES[0])),
            "remote_media": remote.get("media", ""),
            "remote_limit": remote.get("limit", wire.MAX_DATA),
            "model_id": pair["model_id"],
            "class_names": pair.get("class_names"),
            "in_flight": 1,
            "deadline_ms": 2000,
        }
        ldl = open_ldl(config["ldl"], event, bits)
        scaling["ldl"] = (ldl.input_size, *ldl.input_quantisation())
        config["measured"] = {
            name: {"columns": pair["columns"][model], **_integers(pair["prepared"].get(model), *scaling[model])}
            for name, model in (("local", "ldl"), ("remote", "rdl"))
        }
    except (OSError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError("%s: no pair: %s: %s; h2t2 pair makes one" % (folder, type(error).__name__, error)) from None
    config["measured"].update({name: pair[name] for name in ("window", "picture") if pair.get(name)})
    return config


def _integers(prepared: dict[str, list[float]] | None, size: int, scale: float, zero_point: int) -> dict[str, list[int]]:
    if prepared is None:
        prepared = {"factor": [1.0] * size, "offset": [0.0] * size}
    return units.measured(prepared["factor"], prepared["offset"], scale, zero_point)


def service(
    folder: str | os.PathLike[str],
    sense: Callable[[], Any],
    act: Callable[[Any], object],
    *,
    broker: str = "localhost",
    port: int = 1883,
    device: str = "",
    beta: float | None = None,
    remote: Callable[[Any], Any] | None = None,
    threaded: bool = False,
    login: dict[str, Any] | None = None,
    log: Callable[[str], object] = print,
    **entries: Any,
) -> Service:
    """Return a service that runs a node of a pair: its run() measures, decides and acts until sense() raises StopIteration.

    Args:
        folder: Of the pair.
        sense: Returns the numbers of a sample as they were measured, or None for nothing now.
        act: Called with a Decision (label, source, score, tag, late).
        broker: Address of the MQTT broker.
        port: Of the broker.
        device: Name on the broker; "": the machine's name.
        beta: Cost of an offload, 0..1; None: the pair's.
        remote: Returns what an offload sends of a sample, numbers or bytes; None: the same numbers.
        threaded: Call sense() in a thread of its own, so that a slow sensor delays no reply.
        login: Further arguments of PahoLink: user, password, ca, cert, key.
        log: Called with a line of text about a trouble.
        entries: Further entries of config.json, such as snapshot="learned" or every_us=2000000.

    Raises:
        ValueError: The folder holds no pair, or an entry is wrong.
    """
    program = SimpleNamespace(sense=sense, act=act, **({"remote": remote} if remote else {}))
    config = {**configuration(folder, beta), "device": device or socket.gethostname(), **entries, "app": program}
    boot = start.boot_number()
    link = PahoLink(broker, port, config["device"], config["model_id"], boot, seed=boot >> 2, **(login or {}))
    try:
        running = start.service(config, link, _ignore, log=log)
    except Exception:
        link.close()
        raise
    if threaded:
        running.sensing.sensor = ThreadedSensor(running.sensing.sensor)
    return running


def _ignore(*_: Any) -> None:
    """Report no decision beside act()."""
