"""A real dashboard that watches the nodes of `h2t2-lab chaos`, with damaged retained messages and a full disk for its history.

Its process must survive all of this, report the trouble while it lasts, and recover afterwards.
"""

import importlib.util
import json
import os
import random
import resource
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from h2t2.cpython.interpreter import python
from h2t2.cpython.mqtt_session import make_client
from h2t2.link import wire
from h2t2_tools.fleet.broker import Mosquitto, free_port

from .subjects import NO_ROOM

LOOK_S = 0.5  # interval of health checks
ANSWER_S, START_S = 2.0, 120.0  # longest health check and longest start
FULL_S, WELL_S = 60.0, 60.0  # longest wait until it reports a full disk while it has a broker, and until it recovers
HISTORY, BLIND = "the history is not written", "broker unreachable"
STATE = {
    "samples": 1000, "offloads": 200, "replies": 200, "boot": 7, "policy": "adaptive", "model": 1, "beta": 6554,
    "uptime_s": 100, "scores": [500, 100, 100, 300], "answered": [50, 99, 49, 2],
    "local_cost": [0, 50000, 25000, 0], "last": [2, 1, 1],
}  # fmt: skip


class Watching:
    """A dashboard on the storm's broker, from start() to stop(). figures() returns its counters."""

    def __init__(self, folder: Path, broker: Mosquitto, nodes: list[str], seed: int) -> None:
        folder.mkdir()
        self._folder, self._broker, self._nodes = folder, broker, nodes
        self._rng = random.Random(seed)
        self._port = free_port()
        self._next = 0.0
        self._full_since = 0.0  # monotonic seconds; 0: the disk is not full
        self._full_next = 0  # full disks that have to begin after this one
        self.checks = self.unanswered = self.full_disks = self.full_disks_said = self.damaged = self.ends = 0
        self._well_at_end = self._written_at_end = False

    @staticmethod
    def missing() -> str:
        """Return what this machine lacks for the dashboard, "" for nothing."""
        return "" if importlib.util.find_spec("nicegui") else "no nicegui: install the extra `dashboard`"

    def start(self) -> None:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}  # they change NiceGUI
        plain["PYTHONDONTWRITEBYTECODE"] = "1"  # a full disk would cut off the modules' bytecode
        command = python(
            "-m", "h2t2_tools", "dashboard", "--broker", self._broker.url, "--port", str(self._port),
            "--history", str(self._folder / "history.db"),
        )  # fmt: skip
        with (self._folder / "log").open("wb") as log:
            # without restore_signals SIGXFSZ stays ignored, as CPython sets it: a full disk is an error, not the end
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, env=plain, restore_signals=False, start_new_session=True
            )
        self._client = make_client("")
        self._client.connect_async(self._broker.host, self._broker.port)
        self._client.reconnect_delay_set(1, 1)
        self._client.loop_start()
        end = time.monotonic() + START_S
        while not self._health()[0] and self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.2)

    def damage(self) -> None:
        """Retain invalid messages on the topics of the nodes and of devices that do not exist."""
        state = json.dumps(STATE).encode()
        messages = {
            wire.topic("bad-overflow", "state"): json.dumps({**STATE, "samples": 2**63 - 1}).encode(),
            wire.topic("bad-depth", "state"): b"[" * 5000,
            wire.topic("bad-markup", "state"): json.dumps({**STATE, "policy": "[/x]", "start": "\x1b[2J"}).encode(),
            wire.topic("bad-length", "state"): b"9" * 60_000,
            "h2t2-workers/2/²/w": b"1",
            "h2t2-workers/2/" + "9" * 5000 + "/w": b"1",
        }
        for n in range(20):
            damaged = bytearray(state)
            for _ in range(self._rng.choice((1, 4, 40))):
                damaged[self._rng.randrange(len(damaged))] = self._rng.randrange(256)
            messages[wire.topic(f"bad-{n}", "state")] = bytes(damaged)
        for node in self._nodes:
            messages[wire.topic(node, "reply")] = self._rng.randbytes(20)
            messages[wire.topic(node, "command")] = b'{"pause": 600}'  # nodes ignore retained commands
        for topic, payload in messages.items():
            self._client.publish(topic, payload, 1, True)
        self.damaged += len(messages)

    def fill_disk(self) -> None:
        """Limit every file of the dashboard to NO_ROOM bytes until it reports a full disk, one time after the other.

        It has nothing to write until it finds its broker again, up to half a minute after the broker is back.
        """
        self.full_disks += 1
        self._full_next += 1
        self._fill_next()

    def look(self) -> None:
        """Check its health every LOOK_S. Each time publish something that the history must store."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_S
        if self._process.poll() is not None:
            self.ends += 1
            self._client.loop_stop()
            self.start()
            return
        self._client.publish(wire.topic("bad-markup", "command"), b"[/x] \x1b[2J", 0)
        status, text = self._health()
        self.checks += 1
        self.unanswered += status == 0
        if self._full_since and BLIND in text:
            self._full_since = time.monotonic()
        elif self._full_since and (HISTORY in text or time.monotonic() - self._full_since > FULL_S):
            self.full_disks_said += HISTORY in text
            self._limit(0)
            self._full_since = 0.0
        elif status == 200:
            self._fill_next()

    def conclude(self) -> None:
        """Wait until it has reported every full disk. Then it must become healthy and write again."""
        end = time.monotonic() + self.full_disks * (FULL_S + WELL_S)
        while (self._full_since or self._full_next) and time.monotonic() < end:
            self.look()
            time.sleep(0.1)
        self._limit(0)
        end = time.monotonic() + WELL_S
        began = time.time()
        while not (self._well_at_end and self._written_at_end) and time.monotonic() < end:
            self._next = 0.0
            self.look()
            self._well_at_end = self._health()[0] == 200
            self._written_at_end = self._last_line() >= began
            time.sleep(0.2)

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()

    def figures(self) -> dict[str, Any]:
        """Return the counters that report.broken() checks."""
        log = (self._folder / "log").read_text(errors="replace")
        return {
            "health checks": self.checks, "not answered": self.unanswered, "damaged messages": self.damaged,
            "full disks": self.full_disks, "full disks said": self.full_disks_said, "ended by itself": self.ends,
            "tracebacks": log.count("Traceback"), "well at the end": self._well_at_end,
            "written at the end": self._written_at_end,
        }  # fmt: skip

    def _fill_next(self) -> None:
        if self._full_next and not self._full_since:
            self._limit(NO_ROOM)
            self._full_since = time.monotonic()
            self._full_next -= 1

    def _limit(self, size: int) -> None:
        """Limit the size of its files; 0: no limit."""
        if self._process.poll() is None:
            hard = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (size or hard, hard))

    def _health(self) -> tuple[int, str]:
        """Return status and text of its health check; status 0: no answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/healthz", timeout=ANSWER_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def _last_line(self) -> float:
        """Return when its history wrote the newest line, in Unix seconds."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self._folder}/history.db?mode=ro", uri=True)) as base:
            return float(base.execute("SELECT max(at) FROM log").fetchone()[0] or 0)
        return 0.0
