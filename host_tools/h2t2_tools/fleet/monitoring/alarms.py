"""What is wrong with a device, in words: what, since its numbers say so, and what one can do."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .device import Device, Rates

ASLEEP_S = 6 * 3600.0  # a board that sleeps between two samples leaves the broker meanwhile
SILENT_S = 45.0  # a device that is online says something each ten seconds, unless it is configured otherwise
FALLBACKS = 0.2  # share of the samples decided without asking, or being answered
SATURATED = 0.05  # share of the samples with a number far outside what its models were calibrated with
MOVED = 0.25  # population stability index from which on a distribution counts as another
CLOCK_S = 60.0
RESTARTS = 3  # in an hour
FEW = 20  # samples, below which a share says nothing
FAILING, TWICE = 0.05, 2  # share and number of exceptions of a sensor or an actuator from which on it counts as failing
IDLE_S, IDLE_TIMES = 300.0, 10  # without a decision: at least so long, and so many times what lies between two as a rule


@dataclass(frozen=True)
class Alarm:
    """kind: one of KINDS; text: for people."""

    kind: str
    text: str


KINDS = (
    "offline", "silent", "sensor", "actuator", "decides nothing", "unanswered", "fallbacks", "drift", "saturated", "clock",
    "restarts", "namesakes", "update",
)  # fmt: skip
LINKS = {
    "nobody": "no worker serves its model: start h2t2 rdl",
    "silent": "the workers of its model do not answer",
    "down": "it cannot reach the broker",
}


def stability(usual: list[int], lately: list[int]) -> float:
    """The population stability index between two histograms: the sum over the bins of (p - q) ln(p / q), half a sample added
    to each. Above 0.25 two distributions are usually called different."""
    a, b = sum(usual) + len(usual) / 2, sum(lately) + len(lately) / 2
    total = 0.0
    for x, y in zip(usual, lately):
        p, q = (x + 0.5) / a, (y + 0.5) / b
        total += (p - q) * math.log(p / q)
    return total


def of_device(device: Device, rates: Rates | None, lately: list[int] | None, now: float, listening: float = 0.0) -> list[Alarm]:
    """The alarms of a device, the gravest first. rates, lately: the device's. now: Unix seconds. listening: as Fleet's."""
    found: list[Alarm] = []

    def say(kind: str, text: str) -> None:
        found.append(Alarm(kind, text))

    state = device.state
    asleep = state is not None and state.duty is not None
    if device.online is False and not asleep:
        say("offline", "it is not connected to the broker")
    elif (device.heard or device.online) and now - max(device.heard, listening) > (ASLEEP_S if asleep else SILENT_S):
        quiet = now - (device.heard or listening)
        say("silent", f"nothing heard for {quiet:.0f} s; a telemetry_s above ten seconds is a reason")
    if state is None:
        return found
    sensor, actuator = _sensor(rates), _actuator(device, rates)
    if sensor:
        say("sensor", sensor)
    if actuator:
        say("actuator", actuator)
    idle = _idle(device, ASLEEP_S if asleep else IDLE_S)
    if idle and not found:
        say("decides nothing", idle)
    if device.online is not False:
        if state.link in LINKS:
            say("unanswered", LINKS[state.link])
        if rates and rates.samples >= FEW and rates.fallbacks > FALLBACKS:
            say("fallbacks", f"{rates.fallbacks:.0%} of its samples are decided without the remote model's answer it wanted")
    if state.namesakes:
        say("namesakes", "another device bears this name: rename one")
    if device.usual and lately and len(device.usual) == len(lately):
        index = stability(device.usual, lately)
        if index > MOVED:
            say(
                "drift",
                f"its scores are spread otherwise than at first (stability index {index:.2f}): does it see other things?",
            )
    if rates and rates.samples >= FEW and rates.saturated > SATURATED:
        say("saturated", f"{rates.saturated:.0%} of its samples lie far outside what its models know: is it the right scaler?")
    if device.off_s is not None and abs(device.off_s) > CLOCK_S:
        say("clock", f"its clock is {abs(device.off_s):.0f} s {'ahead' if device.off_s > 0 else 'behind'}")
    elif state.time == 0:
        say("clock", "its clock is not set")
    if state.update and state.update.said.startswith("back: "):
        say("update", f"it did not keep package {state.update.tried}: {state.update.said.removeprefix('back: ')}")
    restarts = device.restarts(now)
    if restarts >= RESTARTS:
        say("restarts", f"it has started {restarts} times within an hour{state.start and f', last because of: {state.start}'}")
    return found


def _sensor(rates: Rates | None) -> str:
    """That the sensor fails, "" where it does not."""
    if rates is None:
        return ""
    errors, tries = rates.sensor_errors, rates.sensor_errors + rates.samples
    failing = errors >= TWICE and errors > FAILING * tries
    return f"its sensor raised in {errors} of {tries} tries: its log says why" if failing else ""


def _actuator(device: Device, rates: Rates | None) -> str:
    """That what acts on decisions fails, "" where it does not. A device that decides rarely is judged by its last samples."""
    step = device.step
    if rates and rates.act_errors >= TWICE and rates.act_errors > FAILING * rates.samples:
        failed, samples = rates.act_errors, rates.samples
    elif step and step.samples and step.act_errors >= step.samples:
        failed, samples = step.act_errors, step.samples
    else:
        return ""
    return f"what acts on its decisions raised on {failed} of {samples} samples: its log says why"


def _idle(device: Device, least_s: float) -> str:
    """That it is there and decides nothing, "" where it does. least_s: what is usual for such a device at the longest."""
    state = device.state
    if state is None or not device.heard or device.online is False:
        return ""
    usual = state.uptime_s / state.samples if state.samples else 0.0
    quiet = device.heard - device.decided if state.samples else float(state.uptime_s)  # as far as it was heard
    if quiet <= max(least_s, IDLE_TIMES * usual):
        return ""
    if not state.samples:
        return f"it has decided nothing since its start, {quiet:.0f} s ago: does its sensor give anything?"
    return f"it has decided nothing for {quiet:.0f} s, before that a sample each {usual:.3g} s: does its sensor give anything?"
