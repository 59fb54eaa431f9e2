# Assembles a node from its configuration, on a board and on a Pi. The configuration is a dict of integers and texts.
# A board reads it from config.json, which `h2t2 flash` writes from h2t2.toml. h2t2_tools/fleet/config.py declares the
# entries. A board forgets this module once its node runs (run.py).
import os
from binascii import crc32
from struct import pack

from ..core import policies
from ..link import wire
from ..modules import IS_BOARD, call_once, forget, load
from . import board
from .keeper import Keeper
from .node import Node
from .sensing import Sensing
from .service import Service, show
from .snapshot import ORIGIN
from .store import file_store

if 0:  # for type checkers
    from ..annotations import Act, Any, Callable, Config, Feed, Log, Opener
    from ..core.policy import Policy
    from ..link.link import Link
    from .app import App
    from .model_state import ModelState
    from .update import Updates

REQUIRED = ("policy", "arguments", "ldl", "event", "remote_shape", "model_id", "in_flight", "deadline_ms")
LARGEST_SEED = 268435455
ONLY_TO_OPEN = "ldl.open", "ldl.steps"  # modules that a board needs until its model is open
# entries that config.json may leave out, and their values then
DEFAULTS = {"keep_alive": 30, "when_down": "ask", "snapshot_every": 250, "snapshot_mismatch": "fresh", "telemetry_s": 10}


def entry(config: "Config", name: str) -> "Any":
    """An entry of a configuration, or its default."""
    return config.get(name, DEFAULTS[name])


def assemble(config: "Config", feed: "Feed", log: "Log", cause: str) -> "Service | None":
    """Return the service of a configuration with its active update, on its link; None: the update failed, start again.

    The model opens before the link's code is in memory, because its checks take the most. Arguments: as of mqtt_link().

    Raises:
        ValueError, ImportError: as of service().
    """
    if config.get("provision"):
        call_once("node.provision.provision", config, cause, feed, log)
    config, updates = active_config(config, log)
    ldl: "Any" = None
    link: "Any" = None
    running: "Service | None" = None
    try:
        ldl = local_model(config, log)
        if IS_BOARD:
            for name in ONLY_TO_OPEN:
                forget(name)
        link = open_link(config, feed, log, cause)
        running = service(
            config,
            link,
            getattr(link, "send_decision", show),
            watchdog=feed,
            log=log,
            cause=cause,
            updates=updates,
            opener=lambda *_: ldl,
        )
    except Exception as error:
        without_link = ldl and not link  # an update cannot cause that
        if not updates or without_link or not updates.failed(error):
            raise
    finally:
        if link and not running:
            link.close()
    return running


def service(
    config: "Config", link: "Link", act: "Act" = show, *, sensor: "Callable[[], Any] | None" = None,
    watchdog: "Feed" = lambda: None, log: "Log" = print, cause: str = "", updates: "Updates | None" = None,
    opener: "Opener | None" = None, kind: "Callable[..., Node]" = Node,
) -> Service:  # fmt: skip
    """The service of a configuration on an open or opening link.

    Args:
        config: dict, as config.json. With `awaitable` it is an AwaitedService, for `await arun()`; sensor and act, or an app's
            sense() and act(), may be async functions then.
        act: act(tag, k, decision, source) is called once for each sample. An app's own act() is called first; tag is then the
            number of the sample.
        sensor: as Sensing's; None: the app or the recorded samples that the configuration names.
        cause, updates: why the node starts; of active_config().
        opener: opens the local model, as open_ldl() does; None: open_ldl.
        kind: makes the node, as the class Node does.

    Raises:
        ValueError: an entry is missing, or does not fit the model.
    """
    _check_entries(config)
    policy: "Any" = policies.make(config["policy"], seeded(config))
    _log_rates(policy, log)
    ldl, model_state = _open_model(config, policy.classes, opener, log=log, updates=updates)
    dtype = config.get("remote_dtype", wire.INT8)
    shape = wire.checked_shape(tuple(config["remote_shape"]), dtype)
    recorded = sensor is None and not config.get("app")
    if recorded:
        if "records" not in config:
            raise ValueError("config.json: no entry app or records")
        sensor = load("node.recorded.Recorded")(config["records"], ldl.input_size, wire.size_of(dtype, shape))
    sensor, act, app, awaited = _program(config, sensor, act)
    node = _node(config, policy, ldl, link, act=act, log=log, kind=kind)
    _join(config, policy, app, node)
    node.complain.locates = not recorded
    sleep = load("node.sleep.configured")(config, node, cause) if config.get("sleep") else None
    keeper = _keeper(config, node, log, model_state, _origin(config, getattr(ldl, "ldl", ldl)))
    _begin_head(config, node, log)
    _keep_spent(config, node, keeper)
    if keeper.restored and not (sleep and sleep.woken):
        policy.pass_time(-1)
    if node.cost:  # measurements of this start replace the snapshot's
        policy.set_beta(node.cost.expected)
    sensing_class, service_class = (awaited.sensing, awaited.service) if config.get("awaitable") else (Sensing, Service)
    return service_class(
        node,
        _sensing(config, sensor, node, app=app, recorded=recorded, kind=sensing_class),
        keeper,
        shape=shape,
        telemetry_s=entry(config, "telemetry_s"),
        watchdog=watchdog,
        log=log,
        cause=cause,
        app=app,
        sleep=sleep,
        report_decisions=config.get("report_decisions", False),
        updates=updates,
        class_names=config.get("class_names"),
    )


def _log_rates(policy: "Any", log: "Log") -> None:
    """Log that asking does not pay, where the remote model is so often wrong."""
    effective = getattr(policy, "effective", None)
    if effective and policy.rdl_fp + policy.rdl_fn and effective[3] >= effective[4]:  # LOWER and UPPER of core/adaptive.py
        wrong = policy.rdl_fn * 100 + 16384 >> 15, policy.rdl_fp * 100 + 16384 >> 15
        log("asking does not pay: the remote model is wrong on %d%% of the events and %d%% of the others" % wrong)


def seed_of(*names: "Any") -> int:
    """Return a seed, 0..LARGEST_SEED, for the draws of what has these names: the devices of a fleet draw differently."""
    return crc32("/".join([str(name) for name in names]).encode()) & LARGEST_SEED


def seeded(config: "Config") -> "dict[str, Any]":
    """Return the policy's arguments, with a seed from the names of device and model unless there is one."""
    arguments: "dict[str, Any]" = config["arguments"]
    if "seed" in arguments or "device" not in config:
        return arguments
    return dict(arguments, seed=seed_of(config["device"], config["model_id"]))


def _check_entries(config: "Config") -> None:
    for name in REQUIRED:
        if name not in config:
            raise ValueError("config.json: no entry %s" % name)


def local_model(config: "Config", log: "Log", opener: "Opener | None" = None) -> "Any":
    """Return the local model of a configuration, as its file holds it; log slow operators. opener: as of service()."""
    _check_entries(config)
    resolver, stream = config.get("resolver", "reference"), config.get("stream", False)
    ldl = (opener or load("ldl.open.open_ldl"))(config["ldl"], config["event"], resolver, stream)
    slow = {} if opener else load("ldl.steps.in_bytecode")
    for name in slow:
        log("%s in bytecode, which is slow: %s" % (name, slow[name]))
    return ldl


def _program(config: "Config", sensor: "Callable[[], Any] | None", act: "Act") -> "tuple[Any, Any, App | None, Any]":
    """Return sensor, act, the App of a configuration unless the caller has a sensor, and the Awaited of async functions."""
    if sensor is None:
        app = open_app(config, act)
        return app.sense, app.act, app, app.program
    if not config.get("awaitable"):
        return sensor, act, None, None
    from .awaited import Awaited

    awaited = Awaited(sensor, act)
    return awaited.sense, awaited.act, None, awaited


def _open_model(
    config: "Config", classes: int, opener: "Opener | None", *, log: "Log", updates: "Updates | None"
) -> "tuple[Any, ModelState | None]":
    """Return the local model as the policy reads it, and the ModelState of a streaming model or None."""
    ldl = local_model(config, log, opener)
    if updates:
        updates.test(ldl)
    model_state = None
    if config.get("snapshot_ldl"):
        if not config.get("snapshot"):
            raise ValueError("snapshot_ldl: there is no snapshot that it could go with")
        from .model_state import ModelState

        model_state = ModelState(ldl, file_store(config["snapshot"] + ".ldl"), log)
    if classes > 2:
        from ..ldl.class_scores import ClassScores

        ldl = ClassScores(ldl, classes)
    elif "costs" in config["arguments"]:
        raise ValueError("costs: of 3 classes or more; of two, delta_fp and delta_fn say it")
    return ldl, model_state


def _join(config: "Config", policy: "Any", app: "App | None", node: Node) -> None:
    """Give an app its node, and a policy what it reads beside scores: features of the local model and the app.

    Raises:
        ValueError: The model or the app does not fit a head.
    """
    if app:
        app.node = node
    arguments = config["arguments"]
    if "features" in arguments:
        from ..ldl.head_sample import HeadSample

        context = getattr(app.program, "context", None) if app else None
        node.ldl = HeadSample(node.ldl, arguments["features"], config.get("context", 0), context, node.complain)
        policy.sample = node.ldl.sample


def _begin_head(config: "Config", node: Node, log: "Log") -> None:
    """Let a policy continue the heads of its local model, or begin them: anew, or as the file of the configuration says."""
    if "features" not in config["arguments"]:
        return
    policy, sample = node.policy, node.ldl  # type: Any, Any
    policy.adopt(sample.model.checksum & 0xFFFFFFF)
    if config.get("head"):
        call_once("node.head_start.begin", policy, config["head"], log)


def _node(
    config: "Config", policy: "Policy", ldl: "Any", link: "Link", *, act: "Act", log: "Log", kind: "Callable[..., Node]"
) -> Node:
    # a board may have no room for these modules
    budget = load("core.budget.Budget")(**config["budget"]) if config.get("budget") else None
    cost = load("link.cost.LinkCost")(**config["offload_cost"]) if config.get("offload_cost") else None
    return kind(
        policy,
        ldl,
        link,
        act,
        model_id=config["model_id"],
        boot=link.boot,
        window=config["in_flight"],
        deadline_ms=config["deadline_ms"],
        when_down=entry(config, "when_down"),
        cost=cost,
        log=log,
        budget=budget,
        dtype=config.get("remote_dtype", wire.INT8),
        media=config.get("remote_media", ""),
        data_limit=config.get("remote_limit", wire.MAX_DATA),
    )


def _sensing(
    config: "Config", sensor: "Any", node: Node, *, app: "App | None", recorded: bool, kind: "type[Sensing]"
) -> Sensing:
    return kind(
        sensor,
        every_us=config.get("every_us", 0),
        every_ms=config.get("every_ms", 0),
        patient=config.get("patient", recorded or (app is not None and app.patient)),  # whether samples can wait
        complain=node.complain,
        missed=app.missed if app else None,  # a lambda of this module would keep it in memory
    )


def _origin(config: "Config", ldl: "Any") -> bytes:
    """Return of which models and classes a policy learns, as snapshot.ORIGIN."""
    classes = "%s %s" % (config["event"], config.get("class_names"))
    return pack(ORIGIN, getattr(ldl, "checksum", 0) & 0xFFFFFFFF, config["model_id"], crc32(classes.encode()) & 0xFFFFFFFF)


def _keeper(config: "Config", node: Node, log: "Log", model_state: "ModelState | None", origin: bytes) -> Keeper:
    return Keeper(
        node.policy,
        file_store(config["snapshot"]) if config.get("snapshot") else None,
        every=entry(config, "snapshot_every"),
        mismatch=entry(config, "snapshot_mismatch"),
        complain=node.complain,
        log=log,
        model_state=model_state,
        origin=origin,
    )


def _keep_spent(config: "Config", node: Node, keeper: Keeper) -> None:
    """Let a keeper save what a budget with a limit has spent, too."""
    if node.budget and node.budget.limit and keeper.store:
        keeper.spent = load("node.spent.Spent")(node.budget, file_store(config["snapshot"] + ".budget"))


def active_config(config: "Config", log: "Log") -> "tuple[Config, Updates | None]":
    """Return the configuration with the active update, and the Updates; (config, None) for a node without updates."""
    if not config.get("update"):
        return config, None
    from .update import Updates

    updates = Updates(config, log)
    return updates.begin(), updates


def open_app(config: "Config", show_decision: "Act | None") -> "App":
    """Return the App of a configuration's `app`, a module or its name. ValueError if none exists or a function is missing."""
    from .app import App

    program = config["app"]
    try:
        if isinstance(program, str):
            program = __import__(program)
    except ImportError as error:
        raise ValueError("%s.py: %s" % (config["app"], error)) from None
    if config.get("awaitable"):
        from .awaited import Awaited

        program = Awaited(program.sense, program.act, program)
    return App(program, config, show_decision)


def boot_number() -> int:
    """Return a random number for this start, 0..2^30 - 1."""
    return int.from_bytes(os.urandom(4), "little") >> 2


def mqtt_link(config: "Config", feed: "Feed" = lambda: None, log: "Log" = print, cause: str = "") -> "Link":
    """Return the MQTT link of a configuration. It connects while it is polled; with `wifi_name` it joins that network first.

    Args:
        feed: feeds the watchdog.
        cause: why the node starts.

    Raises:
        ValueError: a certificate cannot be read.
    """
    tls = None
    if config.get("ca"):
        from ..link.tls import context

        tls = context(config["ca"], config.get("cert"), config.get("key"))
    arguments = config["broker"], config["port"], config["device"], config["model_id"], boot_number()
    options = {
        "user": config.get("user"),
        "password": config.get("password"),
        "keep_alive": entry(config, "keep_alive"),
        "seed": boot_number() >> 2,
        "tls": tls,
    }
    if config["broker"] < ":":  # an address begins with a digit
        from ..link.mqtt import MqttLink
    else:
        from ..link.names import MqttLink

    if config.get("wifi_name"):
        from ..link.wifi import open_radio

        return open_radio(MqttLink, config, arguments, options, after_sleep=cause == board.WOKEN, feed=feed, log=log)
    return MqttLink(*arguments, **options)


def open_link(config: "Config", feed: "Feed" = lambda: None, log: "Log" = print, cause: str = "") -> "Link":
    """Return the link of a configuration: MQTT (see mqtt_link), or by its entry `link` that of the app, or the REPL's line."""
    kind = config.get("link")
    if kind == "app":
        link: "Link" = __import__(config["app"]).link(config, boot_number())
        return link
    if kind != "serial":
        return mqtt_link(config, feed, log, cause)
    from ..link.serial import SerialLink
    from ..link.stdio import Stdio

    return SerialLink(Stdio(), config["device"], boot_number())
