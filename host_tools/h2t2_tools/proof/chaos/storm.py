"""What happens to the nodes: broker, workers, link, disks and lives, at shares of the way through the samples."""

from __future__ import annotations

import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...common import pairs
from ...common.errors import Failure
from ...fleet.broker import Mosquitto
from ..proxy import Faults, Proxy
from .report import figures
from .subjects import KINDS, Subject

BROKER, WORKER, NODE, HOLES = 20, 10, 10, 3  # how often each is killed; how often the link is a black hole
HOLE_S = 3.0
STUCK_S = 90.0  # seconds without a decision after which the run is given up
Event = tuple[float, Callable[[], None]]


class Storm:
    """A Mosquitto, two RDL workers, and a bad link between nodes and broker."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.chmod(0o755)
        self.broker = Mosquitto(folder)
        self.broker.start()
        self.faults = Faults(drop=0.05, double=0.05, delay_ms=(0, 20), late=0.01, late_ms=30000, seed=seed)
        self.proxy = Proxy(self.broker.host, self.broker.port, self.faults)
        self.done: Counter[str] = Counter()
        self._workers = [self._worker(), self._worker()]
        self._next = 0

    def _worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "h2t2_tools", "rdl", "--broker", self.broker.url]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)

    def kill_broker(self) -> None:
        self.broker.stop(kill=True)
        time.sleep(0.2)
        self.broker.start()
        self.done["broker kills"] += 1

    def kill_worker(self) -> None:
        """One of the two, in turn; a worker that ended because it could not reach its broker is started again as well."""
        self._workers[self._next].kill()
        self.done["worker kills"] += 1
        self._next = 1 - self._next
        self.tend()

    def tend(self) -> None:
        for n, worker in enumerate(self._workers):
            if worker.poll() is not None:
                self._workers[n] = self._worker()

    def black_hole(self) -> None:
        self.faults.stall = True
        self.done["black holes"] += 1
        threading.Timer(HOLE_S, self._pass).start()

    def _pass(self) -> None:
        self.faults.stall = False

    def counts(self) -> dict[str, int]:
        f = self.faults
        return {
            **self.done,
            "replies": f.passed + f.dropped,
            "replies dropped": f.dropped,
            "doubled": f.doubled,
            "late": f.delayed,
        }

    def stop(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self.proxy.stop()
        self.broker.stop()


def unleash(
    names: list[str], samples: int, deadline_ms: int, seed: int, show: Callable[[str, int, int, str], None]
) -> dict[str, Any]:
    """The report: {"nodes": a row each, "faults", "seconds", ...}; report.broken() says what in it must not be.

    show(node, decided, samples, what happens now). Failure where nothing is decided for STUCK_S seconds.
    """
    began = time.monotonic()
    pair = pairs.load("breast_cancer")
    with tempfile.TemporaryDirectory(prefix="h2t2-chaos-") as name:
        folder = Path(name)
        storm = Storm(folder, seed)
        subjects: list[Subject] = []
        try:
            for n, kind in enumerate(dict.fromkeys(names)):
                (folder / kind).mkdir()
                order = pairs.stream(pair, samples, seed + n).tolist()
                subjects.append(KINDS[kind](folder / kind, order, (storm.proxy.host, storm.proxy.port), deadline_ms))
            _through(storm, subjects, seed, show)
        finally:
            for subject in subjects:
                subject.kill()
            storm.stop()
    return {
        "nodes": [figures(subject) for subject in subjects],
        "faults": storm.counts(),
        "deadline_ms": deadline_ms,
        "seed": seed,
        "seconds": time.monotonic() - began,
        "machine": f"{platform.machine()}, Python {platform.python_version()}, unix: MicroPython's unix port",
    }


def _through(storm: Storm, subjects: list[Subject], seed: int, show: Callable[[str, int, int, str], None]) -> None:
    """Run every node to its last sample, with everything that happens on the way."""
    rng = random.Random(seed)
    common = _spread(rng, BROKER, storm.kill_broker) + _spread(rng, WORKER, storm.kill_worker)
    common = sorted(common + _spread(rng, HOLES, storm.black_hole), key=lambda event: event[0])
    own = {subject.name: _own_events(rng, storm, subject) for subject in subjects}
    for subject in subjects:
        subject.start()
    last, moved = -1, time.monotonic()
    while any(not subject.ended for subject in subjects):
        time.sleep(0.02)
        share = min(subject.progress() for subject in subjects)
        if common and share >= common[0][0]:
            common.pop(0)[1]()
        storm.tend()
        for subject in subjects:
            events = own[subject.name]
            if events and subject.progress() >= events[0][0]:
                events.pop(0)[1]()
            if not subject.alive() and not subject.ended:
                raise Failure(f"{subject.name}: it ended by itself: {' / '.join(subject.said[-3:])}")
            decided = len(subject.account.decided)
            show(subject.name, decided, len(subject.order), f"life {subject.account.lives}")
        total = sum(len(subject.account.decided) for subject in subjects)
        if total != last:
            last, moved = total, time.monotonic()
        elif time.monotonic() - moved > STUCK_S:
            raise Failure(f"no decision for {STUCK_S:g} s, after {total}")
    for subject in subjects:
        subject.finish(20)


def _spread(rng: random.Random, times: int, what: Callable[[], None]) -> list[Event]:
    """So many of them, evenly spread with some chance, all before the last twentieth."""
    return [((n + rng.uniform(0.2, 0.8)) / times * 0.95, what) for n in range(times)]


def _own_events(rng: random.Random, storm: Storm, subject: Subject) -> list[Event]:
    """A node's deaths, and twice a full disk, once with a death in it."""

    def die() -> None:
        subject.kill()
        subject.start()
        storm.done["node kills"] += 1

    def full(state: bool) -> Callable[[], None]:
        def change() -> None:
            subject.disk_full(state)
            storm.done["full disks"] += state

        return change

    disks: list[Event] = [(0.30, full(True)), (0.345, full(False)), (0.61, full(True)), (0.64, full(False))]
    return sorted(_spread(rng, NODE, die) + disks, key=lambda event: event[0])
