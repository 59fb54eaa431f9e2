"""`h2t2 demo --fleet N`: a broker, a worker and N nodes on this machine.

Three nodes are in trouble, one wastes money, one gets an update that helps, one has too few answers to judge by, and one
explores more than the others, so that it soon has enough.
"""

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..common import pairs, places
from ..common.errors import Failure
from ..common.places import temporary_folder
from ..fleet import broker
from ..fleet.children import child, serving
from ..fleet.endpoint import Endpoint
from ..fleet.monitoring import fleet_report
from ..fleet.monitoring.follower import Follower
from ..fleet.monitoring.state import State
from ..fleet.monitoring.watched_device import SPAN, USUAL
from ..fleet.update import keys
from ..fleet.update import signed_package as package_file
from ..fleet.update.rollout_options import PackageOptions
from ..model import bundle

EVERY = {"changed": "15ms", "wrong-scaler": "50ms", "updated": "25ms", "newcomer": "2s", "sensor-01": "25ms"}
WELL = "100ms"  # interval between samples of all other nodes
ENDLESS = 1_000_000  # samples; the demo ends the nodes before
CUT_S = 10.0  # the node 'cut-off' loses its power after being online for this time
UPDATE_ANSWERS = 1000  # the node 'updated' gets its package after so many answers
TRIAL, TRIAL_S = 100, 5  # shortest trial of that package, in samples and seconds
EXPECTED = {"changed": "drift", "cut-off": "offline", "wrong-scaler": "saturated"}
SPECIAL = (*EXPECTED, "asks-always", "updated", "newcomer")
DEFECTIVE, MENDED = "app.py", "mended.py"  # programs of the node 'updated'
EXPLORING = ("--policy=h2t2", "--exploration=epsilon", "--epsilon=0.1")  # nodes whose answers soon tell explore a tenth
SETTLED, SETTLED_BETA = "sensor-01", 0.3  # at this price no score is a close call, so that its thresholds settle within minutes
DEAR_BETA = 0.4  # costs of the node 'asks-always': deciding alone is cheaper than this
FACTOR = 10  # as if the app read millimetres instead of centimetres
APP = places.text("demo/programs/other_unit.py.txt")
TWO_PATHS = places.text("demo/programs/two_paths.py.txt")


def demonstrate(
    pair: pairs.Pair, nodes: int, kind: str, page: int, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run a fleet.

    Args:
        pair: A pair of two classes.
        nodes: Number of nodes, at least 7: those of SPECIAL and a healthy one.
        kind: Broker, as broker.running() takes it.
        page: Port of a dashboard; 0: no dashboard.
        seconds: Duration; 0: until Ctrl-C.
        say: Called with a sentence for each event.

    Returns:
        The report of `h2t2 fleet --json` at the end, and `alarms_s`: the seconds until each of the three raised its alarm.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary_folder("fleet")))
        if kind == "amqtt" and broker.mosquitto():
            kind = "mosquitto"  # amqtt in this process is slow
        url = stack.enter_context(broker.running(kind))
        host, port = broker.parse(url)
        stack.enter_context(serving(["--pair", str(pair.folder), "--broker", url]))
        if page:
            _open_page(stack, url, page, folder, say)
        began = time.monotonic()
        follower = Follower(Endpoint(host, port)).start()
        stack.callback(follower.close)
        package: Path | None = _prepare_update(pair, folder)
        running = _start_nodes(stack, pair, folder, names=_names(nodes), url=url)
        _announce(nodes, url, say)
        alarms: dict[str, float] = {}
        online: float | None = None  # when the node 'cut-off' came online
        try:
            while not seconds or time.monotonic() < began + seconds:
                time.sleep(0.5)
                if online is None and _state(follower, "cut-off"):
                    online = time.monotonic()
                if online is not None and time.monotonic() > online + CUT_S:
                    running["cut-off"].kill()  # a second kill does nothing
                updated = _state(follower, "updated")
                if package and updated and updated.replies >= UPDATE_ANSWERS:
                    _deliver(stack, url, package, say)
                    package = None
                _note(follower, alarms, began, say)
        except KeyboardInterrupt:
            pass
        with follower.fleet() as fleet:
            fleet_rows = fleet_report.of_fleet(fleet, time.time())
    return {**fleet_rows, "alarms_s": alarms}


def _start_nodes(
    stack: ExitStack, pair: pairs.Pair, folder: Path, *, names: list[str], url: str
) -> dict[str, subprocess.Popen[str]]:
    """Start the nodes; they end with the stack. Return name -> process."""
    running = {}
    for n, name in enumerate(names):
        command = ["node", "--pair", str(pair.folder), "--broker", url, "--device", name, f"--seed={n + 1}"]
        command += [f"--every={EVERY.get(name, WELL)}", f"--samples={ENDLESS}", "--out=/dev/null"]
        command += ["--rdl-fp=0", "--rdl-fn=0", *_options(name, pair, folder)]  # what a node costs is judged by the answers
        running[name] = stack.enter_context(child(command, stderr=subprocess.DEVNULL))
    for process in running.values():  # they end at once, because each needs some time
        stack.callback(process.terminate)
    return running


def _state(follower: Follower, name: str) -> State | None:
    """Return the last state of a node; None: it has published none."""
    with follower.fleet() as fleet:
        return fleet.devices[name].state if name in fleet.devices else None


def _announce(nodes: int, url: str, say: Callable[[str], None]) -> None:
    say(f"{nodes} nodes on {url}; 'changed', 'cut-off' and 'wrong-scaler' will have alarms within a minute; Ctrl-C ends it")
    say("'asks-always' wastes money, 'updated' gets an update that helps")
    say(f"'newcomer' has too few answers to judge its thresholds by, {SETTLED!r} soon has enough")


def _note(follower: Follower, alarms: dict[str, float], began: float, say: Callable[[str], None]) -> None:
    """Record the nodes in trouble whose alarm has been raised."""
    unix_s = time.time()
    with follower.fleet() as fleet:
        devices = {name: fleet_report.of_device(fleet.devices[name], unix_s) for name in EXPECTED if name in fleet.devices}
    for name, device_report in devices.items():
        for alarm in device_report["alarms"]:
            if alarm["kind"] == EXPECTED[name] and name not in alarms:
                alarms[name] = round(time.monotonic() - began, 1)
                say(f"after {alarms[name]:.0f} s: {name}: {alarm['kind']}: {alarm['text']}")


def _names(nodes: int) -> list[str]:
    return [*SPECIAL, *(f"sensor-{n:02}" for n in range(1, nodes - len(SPECIAL) + 1))]


def _options(name: str, pair: pairs.Pair, folder: Path) -> list[str]:
    """Return the options that make a node special."""
    if name == "changed":
        order = _drifting(pair)
        (folder / "order.txt").write_text("\n".join(map(str, order)) + "\n")
        return ["--order", str(folder / "order.txt")]
    if name == "wrong-scaler":
        rows = _write_rows(pair, folder / "wrong.csv", FACTOR)
        (folder / "app.py").write_text(APP.format(path=str(rows)))
        return ["--app", str(folder / "app.py")]
    if name == "asks-always":  # its exploration rate is 1
        return ["--policy=h2t2", "--exploration=epsilon", "--epsilon=1", f"--beta={DEAR_BETA}"]
    if name == SETTLED:
        return [*EXPLORING, f"--beta={SETTLED_BETA}"]
    if name == "updated":
        home = folder / name
        files = [f"--app={home / DEFECTIVE}", f"--snapshot={home / 'h2t2.state'}", f"--update-key={folder / 'fleet.pub'}"]
        return [*files, "--update-app", *EXPLORING]
    return []


def _write_rows(pair: pairs.Pair, path: Path, factor: float = 1.0) -> Path:
    """Write the measured numbers of the pair's samples, times a factor, a row for each sample."""
    path.write_text("".join(",".join(f"{factor * float(x):g}" for x in row.ravel()) + "\n" for row in pair.x))
    return path


def _prepare_update(pair: pairs.Pair, folder: Path) -> Path:
    """Write two programs for the node 'updated', and sign a package with the second.

    The first one has a defect: it gives the local model the sample before. The second one mends it.

    Returns:
        The package.
    """
    home = folder / "updated"
    home.mkdir()
    rows = _write_rows(pair, home / "rows.csv")
    for name, behind in ((DEFECTIVE, 1), (MENDED, 0)):
        (home / name).write_text(TWO_PATHS.format(path=str(rows), behind=behind))
    private, _ = keys.make(folder / "fleet")
    options = PackageOptions(counter=1, trial=TRIAL, trial_time=TRIAL_S, app=home / MENDED)
    signed = package_file.build(pair, bundle.from_tflite(pair.ldl), private, options)
    path = folder / "mended.h2u"
    path.write_bytes(signed.content)
    return path


def _deliver(stack: ExitStack, url: str, package: Path, say: Callable[[str], None]) -> None:
    """Begin to send a package to the node 'updated', as an operator does."""
    say("'updated' gets a package that mends its program")
    command = ["update", "updated", str(package), "--broker", url, "--soak=0"]
    stack.enter_context(child(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def _drifting(pair: pairs.Pair) -> list[int]:
    """Return random samples until the follower knows what is usual, then events only."""
    rng = np.random.default_rng(1)
    usual = rng.integers(0, len(pair.y), USUAL + SPAN)
    events = np.flatnonzero(np.asarray(pair.y) == 1)
    return [int(n) for n in (*usual, *rng.choice(events, 200_000))]


def _open_page(stack: ExitStack, url: str, page: int, folder: Path, say: Callable[[str], None]) -> None:
    """Start the dashboard."""
    arguments = ["dashboard", "--broker", url, "--port", str(page), "--history", str(folder / "history.db")]
    process = stack.enter_context(child(arguments, stdout=subprocess.PIPE))
    assert process.stdout is not None
    address = process.stdout.readline()
    if not address:
        raise Failure("the dashboard did not start")
    say(address.strip().removeprefix("h2t2 "))
