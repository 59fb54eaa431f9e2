"""`h2t2 update`: a package to one device, a tenth of them, all of them; no further where one reports a failure, or where a
device that has kept it raises an alarm afterwards."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from queue import Empty, SimpleQueue
from typing import Any

from h2t2.cpython.paho import Session, make_client
from h2t2.link import wire

from ...common.errors import Failure, UserError
from ..endpoint import Endpoint, unreachable
from ..monitoring.fleet import Fleet
from ..monitoring.follower import LARGEST
from .delivery import ENDED, KEPT, Delivery
from .health import Health
from .package import Package

MEET_S = 2.0  # a broker that is there tells of its devices by then
AT_ONCE = 16  # deliveries on their way
TURN_S = 0.2
BURST = 500  # messages taken at a time: every device of a large fleet tells its state


@dataclass(frozen=True)
class Plan:
    """steps: the share of the devices that have the package after each, 0: one of them. patience, trial: as Delivery's. soak:
    seconds after each step in which the devices that have kept it are watched."""

    steps: tuple[float, ...] = (0.0, 0.1, 1.0)
    patience: float = 60.0
    trial: float = 86400.0
    soak: float = 300.0


Progress = Callable[[int, int], None]  # bytes sent, bytes wanted


def roll_out(
    to: Endpoint, patterns: list[str], package: Package, plan: Plan, say: Callable[[str], None], progress: Progress
) -> dict[str, Any]:
    """The report: {"package", "devices": [{"device", "outcome", "why", "sent", "alarms"}], "left": [...], "stopped"}.

    After each step, and so after the last one too, every device that has the package by then is looked at again.

    patterns: names of devices, with * and ? as in file names. progress: told of every step.
    UserError where a pattern names nobody; Failure where the broker cannot be had.
    """
    with _Line(to) as line:
        line.listen(MEET_S)
        names = chosen(line.fleet, patterns)
        healths = {name: Health(line.fleet.devices[name], package) for name in names}
        done: list[Delivery] = []
        stopped = False
        for share in plan.steps:
            upto = max(1, round(len(names) * share + 0.4999))
            todo = names[len(done) : upto]
            if not todo or stopped:
                continue
            say(f"{len(todo)} of {len(names)} devices: {', '.join(todo[:5])}{', ...' if len(todo) > 5 else ''}")
            step = [Delivery(package, name, plan.patience, plan.trial) for name in todo]
            line.deliver(step, say, progress)
            done += step
            stopped = any(delivery.step != KEPT for delivery in done)
            for delivery in step:
                healths[delivery.device].since = delivery.state
            if not stopped:
                soak = plan.soak if any(delivery.brought for delivery in step) else 0.0
                line.watch([healths[delivery.device] for delivery in done], soak, plan.patience, say)
                stopped = any(healths[delivery.device].alarms for delivery in done)
    left = names[len(done) :]
    rows = [{**delivery.told(), "alarms": healths[delivery.device].alarms} for delivery in done]
    return {"package": package.told(), "devices": rows, "left": left, "stopped": stopped}


def chosen(fleet: Fleet, patterns: list[str]) -> list[str]:
    """The devices meant, those that are online first. UserError for a pattern that names none."""
    found: dict[str, None] = {}
    for pattern in patterns:
        names = [name for name in sorted(fleet.devices) if fnmatchcase(name, pattern)]
        if not names:
            raise UserError(f"{pattern}: no such device has ever been on this broker")
        found.update(dict.fromkeys(names))
    return sorted(found, key=lambda name: not fleet.devices[name].online)


class _Line:
    """The broker: what devices say, and chunks to them."""

    def __init__(self, to: Endpoint) -> None:
        self.fleet = Fleet()
        self._heard: SimpleQueue[tuple[str, bytes, bool]] = SimpleQueue()
        self._answers: dict[str, Delivery] = {}
        topics = [wire.topic("+", leaf) for leaf in ("status", "state", "answer")]

        def client() -> Any:
            made = make_client("", limit=LARGEST, **to.login)
            made.on_message = lambda _client, _data, message: self._heard.put(
                (message.topic, bytes(message.payload), message.retain)
            )
            return made

        self._session = Session(to.host, to.port, client, topics)

    def __enter__(self) -> _Line:
        self._session.start()
        try:
            self._session.open()
        except OSError as error:
            self._session.close()
            raise unreachable(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def listen(self, seconds: float, most: int = 1 << 30) -> None:
        """Take what comes, for so long, or so many messages."""
        end = time.monotonic() + seconds
        for _ in range(most):
            try:
                topic, payload, retained = self._heard.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                return
            self._take(topic, payload, retained)

    def deliver(self, every: list[Delivery], say: Callable[[str], None], progress: Progress) -> None:
        """Until each has ended."""
        now = time.monotonic()
        for one in every:
            one.begin(self.fleet.devices[one.device].state, now)
        waiting, running = deque(every), list[Delivery]()
        self._answers = {one.device: one for one in every}
        size = len(every[0].package.content)
        while waiting or running:
            while waiting and len([one for one in running if one.done < size]) < AT_ONCE:
                running.append(waiting.popleft())
                running[-1].heard = time.monotonic()
            for one in list(running):
                if one.step in ENDED:
                    say(f"{one.device}: {one.step}: {one.why}")
                    running.remove(one)
                    continue
                online = self.fleet.devices[one.device].online is not False
                for payload in one.next(online, time.monotonic()):
                    self._session.publish(wire.topic(one.device, "command"), payload)
            progress(sum(one.done if one.step not in ENDED else size for one in every), size * len(every))
            self.listen(TURN_S, 1)
            self.listen(0.0, BURST)
            if not self._session.up.is_set():
                self._lost_for(30.0)

    def watch(self, healths: list[Health], soak: float, patience: float, say: Callable[[str], None]) -> None:
        """Have each say its alarms, after `soak` seconds, and those that pass within `patience` not at all."""
        if soak:
            say(f"watching {len(healths)} devices for {soak:g} s")
        self._listen_for(soak)
        end = time.monotonic() + patience
        while any(health.look() for health in healths) and time.monotonic() < end:
            self._listen_for(min(TURN_S, patience))
        for health in healths:
            for text in health.alarms:
                say(f"{health.name}: {text}")
            health.go_on()

    def _listen_for(self, seconds: float) -> None:
        """Take what comes for so long. Failure where the broker stays away."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.listen(min(TURN_S, left))
            if not self._session.up.is_set():
                self._lost_for(30.0)

    def _lost_for(self, seconds: float) -> None:
        """Wait for the broker to come back."""
        if not self._session.up.wait(seconds):
            raise Failure(f"the broker is away: {self._session.trouble}; the same command goes on where it stopped")

    def _take(self, topic: str, payload: bytes, retained: bool) -> None:
        name, leaf = wire.device_of(topic), topic.rsplit("/", 1)[-1]
        if name is None:
            return
        one = self._answers.get(name)
        if leaf == "answer":
            if one and not retained:
                one.answered(payload, time.monotonic())
            return
        self.fleet.take(topic, payload, retained)
        device = self.fleet.devices.get(name)
        if one and leaf == "state" and device and device.state:
            one.saw(device.state, time.monotonic())
