"""`h2t2 rdl --workers N`: several workers on this machine, each a process; one that dies is started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ...common.errors import Failure

READY = "h2t2 rdl: ready"
PARENT = "H2T2_RDL_PARENT"  # tells a worker whose it is: it ends when that process is gone
AGAIN = 1.0  # seconds before a worker that died is started again


def supervise(commands: list[list[str]], ready: Callable[[str], None], say: Callable[[str], None]) -> dict[str, int]:
    """Run `h2t2 rdl` with each of those arguments until SIGTERM or SIGINT, passed on like SIGHUP; the sum of their counts.

    Failure where one ends before it was ready the first time.
    """
    stop = threading.Event()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="h2t2-rdl-") as folder:
        workers = [_Process([*command, "--json", f"{folder}/{n}.json"], say) for n, command in enumerate(commands)]
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stop.set())

        def reload(*_: object) -> None:
            for worker in workers:
                worker.send(signal.SIGHUP)

        signal.signal(signal.SIGHUP, reload)
        try:
            for worker in workers:
                if not worker.ready.wait(60) or worker.process.poll() is not None:
                    raise Failure(f"a worker did not start: {worker.last}")
            ready(f"ready: {len(workers)} workers")
            while not stop.wait(0.2):
                for worker in workers:
                    if worker.process.poll() is not None:
                        say(f"a worker ended with status {worker.process.returncode}; starting it again")
                        time.sleep(AGAIN)
                        worker.start()
        finally:
            for worker in workers:
                worker.send(signal.SIGTERM)
            for worker in workers:
                worker.end(10)
        for path in Path(folder).glob("*.json"):
            counts.update(json.loads(path.read_text()))
    return dict(counts)


class _Process:
    """One worker. ready: set when it says so, or ends; last: the last line it said."""

    def __init__(self, arguments: list[str], say: Callable[[str], None]) -> None:
        self._command = [sys.executable, "-m", "h2t2_tools", "rdl", *arguments]
        self._say = say
        self.ready = threading.Event()
        self.last = ""
        self.start()

    def start(self) -> None:
        # a session of its own: Ctrl-C reaches the parent alone, which then ends its workers in order
        self.process = subprocess.Popen(
            self._command,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, PARENT: str(os.getpid())},
        )
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr
        for line in process.stderr:
            self.last = line.strip()
            if line.startswith(READY):
                self.ready.set()
            else:
                self._say(self.last.removeprefix("h2t2 rdl: "))
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
