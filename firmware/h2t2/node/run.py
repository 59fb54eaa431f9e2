# Runs the node of a board from its start to the end of its samples, and starts it again after an exception.
import gc
import json
import sys

from ..clock import Stopwatch, remaining, ticks_add, ticks_ms
from ..modules import IS_BOARD, call_once, forget, load
from . import board
from .service import summary

if 0:  # for type checkers
    from ..annotations import Any, Config, Feed, Log
    from ..link.link import Link
    from .service import Service

FIRST_WAIT_S, LONGEST_WAIT_S = 1, 60  # between two starts after an exception
CONNECT_MS = 1000  # longest wait for a broker before the loop begins
PATIENT_MS = 25000  # the same where no sample is missed meanwhile: recorded samples, and a board that has just woken
COMPUTERS = "linux", "darwin"  # platforms on which somebody has started the program and reads why it ends
STABLE_S = 600  # after a start that lasted so long, the waits between starts begin anew
# modules whose memory a board needs for its samples afterwards
ONLY_AT_START = "node.start", "core.policies", "core.curves", "ldl.buffers"
RARELY = 8192  # bytes allocated between two collections of garbage while the node runs


def main(path: str = "config.json") -> None:
    """Run the node of a configuration file to the end of its samples; print a JSON line for each decision, and a summary.

    After an exception the node logs it, waits, and starts again; the wait doubles from 1 to 60 s. When the program ends, its
    watchdog does not reset the board, and the log says why it ended.

    Raises:
        ValueError, ImportError: On a computer: the configuration cannot be used, or a module is missing.
        KeyboardInterrupt: Somebody asked for the prompt.
    """
    log = board.Log("h2t2.log")
    feed = call_once("node.entries.checked", path, log)
    watched = board.running_watchdog is not None
    reason = "an error"
    try:
        _run_again(path, feed, log)
        reason = "no more samples"
    except KeyboardInterrupt:
        reason = "Ctrl-C at its line"
        raise
    finally:
        board.ignore_ctrl_c(True)
        board.release_watchdog()
        if watched or board.PLATFORM not in COMPUTERS:
            log("ended: %s%s" % (reason, "; the watchdog is off" if watched else ""))
        board.ignore_ctrl_c(False)


def _run_again(path: str, feed: "Feed", log: board.Log) -> None:
    """Run the node until its samples end, and start it again after each exception; the watchdog runs."""
    cause = board.start_cause()
    wait = FIRST_WAIT_S
    while True:
        watch = Stopwatch()
        try:
            cause = _run(path, feed, log, cause)
            if not cause:
                return
            board.restart(cause)
            continue
        except Exception as error:
            if board.PLATFORM in COMPUTERS and isinstance(error, (ValueError, ImportError)):
                raise  # the next start would fail as well, and whoever started it reads why
            log.exception(error)
            cause = "%s: %s" % (type(error).__name__, error)
        if watch.seconds() >= STABLE_S:
            wait = FIRST_WAIT_S
        log("starting again in %d s" % wait)
        watch = Stopwatch()
        while watch.seconds() < wait:
            feed()
            board.pause(100)
        wait = min(2 * wait, LONGEST_WAIT_S)
        gc.collect()


def _connect(link: "Link", wait_ms: int, feed: "Feed", log: "Log") -> None:
    """Wait for the link while it is connecting, at most wait_ms; feed the watchdog."""
    end = ticks_add(ticks_ms(), wait_ms)
    while True:
        feed()
        try:
            link.open(CONNECT_MS)
            return
        except OSError as error:
            if not link.is_connecting() or not remaining(end, wait_ms):
                log("%s; deciding locally until it answers" % error)
                return


def _run(path: str, feed: "Feed", log: "Log", cause: str) -> str:
    """Run the node to the end of its samples or an exception, and save what it learned. Return the cause of the next start."""
    with open(path) as file:
        config: "Config" = json.load(file)
    running: "Service | None" = load("node.start.assemble")(config, feed, log, cause)
    if IS_BOARD:
        for name in ONLY_AT_START:
            forget(name)
    if not running:
        return board.UPDATED
    device, samples = config["device"], config.get("samples", 0)
    config = {}  # a node keeps none
    link: "Any" = running.node.link
    try:
        _connect(link, PATIENT_MS if running.sensing.patient or cause == board.WOKEN else CONNECT_MS, feed, log)
        log("ready, device %s" % device)
        collect_rarely()
        running.run(samples)
        if not running.next_cause:
            gc.collect()
            try:
                getattr(link, "send_summary", _print_summary)(summary(running))
            except MemoryError as error:  # the decisions are made
                log("no room for the summary: %s" % error)
        return running.next_cause
    except KeyboardInterrupt:
        board.ignore_ctrl_c(True)
        board.release_watchdog()  # before the line closes, which lets Ctrl-C interrupt again
        running.end(True)
        raise
    except BaseException:
        running.end()
        raise
    finally:
        link.close()


def collect_rarely() -> None:
    """Collect garbage, and from now on more rarely: the modules of the node are in place."""
    gc.collect()
    if hasattr(gc, "threshold"):
        gc.threshold(RARELY)


def _print_summary(entries: "dict[str, Any]") -> None:
    """Print the summary as a line of JSON, piece by piece: a heap in pieces has no room for the whole line."""
    sys.stdout.write('{"summary": ')
    json.dump(entries, sys.stdout)
    print("}")
