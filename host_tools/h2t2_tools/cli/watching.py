"""The commands that watch a fleet: fleet, dashboard, metrics, home-assistant."""

from __future__ import annotations

import json
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import Failure, UserError, as_user_error
from ..common.fields import Device, Port, Seconds, file, option
from ..fleet.monitoring.history_bounds import Bounds
from ..fleet.rdl.worker_options import WorkerOptions
from ..fleet.visitors import LOCAL, read_token
from .fleet import ANSWER_S
from .options import Connected, Daemon, Reporting, address
from .output import renderable, show, write_json

if TYPE_CHECKING:
    from ..fleet.dashboard.watcher import Watcher

REDRAWN_S = 0.5  # seconds between two pictures of a live table


class Fleet(Connected, Reporting):
    """It shows what each device does, what it costs, and what is wrong with it."""

    examples = (
        "h2t2 fleet",
        "h2t2 fleet kitchen --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
        "h2t2 fleet attic --remove   # remove a device that is gone for good, in Home Assistant too",
        "h2t2 fleet --json - --listen 15   # once, after 15 s: rates need two states of a device",
    )
    device: Device | None = option(None, "one device, in full", unset="all", positional=True)
    remove: bool = option(False, "remove a device that is gone for good from the broker")
    once: bool = option(False, "print the table once, as without a terminal")
    listen: Seconds = option(2.0, "time to listen before that")

    def run(self) -> None:
        from ..fleet.monitoring import fleet_report
        from ..fleet.monitoring.follower import Follower

        if self.remove and not self.device:
            raise UserError("--remove: name the device")
        follower = Follower(self.connection()).start()

        def snapshot() -> dict[str, Any]:
            with follower.fleet() as fleet:
                content = fleet_report.of_fleet(fleet, time.time())
            return _device(content, self.device) if self.device else content

        with ExitStack() as stack:
            stack.callback(follower.close)
            stack.enter_context(suppress(KeyboardInterrupt))
            if not (self.remove or self.json_file or self.once) and sys.stdout.isatty():
                self._live(follower, snapshot)
            time.sleep(self.listen)
            content = snapshot()
            if self.remove and self.device:
                follower.remove(self.device)
                print(f"{self.device} is removed", file=sys.stderr)
            self.report(content)
            if not (self.remove or self.quiet):
                show(self._tables(content))

    def _tables(self, content: dict[str, Any]) -> list[Any]:
        from ..fleet.monitoring import details, fleet_report

        return details.of_device(content, time.time()) if self.device else fleet_report.table(content, time.time())

    def _live(self, follower: Any, snapshot: Callable[[], dict[str, Any]]) -> None:
        """Draw the table twice per second, until Ctrl-C."""
        from rich.console import Group
        from rich.live import Live

        time.sleep(min(self.listen, 0.5))  # retained messages come at once
        with Live(refresh_per_second=1 / REDRAWN_S, screen=True) as live:
            while True:
                lines = [f"the broker: {follower.trouble}; connecting again"] if follower.trouble else []
                parts = [*self._tables(snapshot()), *lines]
                live.update(Group(*(renderable(item, live.console.width) for item in parts)))
                time.sleep(REDRAWN_S)


def _device(fleet: dict[str, Any], name: str) -> dict[str, Any]:
    for device in fleet["devices"]:
        if device["device"] == name:
            return dict(device)
    names = ", ".join(sorted(device["device"] for device in fleet["devices"])[:20]) or "none"
    raise Failure(f"{name}: no such device has ever been on this broker; there are: {names}")


class Dashboard(Bounds, Connected, Daemon):
    """It shows every device, its costs and pictures over time, and the workers. By default the page is read-only and bound
    to localhost.
    """

    examples = (
        "h2t2 dashboard --open",
        "h2t2 dashboard --answer digits --classes other eight --keep kept   # you are the remote model",
        "h2t2 dashboard --command --bind 0.0.0.0 --token-file token   # visitors may command; they must know the token",
        "h2t2 dashboard --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw --history fleet.db",
    )
    port: Port = option(8080, "port of the page")
    bind: str = option(LOCAL[0], "address to listen on; 0.0.0.0: the network")
    command: bool = option(False, "let visitors set costs, pause, save and reset devices")
    answer: str | None = option(None, "let visitors answer in place of this pair's remote model", metavar="PAIR")
    classes: list[str] | None = option(None, "names of its classes", unset="0, 1, ...", metavar="NAME")
    keep: str | None = option(None, "keep the answers, for `h2t2 samples`", unset="nothing is kept", metavar="DIR")
    token_file: str | None = file(
        None, "the token that visitors must know, readable by its owner alone", unset="a new one at each start"
    )
    history: str = file("h2t2-history.db", "SQLite file of the history")
    worth: str | None = option(None, "what a cost of 1 is worth to you, such as '0.05 EUR'", unset="costs as they are")
    open: bool = option(False, "open it in the browser")

    def run(self) -> None:
        from ..common.lock import hold
        from ..fleet import broker
        from ..fleet import command as remote_command
        from ..fleet.dashboard.pages import Pages
        from ..fleet.dashboard.serve import serve
        from ..fleet.dashboard.watcher import Watcher
        from ..fleet.monitoring.follower import Follower
        from ..fleet.monitoring.history import History
        from ..fleet.monitoring.unit import DEFAULT, Unit

        self.begin_log("dashboard")
        # uvicorn raises the signal again after its own end: the worker of the page for answers has yet to write and to leave
        signals = _signals()
        with as_user_error("--worth"):
            unit = Unit.parse(self.worth) if self.worth else DEFAULT
        to, token = self.connection(), self._token()
        if not broker.free(self.bind, self.port):
            raise UserError(f"--port {self.port}: another program listens there, or this user may not")
        follower = Follower(to).start(patient=True)
        lock = hold(Path(self.history), "h2t2 dashboard", "give one of them another --history")
        history = History(Path(self.history), self)
        watcher = Watcher(follower, history).start()
        host = "localhost" if self.bind in LOCAL else self.bind
        query = f"?token={token}" if token and not self.token_file else ""
        print(f"h2t2 dashboard: http://{host}:{self.port}/{query}", flush=True)
        with ExitStack() as stack:
            send = (lambda device, content: remote_command.send(to, device, content, ANSWER_S)) if self.command else None
            desk = self._desk(stack, self.answer, watcher) if self.answer else None
            pages = Pages(watcher, send, desk, unit)
            serve(pages, watcher, host=self.bind, port=self.port, token=token, show=self.open, is_ended=lambda: bool(signals))
        if lock:
            lock.release()

    def _token(self) -> str:
        """The token that visitors must know; "" if they need none."""
        if self.token_file:
            return read_token(Path(self.token_file))
        guarded = self.command or self.answer or self.bind not in LOCAL
        return secrets.token_urlsafe(16) if guarded else ""

    def _desk(self, stack: ExitStack, name: str, watcher: Watcher) -> Any:
        """Let visitors of the page answer for a pair's remote model; the stack ends the worker."""
        from ..common import pairs
        from ..fleet.dashboard.answer_page import UNDO_S, AnswerPage
        from ..fleet.rdl import person

        pair = pairs.load(name)
        options = WorkerOptions(no_watch=True, keep=self.keep)
        _, desk = stack.enter_context(person.by_a_person(pair, pair.info.model_id, self.connection(), options, hold_s=UNDO_S))
        return partial(AnswerPage, pair, desk, person.classes(pair, self.classes), watcher)


class Metrics(Connected, Daemon):
    """It serves every device and worker on a broker until Ctrl-C."""

    examples = (
        "h2t2 metrics                          # http://127.0.0.1:9110/metrics",
        "h2t2 metrics --grafana fleet.json     # Grafana: Dashboards, New, Import",
        "h2t2 metrics --listen 0.0.0.0:9110 --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
    )
    listen: str = option("9110", "where to serve; the default host is 127.0.0.1", metavar="[HOST:]PORT")
    grafana: str | None = file(None, "write a Grafana dashboard of these metrics, and end; -: to standard output")

    def run(self) -> None:
        if self.grafana:
            from ..fleet import monitoring

            write_json(self.grafana, json.loads(monitoring.GRAFANA.read_text()))
            return
        from prometheus_client import CollectorRegistry

        from ..fleet.metrics_server import MetricsServer
        from ..fleet.monitoring.follower import Follower
        from ..fleet.monitoring.prometheus import FleetCollector

        self.begin_log("metrics")
        signals = _signals()
        host, port = address(self.listen, "--listen")
        follower = Follower(self.connection()).start(patient=True)
        registry = CollectorRegistry()
        registry.register(FleetCollector(follower))
        scraped = MetricsServer(registry, lambda: follower.trouble, host, port, lambda: follower.refused_text)
        print(f"h2t2 metrics: http://{host}:{scraped.port}/metrics", flush=True)
        with suppress(KeyboardInterrupt, SystemExit):
            while not signals:
                time.sleep(0.2)
        scraped.close()
        follower.close()


def _signals() -> list[int]:
    """The signals that came. From now on SIGTERM and Ctrl-C raise SystemExit(0) and KeyboardInterrupt, which end a wait.

    What is raised in the end of an object (`__del__`) is lost: who waits looks into this list as well.
    """
    signals: list[int] = []

    def end(number: int, _: object) -> None:
        signals.append(number)
        raise SystemExit(0) if number == signal.SIGTERM else KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return signals


class HomeAssistant(Connected, Daemon):
    """It uses MQTT discovery and runs until Ctrl-C."""

    examples = (
        "h2t2 home-assistant kitchen=motion 'porch-*=door'   # what the decisions of these devices are",
        "h2t2 home-assistant birds='cat, dog, bird' --broker mqtts://broker.lan:8884 --ca ca.crt --user ha --password-file pw",
    )
    devices: list[str] = option(
        [],
        "the device class of a device's event, such as motion, or the names of its three classes or more, with commas; "
        "DEVICE may have * and ?",
        unset="none, or the classes' numbers",
        positional=True,
        metavar="DEVICE=CLASS",
    )

    def run(self) -> None:
        from ..fleet import announcer

        self.begin_log("home-assistant")
        rules = [announcer.Rule.parse(text) for text in self.devices]
        signals = _signals()
        with suppress(KeyboardInterrupt, SystemExit):
            announcer.announce(self.connection(), rules, is_ended=lambda: bool(signals))
