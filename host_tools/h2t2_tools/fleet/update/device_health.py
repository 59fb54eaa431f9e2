"""The health of a device that has kept a package: what is wrong with it now and was not before the rollout."""

import hashlib
import time

from ..monitoring import alarms
from ..monitoring.state import State
from ..monitoring.watched_device import Device
from .signed_package import Package

SPARE, SHARE = 3, 0.02  # errors of a sensor that are no alarm: a number, and a share of the samples
STILL_S = 60  # seconds without a decision that count, if the device decided more than one a second before
NOT_OURS = {"clock", "update"}  # alarms that do not concern the package in force


class Health:
    """The health of a device. An alarm that the device had before the rollout does not count.

    Attributes:
        alarms: what was wrong at the last look(), in words.
        since: an earlier state, with which the next is compared.
    """

    def __init__(self, device: Device, package: Package) -> None:
        self.name = device.name
        self.alarms: list[str] = []
        self._device, self._package = device, package
        self._before = {alarm.kind for alarm in self._raised()}
        self.since: State | None = None

    def go_on(self) -> None:
        """Compare later states with the one of now."""
        self.since = self._device.state

    def look(self) -> list[str]:
        """Update and return the alarms."""
        new = [alarm.text for alarm in self._raised() if alarm.kind not in self._before | NOT_OURS]
        state = self._device.state
        self.alarms = new + (_troubles(state, self.since, self._package) if state else ["it has no state any more"])
        return self.alarms

    def _raised(self) -> list[alarms.Alarm]:
        """The device's alarms, without its silence before the first message: retained ones are from before the rollout."""
        device = self._device
        raised = alarms.of_device(device, device.rates(), device.slow_figures().excess, unix_s=time.time())
        return [alarm for alarm in raised if alarm.kind != "silent" or device.last_message]


def _troubles(state: State, since: State | None, package: Package) -> list[str]:
    """What is wrong with a device that has kept a package, by its state and an earlier one."""
    update = state.update
    counter = package.head.counter
    if update is None or update.in_force(package.head.runtime)[0] != counter:
        return [f"package {counter} is not in force any more: {update.said if update else 'it takes no updates'}"]
    troubles = []
    program = package.program
    if program and state.program and state.program != hashlib.sha256(program).hexdigest()[: len(state.program)]:
        troubles.append(f"it runs another program, {state.program}, than the package's")
    if since is None or since.boot != state.boot:
        return troubles
    samples, seconds = state.samples - since.samples, state.uptime_s - since.uptime_s
    if seconds >= STILL_S and samples <= 0 and since.samples > since.uptime_s:
        troubles.append(f"no decision for {seconds} s")
    for name, errors in (("sensor", state.sensor_errors - since.sensor_errors), ("loop", state.errors - since.errors)):
        if errors > SPARE + SHARE * samples:
            troubles.append(f"{errors} errors of its {name}, {samples} samples meanwhile")
    return troubles
