"""`h2t2 rdl`: the workers on this machine, each a process; one that dies, hangs or is stopped is replaced."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from ...common import log
from ...common.errors import Failure, UserError
from .watchdog import FOLDER, SHARED, Watch

READY = "h2t2 rdl: ready"  # in the line that says so
LOG = logging.getLogger(__name__)
PARENT = "H2T2_RDL_PARENT"  # tells a worker whose it is: it ends when that process is gone
AGAIN = 1.0  # seconds before a worker that died is started again
LONGEST_AGAIN = 30.0  # where it dies again and again


def supervise(commands: list[list[str]], kept: Path) -> dict[str, int]:
    """Run `h2t2 rdl` with each of those arguments until SIGTERM or SIGINT, passed on like SIGHUP; the sum of their counts.

    They log as JSON, which is logged again here. kept: the folder for requests that hung a model twice. UserError or Failure,
    in its own words, where one ends before it was ready the first time.
    """
    stop: list[int] = []  # the signal that ends it; no Event: a handler that sets one may wait for its own thread
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="h2t2-rdl-") as name:
        folder = Path(name)
        (folder / "suspects").mkdir()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: stop.append(number))
        workers: list[_Process] = []

        def reload(*_: object) -> None:
            for worker in workers:
                worker.send(signal.SIGHUP)

        signal.signal(signal.SIGHUP, reload)
        for n, command in enumerate(commands):
            arguments = [*command, "--log=json", "--json", f"{folder}/{n}.json"]
            workers.append(_Process(arguments, folder / "suspects", kept, patient=len(commands) > 1))
        try:
            for worker in workers:
                while not worker.ready.wait(0.1) and not stop:
                    pass
                if not worker.first and not stop:
                    worker.process.wait()
                    if worker.process.returncode == 2:  # the user's: as the command itself would have said it
                        raise UserError(worker.last.removeprefix("h2t2: "))
                    raise Failure(worker.last.removeprefix("h2t2: ") or "a worker did not start")
            if not stop:
                LOG.info("%s", workers[0].first if len(workers) == 1 else f"{workers[0].first} ({len(workers)} workers)")
            while not stop:
                time.sleep(0.1)
                for worker in workers:
                    worker.tend()
        finally:
            for worker in workers:
                worker.send(signal.SIGTERM)
            for worker in workers:
                worker.end(10)
        for path in folder.glob("*.json"):
            counts.update(json.loads(path.read_text()))
    return dict(counts)


class _Process:
    """One worker. ready: set when it says so, or ends; first, last: what it said then, and last.

    patient: it lets whoever computes finish when a request wakes it. Several workers would else take the processor from the
    broker, and from each other, for every request, and find one at a time where a moment later there are many.
    """

    def __init__(self, arguments: list[str], suspects: Path, kept: Path, patient: bool) -> None:
        self._command = [sys.executable, "-m", "h2t2_tools", "rdl", *arguments]
        self._suspects, self._kept, self._patient = suspects, kept, patient
        self.ready = threading.Event()
        self.first = self.last = ""
        self._wait = AGAIN
        self._due = 0.0  # when one that died is started again; 0: it has not
        self.start()

    def start(self) -> None:
        self._watch = Watch(self._suspects, self._kept, LOG.warning)
        shared = self._watch.shared
        self._began = time.monotonic()
        # a session of its own: Ctrl-C reaches the parent alone, which then ends its workers in order
        self.process = subprocess.Popen(
            self._command,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",  # what a model's library writes may be no text: who reads it goes on all the same
            start_new_session=True,
            pass_fds=(shared,),
            env={**os.environ, PARENT: str(os.getpid()), SHARED: str(shared), FOLDER: str(self._suspects)},
        )
        self._watch.started()
        if self._patient and sys.platform == "linux":
            with suppress(OSError):  # it may have ended, or the system may not allow it: then it is as it would be alone
                os.sched_setscheduler(self.process.pid, os.SCHED_BATCH, os.sched_param(0))  # its threads will inherit it
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def tend(self) -> None:
        """Replace it where it has ended, or hangs."""
        if self.process.poll() is not None:
            if not self._due:
                self._wait = AGAIN if time.monotonic() - self._began > LONGEST_AGAIN else min(2 * self._wait, LONGEST_AGAIN)
                LOG.error("a worker ended with status %d; starting another in %g s", self.process.returncode, self._wait)
                self._due = time.monotonic() + self._wait
            elif time.monotonic() >= self._due:
                self._due = 0.0
                self.start()
        elif self._watch.hung():
            LOG.error("a worker hangs; replacing it")
            self.process.kill()
            self.process.wait()
            self.start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr
        for line in filter(None, map(str.strip, process.stderr)):
            self.last = line
            if line.startswith("h2t2: ") and not self.first:  # why it did not start, which the parent says
                continue
            entry = log.parse_entry(line)
            self.last = entry.text if entry else line
            if entry and entry.text.startswith("ready: ") and not self.first:
                self.first = entry.text
                self.ready.set()
            else:
                log.relay(LOG, entry, line)
        self.ready.set()

    def send(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def end(self, seconds: float) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
