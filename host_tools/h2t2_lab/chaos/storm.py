"""The faults of broker, workers, link, disks and nodes, and the shares of the samples at which they happen."""

import os
import platform
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from h2t2.cpython.interpreter import python
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet.broker import Mosquitto
from h2t2_tools.fleet.rdl import models

from ..proxy import Faults, Proxy
from ..usage import children
from .figures import figures
from .soak import Soak
from .stalls import Stalls
from .subjects import KINDS, RATE, Subject
from .watching import Watching

# number of each fault in a run
BROKER, WORKER, STOPPED, HUNG, DEATHS, STOPS, HOLES = 20, 10, 4, 3, 10, 4, 3
DAMAGES, FULL = (0.02, 0.2, 0.45, 0.7, 0.9), (0.35, 0.75)  # shares of the run: damaged messages, a full disk of the dashboard
NAMES = ["chaos-pi", "chaos-unix"]  # the nodes
HOLE_S, STOPPED_S, HANG_S = 3.0, 4.0, 4.0
STUCK_S = 90.0  # seconds without a decision after which the run stops
SECOND_PAIR = "digits"  # a second model on the same broker
Event = tuple[float, Callable[[], None]]


class Storm:
    """A Mosquitto, two RDL workers of the nodes' model, one of another model, and a bad link between nodes and broker."""

    def __init__(self, folder: Path, pair: pairs.Pair, seed: int) -> None:
        folder.chmod(0o755)
        self.broker = Mosquitto(folder)
        self.broker.start()
        self.faults = Faults(drop=0.05, double=0.05, delay_ms=(0, 20), late=0.08, late_ms=4000, seed=seed)
        self.proxy = Proxy(self.broker.host, self.broker.port, self.faults)
        self.events: Counter[str] = Counter()
        self._hang = folder / "hang"
        event = str(pair.info.event_output("rdl"))
        self._environment = {
            **os.environ,
            "H2T2_CHAOS_MODEL": str(pair.rdl),
            "H2T2_CHAOS_EVENT": event,
            "H2T2_CHAOS_HANG": str(self._hang),
            "TMPDIR": str(folder),  # of killed workers nothing stays there
        }
        own = ["--remote", f"{Path(__file__).parent / 'model.py'}:scores", "--hang-after", "2"]
        own += ["--keep-refused", str(folder / "refused")]
        self._commands = [own, own, ["--pair", SECOND_PAIR]]
        self.workers = [self._worker(command) for command in self._commands]
        self._next = 0

    def _worker(self, options: list[str]) -> subprocess.Popen[bytes]:
        command = python("-m", "h2t2_tools", "rdl", "--broker", self.broker.url, *options)
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, env=self._environment)

    def kill_broker(self) -> None:
        self.broker.stop(kill=True)
        time.sleep(0.2)
        self.broker.start()
        self.events["broker kills"] += 1

    def kill_worker(self) -> None:
        """Kill one of the nodes' two workers, in turn, with its parent."""
        _kill(self.workers[self._next])
        self.events["worker kills"] += 1
        self._next = 1 - self._next
        self.tend()

    def stop_workers(self) -> None:
        """Suspend both workers. The nodes must notice and decide locally."""
        stopped = [child for worker in self.workers[:2] for child in children(worker.pid)]
        _signal(stopped, signal.SIGSTOP)
        self.events["workers stopped"] += 1
        threading.Timer(STOPPED_S, _signal, (stopped, signal.SIGCONT)).start()

    def hang(self) -> None:
        """Make the model hang for HANG_S. Replaced workers hang, too, until then."""
        self._hang.touch()
        self.events["hung models"] += 1
        threading.Timer(HANG_S, lambda: self._hang.unlink(missing_ok=True)).start()

    def tend(self) -> None:
        for n, worker in enumerate(self.workers):
            if worker.poll() is not None:
                self.workers[n] = self._worker(self._commands[n])

    def black_hole(self) -> None:
        self.faults.stall = True
        self.events["black holes"] += 1
        threading.Timer(HOLE_S, self._pass).start()

    def _pass(self) -> None:
        self.faults.stall = False

    def counts(self) -> dict[str, int]:
        f = self.faults
        return {
            **self.events,
            "replies": f.passed + f.dropped,
            "replies dropped": f.dropped,
            "doubled": f.doubled,
            "late": f.delayed,
        }

    def stop(self) -> None:
        for worker in self.workers:
            _kill(worker)
        self.proxy.stop()
        self.broker.stop()


def _signal(processes: list[int], number: int) -> None:
    """Send a signal to those of the processes that live."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """Kill a supervisor and its worker at once."""
    its_own = children(worker.pid)
    worker.kill()
    _signal(its_own, signal.SIGKILL)
    worker.wait()


def unleash(
    names: list[str], samples: int, deadline_ms: int, seed: int, show: Callable[[str, int, int, str], None], hours: float = 0.0
) -> dict[str, Any]:
    """Run the nodes through every fault.

    Args:
        names: Kinds of nodes, of KINDS.
        samples: Samples of each node.
        deadline_ms: Deadline of a decision.
        seed: Seed of the faults and of the samples.
        show: Called with node, decided samples, all samples, and the current step.
        hours: Run for this time instead of a number of samples, and measure the processes.

    Returns:
        {"nodes": a row each, "trouble": why it ended early, "faults", "seconds", "soak", ...}, which report.broken() checks.
    """
    began = time.monotonic()
    pair = pairs.load("breast_cancer")
    labels = models.labels(models.answers(pair)).tolist()
    trouble = []
    samples = round(hours * 3600 * RATE) or samples  # for a soak, more than fit into the time
    with tempfile.TemporaryDirectory(prefix="h2t2-chaos-") as name, Stalls(Path(name)) as stalls:
        folder = Path(name)
        storm = Storm(folder, pair, seed)
        subjects: list[Subject] = []
        watching = None if Watching.missing() else Watching(folder / "watch", storm.broker, NAMES, seed)
        soak = Soak(lambda: storm.workers, subjects, hours) if hours else None
        try:
            for n, kind in enumerate(dict.fromkeys(names)):
                (folder / kind).mkdir()
                order = pairs.draw_indices(pair, samples, seed + n).tolist()
                address = storm.proxy.host, storm.proxy.port
                subjects.append(KINDS[kind](folder / kind, order, labels, address, deadline_ms))
            if watching:
                watching.start()
            _through(storm, subjects, seed, show, soak, watching)
            if watching:
                watching.conclude()
        except Failure as failure:  # the report tells what happened before
            trouble.append(str(failure))
        finally:
            for subject in subjects:
                subject.kill()
            if watching:
                watching.stop()
            storm.stop()
        watched = watching.figures() if watching else None
    return {
        "nodes": [figures(subject) for subject in subjects],
        "trouble": trouble,
        "watch": watched,
        "faults": storm.counts(),
        "deadline_ms": deadline_ms,
        "stall_ms": round(stalls.worst_ms, 1),
        "sync_ms": round(stalls.worst_sync_ms, 1),
        "seed": seed,
        "seconds": time.monotonic() - began,
        "soak": soak.rows if soak else [],
        "machine": f"{platform.machine()}, Python {platform.python_version()}, unix: MicroPython's unix port",
    }


def _through(
    storm: Storm,
    subjects: list[Subject],
    seed: int,
    show: Callable[[str, int, int, str], None],
    soak: Soak | None,
    watching: Watching | None,
) -> None:
    """Run every node to its last sample, with all faults."""
    rng = random.Random(seed)
    often = max(1, round(len(subjects[0].order) / 25000)) if soak else 1  # fewer events, so that processes grow old
    common = [
        event
        for times, action in (
            (BROKER, storm.kill_broker), (WORKER, storm.kill_worker), (HOLES, storm.black_hole),
            (STOPPED, storm.stop_workers), (HUNG, storm.hang),
        )
        for event in _spread(rng, times * often, action)
    ]  # fmt: skip
    if watching:
        common += [(share, watching.damage) for share in DAMAGES] + [(share, watching.fill_disk) for share in FULL]
    common.sort(key=lambda event: event[0])
    own = {subject.name: _own_events(rng, storm, subject, bool(soak)) for subject in subjects}
    for subject in subjects:
        subject.start()
    last, moved = -1, time.monotonic()
    while any(not subject.ended for subject in subjects):
        time.sleep(0.02)
        share = soak.share() if soak else min(subject.progress() for subject in subjects)
        if share >= 1:
            for subject in subjects:
                subject.conclude()
            return
        if common and share >= common[0][0]:
            common.pop(0)[1]()
        storm.tend()
        if watching:
            watching.look()
        if soak:
            soak.look()
        for subject in subjects:
            events = own[subject.name]
            if events and (share if soak else subject.progress()) >= events[0][0]:
                events.pop(0)[1]()
            if not subject.alive() and not subject.ended:
                raise Failure(f"{subject.name}: it ended by itself: {' / '.join(list(subject.log_lines)[-3:])}")
            decided = len(subject.account.decided)
            show(subject.name, decided, len(subject.order), f"life {subject.account.lives}")
        total = sum(len(subject.account.decided) for subject in subjects)
        if total != last:
            last, moved = total, time.monotonic()
        elif time.monotonic() - moved > STUCK_S:
            raise Failure(f"no decision for {STUCK_S:g} s, after {total}")
    for subject in subjects:
        subject.finish(20)


def _spread(rng: random.Random, times: int, action: Callable[[], None]) -> list[Event]:
    """Return the event `times` times, at even distances with some jitter, before the last twentieth."""
    return [((n + rng.uniform(0.2, 0.8)) / times * 0.95, action) for n in range(times)]


def _own_events(rng: random.Random, storm: Storm, subject: Subject, soak: bool) -> list[Event]:
    """Return the deaths and orderly ends of a node and two full disks, one of them with a death."""

    def die() -> None:
        subject.kill()
        subject.start()
        storm.events["node kills"] += 1

    def end() -> None:
        subject.stop()
        if not subject.ended:
            subject.start()
        storm.events["orderly ends"] += 1

    def fill() -> None:
        subject.disk_full(True)
        storm.events["full disks"] += 1

    def empty() -> None:
        subject.disk_full(False)

    disks: list[Event] = [(0.30, fill), (0.345, empty), (0.61, fill), (0.64, empty)]
    deaths, stops = (2, 1) if soak else (DEATHS, STOPS)
    events = _spread(rng, deaths, die) + _spread(rng, stops, end) + disks
    return sorted(events, key=lambda event: event[0])
