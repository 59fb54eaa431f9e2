"""Two devices in virtual time: for an hour their sensors deliver nothing, then an update brings a sensor that dies.

Broker, worker, package, signature and rollout are real; the devices' hours last seconds (virtual.py).
"""

import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from h2t2.cpython.interpreter import python
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.children import serving
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.monitoring.follower import Follower
from h2t2_tools.fleet.monitoring.state import State
from h2t2_tools.fleet.update import keys, rollout, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions, RolloutOptions
from h2t2_tools.model import bundle

from .. import material

NAMES = "chaos-a", "chaos-b"  # the rollout begins with the first
PAIR = "breast_cancer"
BEFORE = 300  # samples, one a second, before the quiet hour
HOUR = 3600  # calls of the sensor, one a second, that return nothing
DIES = 560  # samples after which the new program's sensor fails for good; a trial needs fewer
TRIAL, TRIAL_S = 500, 600
PATIENCE_S = 120.0  # longest wait for each event, in this machine's time
PROGRAM = material.text("programs/field.py.txt")


class _Device:
    """The process of a node. It prints a summary to its standard output at its end."""

    def __init__(self, folder: Path, name: str, to: Endpoint, public: Path, program: str) -> None:
        self.name, self._folder = name, folder
        folder.mkdir()
        pair = pairs.load(PAIR)
        config = NodeConfig(
            device=name, broker=to.host, port=to.port, event=pair.info.event_output("ldl"), model_id=pair.info.model_id,
            remote_shape=pair.info.remote.shape, every="1s", app="app.py", pair=str(pair.folder), update_key=str(public),
            update_app=True, log_file="log", folder=folder,
        )  # fmt: skip
        (folder / "app.py").write_text(program)
        (folder / "ldl.h2m").write_bytes(bundle.from_tflite(pair.ldl))
        (folder / "config.json").write_text(json.dumps(config.content()))
        command = python("-m", f"{__package__}.virtual")
        with (folder / "out").open("w") as out:
            self._process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)

    def last_log_lines(self) -> str:
        """Return the last lines of its log, or of its output if it has none: it may not have come so far."""
        log = self._folder / "log"
        text = log.read_text() if log.exists() else (self._folder / "out").read_text()
        return " / ".join(text.splitlines()[-3:])

    def ended(self) -> dict[str, Any]:
        """Stop it and return its summary. Raise Failure if it does not end in order."""
        (self._folder / "stop").touch()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        for line in (self._folder / "out").read_text().splitlines():
            if line.startswith('{"summary"'):
                summary: dict[str, Any] = json.loads(line)["summary"]
                return summary
        raise Failure(f"{self.name}: it did not end in order: {self.last_log_lines()}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _program(rows: list[Any]) -> str:
    """Return the first program of the devices."""
    return PROGRAM.format(version=1, rows=rows, before=BEFORE, hour=HOUR, dies=0)


def go_through(say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run the devices. Return rows {"node", "quiet": {...}, "update": {...}}, which broken() checks.

    Args:
        say: Called with a sentence for each step.

    Raises:
        Failure: A device does not get to a step in time.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="h2t2-field-")))
        url = stack.enter_context(broker.running("mosquitto"))
        stack.enter_context(serving(["--pair", PAIR, "--broker", url]))
        to = Endpoint(*broker.parse(url))
        private, public = keys.make(folder / "fleet")
        rows = pairs.load(PAIR).x[:100].tolist()
        devices = []
        for name in NAMES:
            devices.append(_Device(folder / name, name, to, public, _program(rows)))
            stack.callback(devices[-1].kill)
        follower = Follower(to).start()
        stack.callback(follower.close)
        return _hour_and_update(folder, devices, to, follower, private=private, rows=rows, say=say)


def _hour_and_update(
    folder: Path, devices: list[_Device], to: Endpoint, follower: Follower, *, private: Path, rows: list[Any],
    say: Callable[[str], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Run the quiet hour, then the update. Return rows as go_through() does."""
    program = _program(rows)
    say("an hour in which the sensors see nothing")
    after = [_when(follower, device, lambda state: state.samples >= BEFORE + 50) for device in devices]
    say("an update whose sensor dies")
    dying = PROGRAM.format(version=2, rows=rows, before=0, hour=0, dies=DIES)
    (folder / "dying.py").write_text(dying)
    packed = PackageOptions(counter=1, trial=TRIAL, trial_time=TRIAL_S, app=folder / "dying.py")
    signed = signed_package.build(pairs.load(PAIR), (folder / NAMES[0] / "ldl.h2m").read_bytes(), private, packed)
    options = RolloutOptions(patience=PATIENCE_S, wait=PATIENCE_S, soak=1.0)
    report = rollout.roll_out(to, list(NAMES), signed, options, say, lambda count, total: None)
    outcomes = {row["device"]: {"outcome": row["outcome"], "why": row["why"]} for row in report["devices"]}
    rows_after = []
    for device, quiet in zip(devices, after):
        outcome = outcomes.get(device.name, {"outcome": "left", "why": ""})
        counted = "samples", "replies", "errors", "sensor_errors"
        row = {"node": device.name, "quiet": {"seconds": quiet.uptime_s, **{name: getattr(quiet, name) for name in counted}}}
        rows_after.append({**row, "update": {**_afterwards(follower, device, program, quiet), **outcome}})
    return rows_after


def _afterwards(follower: Follower, device: _Device, program: str, quiet: State) -> dict[str, Any]:
    """Return what a device does after the update, until it is stopped. quiet: its state before."""
    digest = hashlib.sha256(program.encode()).hexdigest()[:16]
    started = _when(follower, device, lambda state: state.program == digest and state.samples > 0)
    state = _when(follower, device, lambda state: state.samples > started.samples)
    summary = device.ended()
    return {
        "counter": state.update.counter if state.update else -1,
        "program": state.program == digest,
        "taught": state.taught >= quiet.taught,
        "connections": summary["connections"],
        "errors": summary["errors"],
    }


def _when(follower: Follower, device: _Device, condition: Callable[[State], bool]) -> State:
    """Return the state of a device once it meets a condition. Raise Failure after PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with follower.fleet() as fleet:
            device_row = fleet.devices.get(device.name)
            state = device_row.state if device_row else None
        if state and condition(state):
            return state
        time.sleep(0.05)
    raise Failure(f"{device.name}: it makes no progress: {device.last_log_lines()}")


def broken(rows: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each violated requirement."""
    trouble = []
    for n, row in enumerate(rows):
        name, quiet, update = row["node"], row["quiet"], row["update"]
        if quiet["seconds"] < BEFORE + HOUR or not quiet["replies"]:
            trouble.append(f"{name}: {quiet['seconds']} s, {quiet['replies']} replies after a quiet hour")
        trouble += [f"{name}: {quiet[kind]} {kind} in a quiet hour" for kind in ("errors", "sensor_errors") if quiet[kind]]
        if update["connections"] != 1:
            trouble.append(f"{name}: {update['connections']} connections in its last start")
        if update["outcome"] != ("left" if n else "back"):
            trouble.append(f"{name}: an update whose sensor dies: {update['outcome']} {update['why']}")
        if update["counter"] or not update["program"]:
            trouble.append(f"{name}: package {update['counter']} is in force, the program before it is not")
        if not update["taught"]:
            trouble.append(f"{name}: it has lost what it had learned before the update")
    return trouble
