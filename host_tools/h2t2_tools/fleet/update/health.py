"""How a device does once it has kept a package: what is wrong with it now that was not before the rollout."""

from __future__ import annotations

import hashlib
import time

from ..monitoring import alarms
from ..monitoring.device import Device
from ..monitoring.state import State
from .package import Package

SPARE, SHARE = 3, 0.02  # errors of a sensor that are no alarm: so many, and that share of its samples
STILL_S = 60  # seconds without a decision that count, where there were some each second before
NOT_OURS = {"clock", "update"}  # alarms that say nothing of the package that is in force


class Health:
    """Of a device. alarms: what was wrong at the last look(), in words. since: an earlier state, to compare with.

    An alarm that the device had before the rollout does not count.
    """

    def __init__(self, device: Device, package: Package) -> None:
        self.name = device.name
        self.alarms: list[str] = []
        self._device, self._package = device, package
        self._before = {alarm.kind for alarm in self._raised()}
        self.since: State | None = None

    def go_on(self) -> None:
        """Hold what comes from now on against what the device says now."""
        self.since = self._device.state

    def look(self) -> list[str]:
        """The alarms of this moment."""
        new = [alarm.text for alarm in self._raised() if alarm.kind not in self._before | NOT_OURS]
        state = self._device.state
        self.alarms = new + (_troubles(state, self.since, self._package) if state else ["its state is gone"])
        return self.alarms

    def _raised(self) -> list[alarms.Alarm]:
        """Its alarms; none of its silence before it was heard: what was retained is from before the rollout listened."""
        device = self._device
        raised = alarms.of_device(device, device.rates(), device.lately, time.time())
        return [alarm for alarm in raised if alarm.kind != "silent" or device.last_message]


def _troubles(state: State, since: State | None, package: Package) -> list[str]:
    """What a state says of a package that its device has kept. since: an earlier state."""
    update = state.update
    counter = package.head.counter
    if update is None or update.counter != counter:
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
