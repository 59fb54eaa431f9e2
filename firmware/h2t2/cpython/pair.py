# A node of a pair's folder, as `h2t2 pair` makes it, on a Pi or a desktop. Boards get the same entries from `h2t2 flash`.
import json
import os
import socket
from collections.abc import Callable
from math import prod, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .. import units
from ..core.adaptive_classes import AdaptiveClasses
from ..core.defaults import BITS
from ..ldl.open import open_ldl
from ..link import wire
from ..node import start
from ..node.service import Service
from . import address

LATE_LABELS = 256  # labels that may be outstanding


def configuration(folder: str | os.PathLike[str], beta: float | None = None) -> tuple[dict[str, Any], Any]:
    """Return the entries of a configuration that a pair describes, and its local model.

    Args:
        folder: Of the pair.
        beta: Cost of an offload, 0..1; None: the pair's.

    Raises:
        ValueError: The folder holds no pair.
    """
    path = Path(folder)
    try:
        pair = json.loads((path / "pair.json").read_text())
        remote, events, costs = pair["remote"], pair.get("event_index", {}), pair.get("costs")
        policy: dict[str, Any] = {"bits": BITS, "beta": pair["beta"] if beta is None else beta, "window": LATE_LABELS}
        policy.update({"confusion" if costs else name: rate for name, rate in error_rates(pair).items()})
        if costs:
            policy["costs"] = costs
        event = events.get("ldl", 0)
        config = {
            "policy": "adaptive",
            "arguments": units.policy(**policy),
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
        ldl = open_ldl(config["ldl"], event)
        config["measured"] = measured(pair, ldl)
        config["features"] = pair.get("features", 0)
    except (OSError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError("%s: no pair: %s: %s; h2t2 pair makes one" % (folder, type(error).__name__, error)) from None
    return config, ldl


def error_table(counts: list[list[float]]) -> list[list[float]]:
    """Return how often a remote model is taken to say j when the class is i.

    That is one standard deviation more than its mistakes beside 20 other samples of each class, of which one was wrong: a rate
    that is too small costs more than one that is too large.

    Args:
        counts: A row for each true class: how many of its samples the remote model took for each class. 0s: it is not wrong.

    >>> [[round(rate, 3) for rate in row] for row in error_table([[47, 3], [0, 50]])]
    [[0.915, 0.085], [0.028, 0.972]]
    """
    table = []
    for k, row in enumerate(counts):
        samples = sum(row) + 20
        wrong = (samples - 19 - row[k]) / samples
        more = 1 + sqrt((1 - wrong) / wrong / samples)
        rates = [(count + 1 / (len(row) - 1)) / samples * more if any(row) else 0.0 for count in row]
        rates[k] = 0.0
        rates[k] = 1 - sum(rates)
        table.append(rates)
    return table


def error_counts(pair: dict[str, Any]) -> list[list[float]]:
    """Return for each true class, a row, how many test samples the remote model took for each class; 0s: nobody knows.

    A pair that does not say how many samples each class has counts as many for each. pair: content of pair.json.
    """
    rates = pair.get("rates", {})
    false, missed = rates.get("rdl_fp"), rates.get("rdl_fn")
    rows = [[0, 0] if false is None else [1 - false, false], [0, 0] if missed is None else [missed, 1 - missed]]
    rows = rates.get("rdl_confusion") or rows
    samples = pair.get("class_samples") or [pair.get("test_samples", 0) // len(rows)] * len(rows)
    return [[share * n for share in row] for row, n in zip(rows, samples)]


def error_rates(pair: dict[str, Any]) -> dict[str, Any]:
    """Return how often the remote model is taken to be wrong: `rdl_fp` and `rdl_fn`, or of more classes `rdl_confusion`.

    {} where the pair tells no rates, or such that nothing can be learned from its labels.

    Args:
        pair: Content of pair.json.
    """
    counts = error_counts(pair)
    table = error_table(counts)
    if len(table) == 2:
        return {name: table[k][1 - k] for k, name in enumerate(("rdl_fp", "rdl_fn")) if sum(counts[k])}
    try:
        AdaptiveClasses(units.matrix(pair["costs"]), confusion=units.confusion(table))
    except ValueError:
        return {}
    return {"rdl_confusion": table}


def measured(pair: dict[str, Any], ldl: Any) -> dict[str, Any]:
    """Return how an app's numbers become the inputs of both models: the entry `measured` of config.json.

    Args:
        pair: Content of pair.json.
        ldl: The open local model.

    Raises:
        ValueError: A scaling is not that of as many numbers as the model takes.
    """
    remote = pair["remote"]
    entries = {}
    for name, model, size, scale, zero_point in (
        ("local", "ldl", ldl.input_size, *ldl.input_quantisation()),
        ("remote", "rdl", prod(remote["shape"]), remote["scale"], remote["zero_point"]),
    ):
        prepared = pair["prepared"].get(model) or {"factor": [1.0] * size, "offset": [0.0] * size}
        factor = prepared["factor"]
        if len(factor) != size:
            raise ValueError("pair.json: prepared.%s: %d numbers, the model takes %d" % (model, len(factor), size))
        integers = units.measured(factor, prepared["offset"], scale, zero_point)
        rules = {rule: prepared[rule] for rule in ("missing", "equal", "beyond") if prepared.get(rule)}
        entries[name] = {"columns": pair["columns"][model], **integers, **rules}
    return {**entries, **{name: pair[name] for name in ("window", "picture") if pair.get(name)}}


def service(
    folder: str | os.PathLike[str],
    sense: Callable[[], Any],
    act: Callable[[Any], object],
    *,
    broker: str = "localhost",
    port: int = 0,
    device: str = "",
    beta: float | None = None,
    remote: Callable[[Any], Any] | None = None,
    context: Callable[[], Any] | None = None,
    threaded: bool = False,
    ordered: bool = True,
    login: dict[str, Any] | None = None,
    log: Callable[[str], object] = print,
    **entries: Any,
) -> Service:
    """Return a service that runs a node of a pair: its run() measures, decides and acts until sense() raises StopIteration.

    Args:
        folder: Of the pair.
        sense: Returns the numbers of a sample as they were measured, or None for nothing now.
        act: Called with a Decision (label, source, score, tag, late).
        broker: Address of the MQTT broker, [mqtt[s]://]HOST[:PORT].
        port: Of the broker, where its address names none; 0: 1883, by TLS 8883.
        device: Name on the broker; "": the machine's name.
        beta: Cost of an offload, 0..1; None: the pair's.
        remote: Returns what an offload sends of a sample, numbers or bytes; None: the same numbers.
        context: Returns numbers in 1/32 from which a head learns beside the pair's features; the entry `context` is how many.
        threaded: Call sense() in a thread of its own, so that a slow sensor delays no reply.
        ordered: Samples come in the order of time, so adaptive reads its past (of two classes, without head and miss_rate).
        login: user and password at the broker; ca, cert and key (PEM files): TLS.
        log: Called with a line of text about a trouble.
        entries: Further entries of config.json, such as snapshot="learned" or every_us=2000000.

    Raises:
        ValueError: The folder holds no pair, or an entry is wrong.
    """
    from .threaded_sensor import ThreadedSensor

    optional = {name: function for name, function in (("remote", remote), ("context", context)) if function}
    program = SimpleNamespace(sense=sense, act=act, **optional)
    described, ldl = configuration(folder, beta)
    config = {**described, "device": device or socket.gethostname(), **entries, "app": program}
    features = config.pop("features") + config.get("context", 0)
    arguments = config["arguments"]
    if config["policy"] == "adaptive" and not {"miss_rate", "ordered"} & set(arguments):
        past = {"ordered": True} if ordered and "costs" not in arguments else {}
        arguments.update({"features": features} if features else past)
    boot = start.boot_number()
    link = _link(address.parse(broker, port), login or {}, config["device"], config["model_id"], boot)
    try:
        running = start.service(config, link, _ignore, log=log, opener=lambda *_: ldl)
    except Exception:
        link.close()
        raise
    if threaded:
        running.sensing.sensor = ThreadedSensor(running.sensing.sensor, running.sensing.scheduled)
    return running


def _link(broker: tuple[str, int, bool], login: dict[str, Any], device: str, model: int, boot: int) -> Any:
    """Begin to connect to a broker, as parse() describes it; login: of service()."""
    from ..link.tls import context
    from .paho import PahoLink

    host, port, tls = broker
    files = {name: login[name] for name in ("ca", "cert", "key") if login.get(name)}
    other = {name: value for name, value in login.items() if name not in ("ca", "cert", "key")}
    if tls or files:
        other = {"tls": context(**files), **other}
    return PahoLink(host, port, device, model, boot, seed=boot >> 2, **other)


def _ignore(*_: Any) -> None:
    """Report no decision beside act()."""
