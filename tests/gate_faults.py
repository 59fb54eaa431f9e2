"""A gate under load that is killed again and again, with full disks, clock steps and a broker that comes late.

    .venv/bin/python tests/gate_faults.py --kills 200      # takes about a quarter of an hour

The gate is `h2t2 gate` in a process of its own, the broker a real Mosquitto that keeps its sessions. The disk is full by a
limit of the system, under which the process can extend and change no file; the clock steps in the gate's own process.
"""

import argparse
import json
import random
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from support import mosquitto, until

from h2t2.cpython.mqtt_session import Session, make_client

DAY_S = 86400
OUTSTANDING = 100  # detections without a decision, at most; Mosquitto keeps 1,000 for a gate that is away
RATE_S = 0.02  # between two detections
OTHER_KILLS = 7  # of the gates that live through a fault, and the first one
FULL_S = 3.0  # for which the disk is full
CHILD = """
import os, socket, sys, time
folder, real = sys.argv[1], time.time
def stepped():
    with open(folder + "/step") as file:
        return real() + float(file.read())
time.time = stepped
from h2t2_tools.cli.main import main
from h2t2_tools.fleet.gate.gate import Gate
from h2t2_tools.fleet.gate.streams import Stream
events, settle = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), Gate._settle
def told(self, number, detection, answer, teach):
    def taught():
        events.sendto(b"taught %s" % detection.label.encode(), folder + "/events")
        teach()
    settle(self, number, detection, answer, teach and taught)
Gate._settle = told
sys.exit(main(["gate", folder + "/gate.toml", "--json", folder + "/summary.json"]))
"""
MODEL = """
import random, socket, time
events = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def scores(x):
    number = int(x[0][0])
    events.sendto(b"asked %d" % number, {path!r})
    time.sleep(random.random() * 0.03)
    return [float(number % 2)]
"""
CONFIG = {
    "topic": "x/+", "key": "$topic.1", "identity": "id", "label": "n", "tensor": "x", "remote": "mine.py:scores", "beta": 0.05,
    "policy": "h2t2", "epsilon": 0.4, "deadline": "1s", "telemetry": "1h",
}  # fmt: skip


@dataclass
class Record:
    """What happened. Numbers are those of detections.

    Attributes:
        sent: detections that the broker has accepted.
        published, asked, taught: how often for each detection.
        summary: of the last gate.
    """

    sent: int = 0
    published: Counter = field(default_factory=Counter)
    asked: Counter = field(default_factory=Counter)
    taught: Counter = field(default_factory=Counter)
    summary: dict = field(default_factory=dict)

    def __str__(self):
        twice = sum(count > 1 for count in self.published.values())
        lost = [number for number in range(self.sent) if number not in self.published]
        return (
            f"{self.sent:,} detections: {len(lost)} without a decision {lost[:9] or ''}, {twice} with two; "
            f"{len(self.asked):,} samples asked about, {max(self.asked.values())} times at most; "
            f"{len(self.taught):,} labels taught, {sum(count > 1 for count in self.taught.values())} twice; "
            f"{len(self.asked.keys() - self.taught.keys())} samples asked about taught nothing, "
            f"{self.summary['taught']:,} lessons in the last snapshots"
        )


class Run:
    """The broker, the detector, whoever hears the decisions, and the gate's processes."""

    def __init__(self, folder, server, seed):
        self.folder, self.server, self.random, self.record = folder, server, random.Random(seed), Record()
        self.path = folder / "gate.toml"
        config = {**CONFIG, "broker": server.url}
        self.path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items()))
        (folder / "mine.py").write_text(MODEL.format(path=str(folder / "events")))
        self.step(0)
        self._events = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._events.bind(str(folder / "events"))
        self._ended = threading.Event()
        self._loaded = threading.Event()
        self.session = Session(server.host, server.port, self._client, ["x/porch/decision"]).start()
        self.session.open()
        for work in self._hear, self._detect:
            threading.Thread(target=work, daemon=True).start()

    def _client(self):
        client = make_client("automation", clean_session=False)
        client.on_message = self._take
        return client

    def _take(self, _client, _data, message):
        self.record.published[int(json.loads(message.payload)["detected"])] += 1

    def _hear(self):
        while not self._ended.is_set():
            kind, number = self._events.recv(100).split()
            {b"asked": self.record.asked, b"taught": self.record.taught}[kind][int(number)] += 1

    def _detect(self):
        """Every fifth detection has no identity."""
        while not self._ended.wait(RATE_S):
            number = self.record.sent
            if self._loaded.is_set() and number - len(self.record.published) < OUTSTANDING:
                content = {
                    "id": str(number if number % 5 else 0),
                    "n": str(number),
                    "x": [number],
                    "score": self.random.random(),
                }
                if self.session.publish("x/porch", json.dumps(content), 1):
                    self.record.sent += 1

    @contextmanager
    def quiet(self):
        """Without new detections; the broker has accepted the earlier ones."""
        self._loaded.clear()
        assert until(lambda: not self.session.unacknowledged())
        yield
        self._loaded.set()

    def step(self, seconds):
        """Set the gate's clock so many seconds beside the real one."""
        new = self.folder / "step.new"
        new.write_text(str(seconds))
        new.rename(self.folder / "step")

    def live_while_the_clock_steps(self, seconds):
        """Within a gate's life its clock is set."""
        with self.gate() as process:
            assert self.ready(process)
            self.step(seconds)
            before = len(self.record.published)
            assert until(lambda: len(self.record.published) > before + 20)

    @contextmanager
    def gate(self):
        """A gate's process, which is killed at the end."""
        self._log = []
        process = subprocess.Popen([sys.executable, "-c", CHILD, str(self.folder)], stderr=subprocess.PIPE)
        reader = threading.Thread(target=self._read_log, args=(process.stderr,), daemon=True)
        reader.start()
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            reader.join()
            process.stderr.close()

    def _read_log(self, stream):
        """Read a gate's log to its end: a full pipe would stop the gate."""
        for line in stream:
            self._log.append(line)

    def ready(self, process):
        """Whether the gate says in time that it is ready."""
        is_ready = until(lambda: process.poll() is not None or any(b"ready" in line for line in self._log))
        assert process.poll() is None, b"".join(self._log).decode()
        return is_ready

    def live(self):
        """Start a gate, and kill it at a random moment: while it starts, one time in five."""
        with self.gate() as process:
            if not self.random.randrange(5):
                time.sleep(3 * self.random.random())
            elif self.ready(process):
                time.sleep(1.5 * self.random.random())

    def live_on_a_full_disk(self):
        """Within a gate's life its disk is full, and empty again."""
        with self.gate() as process:
            assert self.ready(process)
            time.sleep(0.5)
            _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
            before = len(self.record.published)
            time.sleep(FULL_S)
            assert len(self.record.published) > before, "no decision while the disk is full"
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            time.sleep(FULL_S)

    def live_before_the_broker(self):
        """A gate starts while its broker is away; the broker comes later, with the load."""
        with self.quiet():
            self.server.stop()
            with self.gate() as process:
                assert self.ready(process)
                self.server.start()
                assert until(self.session.up.is_set)
                self._loaded.set()
                time.sleep(5)

    def waiting(self):
        """Samples in the gate's queue."""
        with closing(sqlite3.connect(self.folder / "gate-state/gate.db")) as base:
            return base.execute("SELECT count(*) FROM waiting").fetchone()[0]

    def finish(self):
        """Let a last gate do what is left, and end it in order."""
        self._loaded.clear()
        with self.gate() as process:
            assert self.ready(process)
            until(lambda: len(self.record.published) == self.record.sent and not self.waiting())
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        self._ended.set()
        self.session.close()
        self.record.summary = json.loads((self.folder / "summary.json").read_text())
        return self.record


def play(folder, kills, seed=7, progress=lambda text: None):
    """Play the faults, and return the Record. kills: eight at least, beside OTHER_KILLS."""
    (folder / "broker").mkdir()
    (folder / "broker").chmod(0o777)
    with mosquitto(folder, "persistence true", f"persistence_location {folder}/broker/") as server:
        run = Run(folder, server, seed)
        with run.gate() as process:  # the broker accepts detections from its subscription on
            assert run.ready(process)
            run._loaded.set()
        faults = {
            kills // 8: run.live_before_the_broker,
            2 * kills // 8: run.live_on_a_full_disk,
            3 * kills // 8: partial(run.live_while_the_clock_steps, 8 * DAY_S),
            4 * kills // 8: run.live_on_a_full_disk,
            5 * kills // 8: partial(run.live_while_the_clock_steps, -365 * DAY_S),
            6 * kills // 8: run.live_on_a_full_disk,
        }
        for number in range(kills):
            if number in faults:
                before = run.record.sent
                faults[number]()
                progress(f"{faults[number]}: detections {before} to {run.record.sent}")
            run.live()
        return run.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(play(Path(place), words.kills, words.seed, lambda text: print(text, file=sys.stderr)))
