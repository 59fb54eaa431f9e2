# From a node's configuration to the running node: the one place where its parts are put together, on a board and on a Pi. The
# configuration is a dict of the core's integers; a board's stands in config.json, which `h2t2 flash` writes from a commented
# config.toml that also says what each entry means.
import gc
import json
import os

from ..clock import Stopwatch, remaining, ticks_add, ticks_ms
from ..core import policies
from ..ldl.open import open_ldl
from ..ldl.steps import in_bytecode
from ..link import wire
from ..link.cost import LinkCost
from . import board
from .keeper import Keeper
from .node import Node
from .recorded import Recorded
from .sensing import Sensing
from .service import SOURCES, Service
from .snapshot import ModelState
from .state import summary
from .store import file_store

WANTED = ("policy", "arguments", "ldl", "event", "remote_shape", "model_id", "in_flight", "deadline_ms")
FIRST_S, LONGEST_S = 1, 60  # between two starts after an exception
OPEN_MS = 1000  # waited for a broker before the loop begins
PATIENT_MS = 25000  # waited instead where no sample is missed meanwhile: recorded samples, and a board that has just woken
LONG_S = 600  # a start that lasted so long was a good one


def show(tag, k: int, decision: int, source: int) -> None:
    """What a board does with a decision unless it is told otherwise: one JSON line."""
    print('{"n": %d, "bin": %d, "decision": %d, "source": "%s"}' % (tag, k, decision, SOURCES[source]))


def size_of(shape) -> int:
    """Numbers in a tensor of this shape."""
    size = 1
    for n in shape:
        size *= n
    return size


def service(
    config, link, act=show, *, sensor=None, watchdog=lambda: None, log=print, cause="", updates=None, opener=open_ldl
) -> Service:
    """The service of a configuration (dict) on an open or opening link.

    act(tag, k, decision, source): called once a sample. sensor: as Sensing's, None for the program or the recorded samples that
    the configuration names; with a program, act is told of what its own act() was told, tag: its samples' numbers. cause: why
    this start was. updates: of in_force(). opener: opens the local model, as open_ldl() does.
    ValueError, naming it, for an entry that is missing or does not fit the model.
    """
    for name in WANTED:
        if name not in config:
            raise ValueError("config.json: no entry %s" % name)
    arguments = config["arguments"]
    policy = policies.make(config["policy"], arguments)
    resolver = config.get("resolver", "reference")
    ldl = opener(config["ldl"], config["event"], arguments["bits"], resolver, config.get("stream", False))
    for name in in_bytecode:
        log("%s in bytecode, which is slow: %s" % (name, in_bytecode[name]))
    if updates:
        updates.test(ldl)
    model_state = None
    if config.get("snapshot_ldl"):
        if not config.get("snapshot"):
            raise ValueError("snapshot_ldl: there is no snapshot that it could go with")
        model_state = ModelState(ldl, file_store(config["snapshot"] + ".ldl"), log)
    if "costs" in arguments and policy.classes < 3:
        raise ValueError("costs: of 3 classes or more; of two, delta_fp and delta_fn say it")
    if policy.classes > 2:
        from ..ldl.class_scores import ClassScores

        ldl = ClassScores(ldl, policy.classes)
    dtype = config.get("remote_dtype", wire.INT8)
    shape = wire.checked_shape(tuple(config["remote_shape"]), dtype)
    app = None
    if sensor is None and config.get("app"):
        app = open_app(config, act)
        sensor = app.sense
        act = app.act
    waits = sensor is None or (app is not None and app.patient)  # samples that are there as long as need be
    if sensor is None:
        if "records" not in config:
            raise ValueError("config.json: no entry app or records")
        sensor = Recorded(config["records"], ldl.input_size, size_of(shape) * wire.ITEM[dtype])
    node = Node(
        policy,
        ldl,
        link,
        act,
        model_id=config["model_id"],
        boot=link.boot,
        window=config["in_flight"],
        deadline_ms=config["deadline_ms"],
        when_down=config.get("when_down", "ask"),
        cost=LinkCost(**config["offload_cost"]) if config.get("offload_cost") else None,
        log=log,
        budget=_budget(config.get("budget")),
        dtype=dtype,
        media=config.get("remote_media", ""),
        data_limit=config.get("remote_limit", wire.MAX_DATA),
    )
    sleep = None
    if config.get("sleep"):
        from .sleep import configured

        sleep = configured(config, node, cause)
    store = file_store(config["snapshot"]) if config.get("snapshot") else None
    keeper = Keeper(
        policy,
        store,
        every=config.get("snapshot_every", 250),
        mismatch=config.get("snapshot_mismatch", "fresh"),
        complain=node.complain,
        log=log,
        model_state=model_state,
    )
    if node.budget and keeper.restored and not (sleep and sleep.level_kept):
        node.budget.level = 0  # what was spent before is not known: nothing is taken on trust
    if node.cost:  # what is measured now says more than what was measured then
        policy.set_beta(node.cost.expected)
    sensing = Sensing(sensor, every_us=config.get("every_us", 0), patient=config.get("patient", waits), complain=node.complain)
    return Service(
        node,
        sensing,
        keeper,
        shape=shape,
        telemetry_s=config.get("telemetry_s", 10),
        watchdog=watchdog,
        log=log,
        cause=cause,
        app=app,
        sleep=sleep,
        report_decisions=config.get("report_decisions", False),
        updates=updates,
    )


def in_force(config, log):
    """(configuration, Updates): what a start goes by, with what came by update; (config, None) where none can come."""
    if not config.get("update"):
        return config, None
    from .update import Updates

    updates = Updates(config, log)
    return updates.begin(), updates


def open_app(config, shown):
    """The App of a configuration's `app`, a module's name. ValueError where there is none, or it lacks something."""
    from .app import App

    try:
        program = __import__(config["app"])
    except ImportError as error:
        raise ValueError("%s.py: %s" % (config["app"], error)) from None
    return App(program, config, shown)


def _budget(arguments):
    """The Budget of a configuration's entry, or None. Imported where there is one: a board may have no room for it."""
    if not arguments:
        return None
    from ..core.budget import Budget

    return Budget(**arguments)


def boot_number() -> int:
    """A number for this start, 0..2^30 - 1, that is never the last one's but by a chance of 1 in 10^9."""
    return int.from_bytes(os.urandom(4), "little") >> 2


def mqtt_link(config, feed=lambda: None, log=print, cause=""):
    """The MQTT link of a config, which connects by itself while polled; with `wifi_name`, of a radio that joins that network.

    feed: a watchdog's. cause: why this start was. ValueError for a bad certificate.
    """
    tls = None
    if config.get("ca"):
        from ..link.tls import context

        tls = context(config["ca"], config.get("cert"), config.get("key"))
    login = config.get("user"), config.get("password"), config.get("keep_alive", 30)
    arguments = (config["broker"], config["port"], config["device"], config["model_id"], boot_number()) + login
    options = {"seed": boot_number() >> 2, "tls": tls}
    if config["broker"] < ":":  # it begins with a digit: an address
        from ..link.mqtt import MqttLink
    else:
        from ..link.names import MqttLink

    if config.get("wifi_name"):
        from ..link.wifi import radio

        return radio(MqttLink, config, cause == board.WOKEN, feed, log, arguments, options)
    return MqttLink(*arguments, **options)


def open_link(config, feed=lambda: None, log=print, cause=""):
    """(link, what shows a decision, what tells the summary, JSON text) of a config.

    MQTT, or, with `link`: "serial", frames on the line that the REPL is on.
    """
    if config.get("link") != "serial":
        return mqtt_link(config, feed, log, cause), show, _print_summary
    from ..link.serial import SerialLink
    from ..link.stdio import Stdio

    link = SerialLink(Stdio(), config["device"], boot_number())
    return link, link.show, link.ended


def _print_summary(message):
    print('{"summary": %s}' % message)


def main(path: str = "config.json") -> None:
    """Run the node of a config file to the end of its samples; prints a JSON line a decision and a summary.

    An exception is logged, and the node started again after a wait that doubles from 1 to 60 s. ValueError for a
    configuration that cannot be used, ImportError for one whose modules are not there.
    """
    with open(path) as file:
        config = json.load(file)
    log = board.Log(config.get("log_file", ""))
    feed = board.watchdog(config.get("watchdog_ms", 0))
    cause = board.start_cause()
    wait = FIRST_S
    while True:
        watch = Stopwatch()
        try:
            if not _run(config, feed, log, cause):
                return
            cause = board.UPDATED
            board.restart(cause)
            continue
        except (ValueError, ImportError):  # it would not start the next time either
            raise
        except Exception as error:
            log.exception(error)
            cause = "%s: %s" % (type(error).__name__, error)
        if watch.seconds() >= LONG_S:
            wait = FIRST_S
        log("starting again in %d s" % wait)
        watch = Stopwatch()
        while watch.seconds() < wait:
            feed()
            board.rest(100)
        wait = min(2 * wait, LONGEST_S)
        gc.collect()


def _connect(link, wait_ms, feed, log):
    """Wait for the link while it may come, at most so long; the watchdog is fed."""
    end = ticks_add(ticks_ms(), wait_ms)
    while True:
        feed()
        try:
            link.open(OPEN_MS)
            return
        except OSError as error:
            if not link.is_connecting() or not remaining(end, wait_ms):
                log("%s; deciding locally until it answers" % error)
                return


def _run(config, feed, log, cause):
    """One start, to the end of its samples or an exception; what was learned is saved either way. True: start again, an update
    wants it."""
    config, updates = in_force(config, log)
    link, shown, ended = open_link(config, feed, log, cause)
    running = None
    try:
        try:
            running = service(config, link, shown, watchdog=feed, log=log, cause=cause, updates=updates)
        except Exception as error:
            if updates and updates.failed(error):
                return True
            raise
        _connect(link, PATIENT_MS if running.sensing.patient or cause == board.WOKEN else OPEN_MS, feed, log)
        log("ready, device %s" % config["device"])
        board.settled()
        running.run()
        if not running.again:
            gc.collect()
            try:
                ended(json.dumps(summary(running)))
            except MemoryError as error:  # its work is done all the same
                log("no room for the summary: %s" % error)
        return running.again
    except BaseException:  # Ctrl-C too
        if running:
            running.end()
        raise
    finally:
        link.close()
