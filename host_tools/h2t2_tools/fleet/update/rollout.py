"""`h2t2 update`: delivers a package to one device, to a tenth of them, to all.

It stops where a device reports a failure, or raises an alarm after it has kept the package.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from queue import Empty, SimpleQueue
from typing import Any

from h2t2.cpython import device_names
from h2t2.link import wire

from ...common import durations
from ...common.errors import Failure, UserError
from ..connection import connect
from ..endpoint import Endpoint
from ..monitoring.watched_fleet import Fleet
from .delivery import ENDED, INSTALLED, TRIAL, Delivery, KeyDelivery
from .device_health import Health
from .rollout_options import RolloutOptions
from .signed_package import Package

MEET_S = 2.0  # a broker delivers its retained messages by then
AT_ONCE = 16  # deliveries at a time
TURN_S = 0.2
BROKER_S = 30.0  # for which the broker may be away
NEWS_S = 60.0  # between two lines about trials
BURST = 500  # messages taken at a time: every device of a large fleet publishes its state


STEPS = (0, 10, 100)  # percent of the devices that have the package after each step; 0: one device
Progress = Callable[[int, int], None]  # bytes received, bytes in all


def roll_out(
    to: Endpoint, patterns: list[str], package: Package, options: RolloutOptions, say: Callable[[str], None], progress: Progress
) -> dict[str, Any]:
    """Deliver a package step by step. After each step all devices that have the package are watched; a key needs no watch.

    Args:
        to: the broker.
        patterns: names of devices, with * and ? as in file names.
        say: is called with a line of text about each event.
        progress: is called with the bytes of each step.

    Returns:
        {"package", "devices": [{"device", "outcome", "why", "sent", "alarms"}], "left": [device, ...], "stopped", "trouble"}.
        trouble: why the rollout could not go on, in words; "" if it could.

    Raises:
        UserError: a pattern matches no device.
        Failure: the broker cannot be reached at the start.
    """
    with _Connection(to) as line:
        line.listen(MEET_S)
        names = match_devices(line.fleet, patterns)
        healths = {name: Health(line.fleet.devices[name], package) for name in names}
        delivered: list[Delivery] = []
        stopped, trouble = False, ""
        for upto in device_counts(len(names), options.at_once):
            todo = names[len(delivered) : upto]
            if not todo or stopped:
                continue
            say(f"{len(todo)} of {len(names)} devices: {', '.join(todo[:5])}{', ...' if len(todo) > 5 else ''}")
            kind = KeyDelivery if package.head.rotates else Delivery
            step = [kind(package, name, options.patience, options.wait) for name in todo]
            delivered += step
            try:
                line.deliver(step, say, progress)
                stopped = any(delivery.phase != INSTALLED for delivery in delivered)
                for delivery in step:
                    healths[delivery.device].since = delivery.state
                if not stopped and not package.head.rotates:
                    soak = options.soak if any(delivery.is_transferred for delivery in step) else 0.0
                    line.watch([healths[delivery.device] for delivery in delivered], soak, options.patience, say)
                    stopped = any(healths[delivery.device].alarms for delivery in delivered)
            except Failure as failure:  # the report tells what was delivered before
                stopped, trouble = True, str(failure)
                for delivery in step:
                    delivery.lose(trouble)
    remaining = names[len(delivered) :]
    rows = [{**delivery.to_json(), "alarms": healths[delivery.device].alarms} for delivery in delivered]
    return {"package": package.to_json(), "devices": rows, "left": remaining, "stopped": stopped, "trouble": trouble}


def device_counts(devices: int, at_once: bool) -> list[int]:
    """How many of the devices have the package after each step: one, a tenth (rounded up), all; at once: all."""
    return [devices] if at_once else [max(1, -(-devices * percent // 100)) for percent in STEPS]


def trials(deliveries: list[Delivery], clock_s: float) -> str:
    """Describe the trials under way by the one that ends last, and how to come back to them; "" for none."""
    trying = [delivery for delivery in deliveries if delivery.phase == TRIAL]
    if not trying:
        return ""
    last = max(trying, key=lambda delivery: delivery.trial_end)
    others = f" and {len(trying) - 1} more" if len(trying) > 1 else ""
    remaining = last.trial_end - clock_s
    end = f"about {durations.in_words(remaining)} to go" if remaining > 0 else "the end is due"
    back = "Ctrl-C ends this command alone: the same command looks again"
    return f"{last.device}{others} on trial: {last.reason}; {end}. {back}"


def match_devices(fleet: Fleet, patterns: list[str]) -> list[str]:
    """The devices that match, online ones first. UserError for a pattern that matches none."""
    matches: dict[str, None] = {}
    for pattern in patterns:
        names = [name for name in sorted(fleet.devices) if fnmatchcase(name, pattern)]
        if not names:
            raise UserError(f"{pattern}: no such device has ever been on this broker")
        matches.update(dict.fromkeys(names))
    return sorted(matches, key=lambda name: not fleet.devices[name].online)


class _Connection:
    """The connection to the broker: it receives states and answers, and sends chunks."""

    def __init__(self, to: Endpoint) -> None:
        self.fleet = Fleet()
        self._messages: SimpleQueue[tuple[str, bytes, bool]] = SimpleQueue()
        self._answers: dict[str, Delivery] = {}
        topics = [wire.topic("+", leaf) for leaf in ("status", "state", "answer")]
        take = self._messages.put
        self._session = connect(to, topics, lambda message: take((message.topic, bytes(message.payload), message.retain)))

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def listen(self, seconds: float, limit: int = 1 << 30) -> None:
        """Take messages, for so long, or so many of them."""
        end = time.monotonic() + seconds
        for _ in range(limit):
            try:
                topic, payload, retained = self._messages.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                return
            self._take(topic, payload, retained)

    def deliver(self, deliveries: list[Delivery], say: Callable[[str], None], progress: Progress) -> None:
        """Deliver until each has ended."""
        for delivery in deliveries:
            device = self.fleet.devices.get(delivery.device)
            delivery.check_before(device.state if device else None, time.monotonic())
        waiting, running, news_due = deque(deliveries), list[Delivery](), 0.0
        self._answers = {delivery.device: delivery for delivery in deliveries}
        size = len(deliveries[0].package.content)
        while waiting or running:
            while waiting and len([delivery for delivery in running if delivery.received_bytes < size]) < AT_ONCE:
                running.append(waiting.popleft())
                running[-1].last_progress = time.monotonic()
            for delivery in list(running):
                device = self.fleet.devices.get(delivery.device)
                if device is None:
                    delivery.lose("it was removed from the broker")
                if delivery.phase in ENDED:
                    say(f"{delivery.device}: {delivery.phase}: {delivery.reason}")
                    running.remove(delivery)
                    continue
                online = device is not None and device.online is not False
                for payload in delivery.next_payloads(online, time.monotonic()):
                    self._session.publish(wire.topic(delivery.device, "command"), payload)
            received = sum(delivery.received_bytes if delivery.phase not in ENDED else size for delivery in deliveries)
            progress(received, size * len(deliveries))
            if time.monotonic() >= news_due and (news := trials(running, time.monotonic())):
                say(news)
                news_due = time.monotonic() + NEWS_S
            self.listen(TURN_S, 1)
            self.listen(0.0, BURST)
            self._wait_for_broker()

    def watch(self, healths: list[Health], soak: float, patience: float, say: Callable[[str], None]) -> None:
        """Report the alarms of each device after `soak` seconds. Alarms that end within `patience` do not count."""
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
        """Take messages for so long. Failure where the broker stays away."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            self.listen(min(TURN_S, remaining))
            self._wait_for_broker()

    def _wait_for_broker(self) -> None:
        """Wait for a broker that is away to come back."""
        if not self._session.up.wait(BROKER_S):
            raise Failure(f"the broker is away: {self._session.trouble}; the same command continues where it stopped")

    def _take(self, topic: str, payload: bytes, retained: bool) -> None:
        name, leaf = device_names.device_of(topic), topic.rsplit("/", 1)[-1]
        if name is None:
            return
        delivery = self._answers.get(name)
        if leaf == "answer":
            if delivery and not retained:
                delivery.take_answer(payload, time.monotonic())
            return
        self.fleet.take(topic, payload, retained)
        device = self.fleet.devices.get(name)
        if delivery and leaf == "state" and device and device.state:
            delivery.take_state(device.state, time.monotonic())
