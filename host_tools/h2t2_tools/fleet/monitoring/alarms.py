"""Alarms: what is wrong with a device, by which of its numbers, and what the user can do."""

import math
from dataclasses import dataclass

from ...common import durations
from ...common.policies import asking_never_pays
from .excess import Excess
from .state import State
from .watched_device import EACH_S, RECENT_S, Device, Rates
from .words import ANSWERED, LINKS

ASLEEP_S = 6 * 3600.0  # a board that sleeps between two samples disconnects meanwhile
SILENT_S = 45.0  # a device that is online publishes its state every ten seconds, unless its state has another period
SILENT_PERIODS = 3  # periods of a device whose period is longer
IN_A_ROW = 5  # questions without an answer, of a device that decides too rarely for a share of them
OUTAGE_S = RECENT_S + EACH_S  # rates cover so long
FALLBACKS = 0.2  # share of the samples that the device wanted to offload and decided locally
SATURATED = 0.05  # share of the samples with a number far outside what its models were calibrated with
MOVED = 0.25  # population stability index from which on a distribution counts as another
CLOCK_S = 60.0
RESTARTS = 3  # in an hour
MIN_SAMPLES = 20  # samples; a share of fewer says nothing
FAILING_SHARE, FAILING_COUNT = 0.05, 2  # exceptions of a sensor or an actuator; from both on it counts as failing
SPENT = 0.05  # share of the samples that came while the budget was empty
DEARER_ERRORS, DEARER_SHARE = 4.0, 0.1  # standard errors, and share of the best simple choice's cost, of an excess
UNANSWERED = 0.25  # share of the questions without an answer in time, which then explains an excess
BIAS_ERRORS = 4.0  # standard errors of a difference between two shares of answers that is no chance
IDLE_S, IDLE_TIMES = 300.0, 10  # without a decision: at least so long, and so many times the usual interval


@dataclass(frozen=True)
class Alarm:
    """kind: one of KINDS; text: for people."""

    kind: str
    text: str


KINDS = (
    "offline", "silent", "sensor", "actuator", "decides nothing", "unanswered", "disk", "budget spent", "fallbacks", "dearer",
    "remote model", "biased", "drift", "saturated", "clock", "restarts", "namesakes", "update",
)  # fmt: skip


def of_device(
    device: Device, rates: Rates | None, excess: Excess | None, *, unix_s: float, listening: float = 0.0
) -> list[Alarm]:
    """The alarms of a device, the gravest first.

    Args:
        rates: device.rates().
        excess: device.slow_figures().excess.
        unix_s: the time now, Unix seconds.
        listening: Fleet.listening.
    """
    state = device.state
    asleep = state is not None and state.duty is not None
    texts = dict.fromkeys(KINDS, "")
    if device.online is False and not asleep:
        texts["offline"] = "it is not connected to the broker"
    elif device.last_message or device.online:
        quiet = unix_s - max(device.last_message, listening)
        if quiet > (ASLEEP_S if asleep else _longest_silence(state)):
            since = unix_s - (device.last_message or listening)
            texts["silent"] = f"no message for {durations.in_words(since)}"
    if state is not None:
        texts["sensor"], texts["actuator"] = _sensor(rates), _actuator(device, rates)
        if not any(texts.values()):
            texts["decides nothing"] = _idle(device, ASLEEP_S if asleep else IDLE_S)
        texts.update(_of_state(device, state, rates, unix_s))
        if state.beta is not None and state.delta_fp is not None and state.delta_fn is not None and state.miss_rate is None:
            costs = state.beta, state.delta_fp, state.delta_fn
            texts["remote model"] = asking_never_pays(*costs, rdl_fp=state.rdl_fp, rdl_fn=state.rdl_fn)
        texts["biased"] = _biased(state.in_time)
        texts["dearer"] = _dearer(state, excess, bool(texts["unanswered"]))
        restarts = device.restarts(unix_s)
        if restarts >= RESTARTS:
            cause = f", last because of: {state.start}" if state.start else ""
            texts["restarts"] = f"it has started {restarts} times within an hour{cause}"
    return [Alarm(kind, texts[kind]) for kind in KINDS if texts[kind]]


def _biased(in_time: list[int] | None) -> str:
    """Say where answers come more often for one local decision than for the other, by more than chance."""
    lost_0, came_0, lost_1, came_1 = in_time or (0, 0, 0, 0)
    asked_0, asked_1 = lost_0 + came_0, lost_1 + came_1
    if min(asked_0, asked_1) < MIN_SAMPLES:
        return ""
    mean = (came_0 + came_1) / (asked_0 + asked_1)
    error = math.sqrt(mean * (1 - mean) * (1 / asked_0 + 1 / asked_1))
    share_0, share_1 = came_0 / asked_0, came_1 / asked_1
    if abs(share_0 - share_1) <= BIAS_ERRORS * error:
        return ""
    shares = f"{share_0:.0%} of its questions are answered where it would say class 0, {share_1:.0%} where another"
    return f"{shares}: answers that are lost by class mislead the policy"


def _longest_silence(state: State | None) -> float:
    """Seconds without a message that are usual for a device that is awake."""
    if state is None or state.telemetry_s is None:
        return SILENT_S
    return max(SILENT_S, SILENT_PERIODS * state.telemetry_s) if state.telemetry_s else math.inf


def _of_state(device: Device, state: State, rates: Rates | None, unix_s: float) -> dict[str, str]:
    """Kind of alarm -> text, of what a state and its rates say. An outage is one alarm, also while the rates still hold it."""
    texts: dict[str, str] = {}
    enough = rates is not None and rates.samples >= MIN_SAMPLES
    if device.online is not False:
        if state.link in LINKS and state.link != ANSWERED:
            texts["unanswered"] = state.unanswered or LINKS[state.link]
        if rates and enough and rates.unaffordable > SPENT:
            share = f"{rates.unaffordable:.0%} of its samples"
            texts["budget spent"] = (
                f"its budget is empty, so it decides {share} alone: raise the budget, or the price of asking"
            )
        if unix_s - device.last_outage <= OUTAGE_S:
            pass
        elif rates and enough and rates.fallbacks - rates.unaffordable > FALLBACKS:
            share = f"{rates.fallbacks - rates.unaffordable:.0%} of its samples"
            cause = "it is paused" if state.paused else "a slow link, or busy workers"
            texts["fallbacks"] = f"{share} got no answer that it asked for: {cause}"
        elif not enough and device.unanswered >= IN_A_ROW:
            texts["fallbacks"] = f"its last {device.unanswered} questions got no answer in time: does the remote model fail?"
    if state.queue_stuck:
        texts["disk"] = "it cannot write its queue, so it asks about no sample of it: is the disk full, or read-only?"
    if state.namesakes:
        texts["namesakes"] = "another device has this name: rename one"
    index = device.slow_figures().stability
    if index is not None and index > MOVED:
        change = f"the distribution of its scores has changed (stability index {index:.2f})"
        texts["drift"] = f"{change}: does it see other things?"
    if rates and enough and rates.saturated > SATURATED:
        share = f"{rates.saturated:.0%} of its samples"
        texts["saturated"] = f"{share} lie far outside the calibration of its models: is it the right scaler?"
    if device.off_s is not None and abs(device.off_s) > CLOCK_S:
        texts["clock"] = f"its clock is {durations.in_words(abs(device.off_s))} {'ahead' if device.off_s > 0 else 'behind'}"
    elif state.time == 0:
        texts["clock"] = "its clock is not set"
    if state.update and state.update.said.startswith("back: "):
        texts["update"] = f"it rolled back package {state.update.tried}: {state.update.said.removeprefix('back: ')}"
    return texts


def _dearer(state: State, excess: Excess | None, outage: bool) -> str:
    """The text of an alarm about a device that costs more than the best simple choice, "" for none.

    Questions without an answer are no cause of their own during an outage.
    A device with a limit for misses asks more often than is cheapest, because its user wants that. One that reads its past
    decides well alone because it has asked a moment ago, so its counters do not show what asking never would cost.
    """
    if excess is None or not excess.learned or state.miss_rate or state.past:
        return ""
    if excess.a_sample <= max(DEARER_ERRORS * excess.error, DEARER_SHARE * excess.best_cost):
        return ""
    if excess.best == "always":
        alone = f"it decides {1 - excess.asked_share:.0%} of its samples alone"
        reason = f"{alone}, which costs {excess.alone:.2f} each; an answer costs {excess.price:.2f}"
    elif excess.unanswered > UNANSWERED:
        if outage:
            return ""
        reason = f"{excess.unanswered:.0%} of its questions cost {excess.price:.2f} each and get no answer in time"
    else:
        question = f"it asks about {excess.asked_share:.0%} of its samples"
        reason = f"{question}; an answer costs {excess.price:.2f} and saves {excess.alone:.2f}"
    return f"a sample costs {excess.a_sample:.2f} more than with asking {excess.best}: {reason}"


def _sensor(rates: Rates | None) -> str:
    """The text of an alarm about the sensor, "" for none."""
    if rates is None:
        return ""
    errors, tries = rates.sensor_errors, rates.sensor_errors + rates.samples
    failing = errors >= FAILING_COUNT and errors > FAILING_SHARE * tries
    return f"its sensor raised in {errors} of {tries} tries: its log says why" if failing else ""


def _actuator(device: Device, rates: Rates | None) -> str:
    """The text of an alarm about the actuator, "" for none. A device that decides rarely is judged by its last samples."""
    step = device.last_step
    if rates and rates.act_errors >= FAILING_COUNT and rates.act_errors > FAILING_SHARE * rates.samples:
        failed, samples = rates.act_errors, rates.samples
    elif step and step.samples and step.act_errors >= step.samples:
        failed, samples = step.act_errors, step.samples
    else:
        return ""
    return f"its actuator raised on {failed} of {samples} samples: its log says why"


def _idle(device: Device, usual_s: float) -> str:
    """The text of an alarm about a device that is online and decides nothing, "" for none.

    Args:
        usual_s: the longest usual interval of such a device.
    """
    state = device.state
    if state is None or not device.last_message or device.online is False:
        return ""
    usual = state.uptime_s / state.samples if state.samples else 0.0
    quiet = device.last_message - device.last_decision if state.samples else float(state.uptime_s)  # as far as its messages say
    if quiet <= max(usual_s, IDLE_TIMES * usual):
        return ""
    length, ask = durations.in_words(quiet), "does its sensor give anything?"
    if not state.samples:
        return f"it has decided nothing since its start, {length} ago: {ask}"
    return f"it has decided nothing for {length}, before that a sample each {usual:.3g} s: {ask}"
