"""The commands that look at a fleet: fleet, dashboard, metrics, home-assistant."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..common.errors import Failure, UserError
from .options import (
    add_endpoint_options,
    address,
    begin_log,
    command,
    device_name,
    drawn,
    endpoint_of,
    json_option,
    log_options,
    show,
    write_json,
)

LOCAL = ("127.0.0.1", "localhost", "::1")
SHORTEST = 16  # characters of a token
REDRAWN_S = 0.5  # between two pictures of a live table


def _fleet(args: argparse.Namespace) -> None:
    from ..fleet.monitoring import report
    from ..fleet.monitoring.follower import Follower

    follower = Follower(endpoint_of(args)).start()

    made: Any

    def now() -> dict[str, Any]:
        with follower.fleet() as fleet:
            return report.of_fleet(fleet, time.time())

    if args.remove and not args.device:
        raise UserError("--remove: name the device")
    try:
        if args.remove:
            time.sleep(args.listen)
            made = _one(now(), args.device)
            follower.remove(args.device)
            write_json(args.json, made)
            print(f"{args.device} is removed", file=sys.stderr)
        elif args.json or args.once or not sys.stdout.isatty():
            time.sleep(args.listen)
            made = now()
            if args.device:
                made = _one(made, args.device)
            write_json(args.json, made)
            if args.json != "-":
                show(report.details(made, time.time()) if args.device else report.table(made, time.time()))
        else:
            _live(args, follower, now)
    except KeyboardInterrupt:
        pass
    finally:
        follower.close()


def _one(fleet: dict[str, Any], name: str) -> dict[str, Any]:
    for one in fleet["devices"]:
        if one["device"] == name:
            return dict(one)
    known = ", ".join(sorted(one["device"] for one in fleet["devices"])[:20]) or "none"
    raise Failure(f"{name}: no such device has ever been on this broker; there are: {known}")


def _live(args: argparse.Namespace, follower: Any, now: Any) -> None:
    """The table, drawn again and again until Ctrl-C."""
    from rich.console import Group
    from rich.live import Live

    from ..fleet.monitoring import report

    time.sleep(min(args.listen, 0.5))  # what is retained comes at once
    with Live(refresh_per_second=1 / REDRAWN_S, screen=True) as live:
        while True:
            made = now()
            clock = made["at"]
            parts = report.details(_one(made, args.device), clock) if args.device else report.table(made, clock)
            lines = [f"the broker: {follower.trouble}; connecting again"] if follower.trouble else []
            live.update(Group(*map(drawn, [*parts, *lines])))
            time.sleep(REDRAWN_S)


def _add_fleet(commands: Any) -> None:
    p = command(
        commands,
        "fleet",
        _fleet,
        "Every device on a broker, live: what it does, what it costs, and what is wrong with it.",
        "h2t2 fleet",
        "h2t2 fleet kitchen --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
        "h2t2 fleet attic --remove   # remove a device that is gone for good, in Home Assistant too",
        "h2t2 fleet --json - --listen 15   # once, after 15 s: rates need two states of a device",
    )
    p.add_argument("device", nargs="?", type=device_name, help="one of them, in full (all)")
    p.add_argument("--remove", action="store_true", help="remove a device that is gone for good from the broker")
    p.add_argument("--once", action="store_true", help="print it once, as is done where there is no terminal")
    p.add_argument("--listen", type=float, default=2.0, metavar="S", help="seconds to listen before that (2)")
    add_endpoint_options(p)
    json_option(p)


def _dashboard(args: argparse.Namespace) -> None:
    from ..fleet import broker
    from ..fleet import command as remote_command
    from ..fleet.dashboard.serve import Options, serve
    from ..fleet.dashboard.watcher import Watcher
    from ..fleet.endpoint import secret
    from ..fleet.monitoring.follower import Follower
    from ..fleet.monitoring.history import Bounds, History

    begin_log("dashboard", args)
    to = endpoint_of(args)
    token = secret(Path(args.token_file)).read_text().strip() if args.token_file else ""
    if args.token_file and len(token) < SHORTEST:
        short = f"a token of {len(token)} characters, which can be guessed" if token else "it is empty"
        raise UserError(f"{args.token_file}: {short}; want {SHORTEST} or more: openssl rand -hex 16 > {args.token_file}")
    if not token and (args.command or args.answer or args.bind not in LOCAL):
        token = secrets.token_urlsafe(16)
    if not broker.free(args.bind, args.port):
        raise UserError(f"--port {args.port}: something listens there already, or it cannot be had")
    follower = Follower(to).start()
    history = History(Path(args.history), Bounds(args.days, args.megabytes))
    watcher = Watcher(follower, history).start()
    shown = "localhost" if args.bind in LOCAL else args.bind
    said = f"?token={token}" if token and not args.token_file else ""
    print(f"h2t2 dashboard: http://{shown}:{args.port}/{said}", flush=True)
    with ExitStack() as stack:
        serve(
            watcher,
            Options(args.bind, args.port, token, args.open),
            (lambda device, content: remote_command.send(to, device, content)) if args.command else None,
            _answering(args, stack) if args.answer else None,
        )


def _answering(args: argparse.Namespace, stack: ExitStack) -> Any:
    """A person at the page in a remote model's place, whose worker ends with the stack."""
    from ..common import pairs
    from ..fleet.dashboard.answer_page import AnswerPage
    from ..fleet.rdl import person
    from ..fleet.rdl.server import Options

    pair = pairs.load(args.answer)
    options = Options(watch=False, keep=Path(args.keep) if args.keep else None)
    _, desk = stack.enter_context(person.by_a_person(pair, pair.info.model_id, endpoint_of(args), options))
    return AnswerPage(pair, desk, person.classes(pair, args.classes))


def _add_dashboard(commands: Any) -> None:
    p = command(
        commands,
        "dashboard",
        _dashboard,
        "The fleet as a web page: every device, its costs and pictures over time, the workers. It only looks, and is seen from "
        "this machine only, unless told otherwise.",
        "h2t2 dashboard --open",
        "h2t2 dashboard --answer doorbell --classes nobody person --keep kept   # you are the remote model",
        "h2t2 dashboard --command --bind 0.0.0.0 --token-file token   # may command; who comes must know the token",
        "h2t2 dashboard --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw --history fleet.db",
    )
    p.add_argument("--port", type=int, default=8080, help="of the page (8080)")
    p.add_argument("--bind", default=LOCAL[0], help="address to listen on; 0.0.0.0: the network (127.0.0.1)")
    p.add_argument("--command", action="store_true", help="let visitors set costs, pause, save and reset devices")
    p.add_argument("--answer", metavar="PAIR", help="let visitors answer in place of this pair's remote model")
    p.add_argument("--classes", nargs="+", metavar="NAME", help="what its classes are called (0, 1, ...)")
    p.add_argument("--keep", metavar="DIR", help="keep what they answered, for `h2t2 samples` (nothing is kept)")
    p.add_argument("--token-file", metavar="FILE", help="what visitors must know, readable by its owner alone (made up anew)")
    p.add_argument("--history", default="h2t2-history.db", metavar="FILE", help="SQLite file (h2t2-history.db)")
    p.add_argument("--days", type=float, default=30, help="how long it is kept (30)")
    p.add_argument("--megabytes", type=float, default=256, metavar="MB", help="how large it may become (256)")
    p.add_argument("--open", action="store_true", help="open it in the browser")
    add_endpoint_options(p)
    log_options(p)


def _metrics(args: argparse.Namespace) -> None:
    if args.grafana:
        from ..fleet import monitoring

        write_json(args.grafana, json.loads(monitoring.GRAFANA.read_text()))
        return
    from prometheus_client import CollectorRegistry

    from ..fleet.metrics_server import MetricsServer
    from ..fleet.monitoring.follower import Follower
    from ..fleet.monitoring.prometheus import FleetCollector

    begin_log("metrics", args)
    host, port = address(args.listen, "--listen")
    follower = Follower(endpoint_of(args)).start()
    registry = CollectorRegistry()
    registry.register(FleetCollector(follower))
    scraped = MetricsServer(registry, lambda: follower.trouble, host, port, lambda: follower.refused_text)
    print(f"h2t2 metrics: http://{host}:{scraped.port}/metrics", flush=True)
    with _until_stopped():
        signal.pause()
    scraped.stop()
    follower.close()


@contextmanager
def _until_stopped() -> Iterator[None]:
    """SIGTERM and Ctrl-C end the block."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        yield


def _add_metrics(commands: Any) -> None:
    p = command(
        commands,
        "metrics",
        _metrics,
        "Every device and worker on a broker as metrics for Prometheus, until Ctrl-C.",
        "h2t2 metrics                          # http://127.0.0.1:9110/metrics",
        "h2t2 metrics --grafana fleet.json     # Grafana: Dashboards, New, Import",
        "h2t2 metrics --listen 0.0.0.0:9110 --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
    )
    p.add_argument("--listen", default="9110", metavar="[HOST:]PORT", help="where (127.0.0.1:9110)")
    p.add_argument(
        "--grafana", metavar="FILE", help="write a Grafana dashboard of these metrics, and end; - for standard output"
    )
    add_endpoint_options(p)
    log_options(p)


def _home_assistant(args: argparse.Namespace) -> None:
    from ..fleet import home_assistant

    begin_log("home-assistant", args)
    rules = [home_assistant.Rule.parse(text) for text in args.devices]
    with _until_stopped():
        home_assistant.announce(endpoint_of(args), rules)


def _add_home_assistant(commands: Any) -> None:
    p = command(
        commands,
        "home-assistant",
        _home_assistant,
        "Announce every device on a broker to Home Assistant, by MQTT discovery, until Ctrl-C.",
        "h2t2 home-assistant kitchen=motion 'porch-*=door'   # what the decisions of these devices are",
        "h2t2 home-assistant birds='cat, dog, bird' --broker mqtts://broker.lan:8884 --ca ca.crt --user operator "
        "--password-file pw",
    )
    p.add_argument(
        "devices",
        nargs="*",
        metavar="DEVICE=CLASS",
        help="the device class of a device's event, such as motion, or the names of its three classes or more, with commas; "
        "DEVICE may have * and ? (none, or the classes' numbers)",
    )
    add_endpoint_options(p)
    log_options(p)


def add(commands: Any) -> None:
    """Declare them."""
    for declare in (_add_fleet, _add_dashboard, _add_metrics, _add_home_assistant):
        declare(commands)
