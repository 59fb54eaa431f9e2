"""`h2t2 rdl`: the workers on this machine, each a process. The parent replaces one that dies or hangs."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from h2t2.cpython.interpreter import python

from ...common import end_with_parent, log
from ...common.errors import Failure, UserError
from .watchdog import NOTE_DESCRIPTOR, SUSPECTS_DESCRIPTOR, HangWatch, Suspects, unnamed

READY = "h2t2 rdl: ready"  # in the line that reports this
LOG = logging.getLogger(__name__)
AGAIN = 1.0  # seconds before a worker that died is started again
LONGEST_AGAIN = 30.0  # to which that doubles, if it dies again


def supervise(commands: list[list[str]], keep_folder: Path) -> dict[str, int]:
    """Run workers until SIGTERM or SIGINT, which are passed on, as SIGHUP is. Their JSON log is logged again here.

    Args:
        commands: the arguments of `h2t2 rdl` for each worker.
        keep_folder: the folder for requests that hung a model twice.

    Returns:
        The sum of their counts of replies.

    Raises:
        UserError, Failure: a worker ended before it was ready; the text is the worker's.
    """
    stop: list[int] = []  # the signal; no Event: a handler that sets one may wait for its own thread
    counts: Counter[str] = Counter()
    suspects = Suspects()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: stop.append(number))
    workers: list[_WorkerProcess] = []

    def reload(*_: object) -> None:
        for worker in workers:
            worker.process.send_signal(signal.SIGHUP)

    signal.signal(signal.SIGHUP, reload)
    for command in commands:
        workers.append(_WorkerProcess(command, suspects, keep_folder, patient=len(commands) > 1))
    try:
        for worker in workers:
            while not worker.ready.wait(0.1) and not stop:
                pass
            if not worker.ready_text and not stop:
                worker.process.wait()
                if worker.process.returncode == 2:  # wrong use: repeat the worker's own text
                    raise UserError(worker.last_text.removeprefix("h2t2: "))
                raise Failure(worker.last_text.removeprefix("h2t2: ") or "a worker did not start")
        if not stop:
            LOG.info("%s%s", workers[0].ready_text, f" ({len(workers)} workers)" if len(workers) > 1 else "")
        while not stop:
            time.sleep(0.1)
            for worker in workers:
                worker.replace_if_ended()
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            end_with_parent.await_end(worker.process, 10)
    for worker in workers:
        counts.update(worker.counts())
    return dict(counts)


class _WorkerProcess:
    """One worker process.

    Args:
        arguments: of `h2t2 rdl`.
        suspects, keep_folder: as HangWatch's.
        patient: run under SCHED_BATCH, which does not pre-empt other processes when a request wakes the worker. Several workers
            would otherwise take the processor from the broker, and from each other, for every request, and find a single
            request where a moment later there are many.

    Attributes:
        ready: set when the worker reports that it is ready, or ends.
        ready_text, last_text: the line of that report, and its last line.
    """

    def __init__(self, arguments: list[str], suspects: Suspects, keep_folder: Path, patient: bool) -> None:
        self._report = unnamed()  # where the worker writes its counts
        report = f"/dev/fd/{self._report}"
        self._command = python("-m", "h2t2_tools", "rdl", *arguments, "--log=json", "--json", report)
        self._suspects, self._keep_folder, self._patient = suspects, keep_folder, patient
        self.ready = threading.Event()
        self.ready_text = self.last_text = ""
        self._wait = AGAIN
        self._due = 0.0  # when a dead worker is started again; 0: it lives
        self.start()

    def start(self) -> None:
        self._watch = HangWatch(self._suspects, self._keep_folder, LOG.warning)
        note, suspects = self._watch.note.descriptor, self._suspects.descriptor
        self._began = time.monotonic()
        # a session of its own: Ctrl-C reaches the parent alone, which then ends its workers in order
        self.process = subprocess.Popen(
            self._command,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",  # a model's library may write bytes that are no text
            start_new_session=True,
            pass_fds=(note, suspects, self._report),
            env={**end_with_parent.child_environment(), NOTE_DESCRIPTOR: str(note), SUSPECTS_DESCRIPTOR: str(suspects)},
        )
        if self._patient and sys.platform == "linux":
            with suppress(OSError):  # it has ended, or the system does not allow it
                os.sched_setscheduler(self.process.pid, os.SCHED_BATCH, os.sched_param(0))  # its threads inherit it
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def counts(self) -> dict[str, int]:
        """The counts of a worker that has ended; {} of one that was killed."""
        content = os.pread(self._report, os.fstat(self._report).st_size, 0)
        return dict(json.loads(content)) if content else {}

    def replace_if_ended(self) -> None:
        """Start another process where this one has ended, or hangs."""
        if self.process.poll() is not None:
            if not self._due:
                self._wait = AGAIN if time.monotonic() - self._began > LONGEST_AGAIN else min(2 * self._wait, LONGEST_AGAIN)
                LOG.error("a worker ended with status %d; starting another in %g s", self.process.returncode, self._wait)
                self._due = time.monotonic() + self._wait
            elif time.monotonic() >= self._due:
                self._due = 0.0
                self._watch.note.close()
                self.start()
        elif self._watch.is_hung():
            LOG.error("a worker hangs; replacing it")
            self.process.kill()
            self.process.wait()
            self._watch.note.close()
            self.start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr
        for line in filter(None, map(str.strip, process.stderr)):
            self.last_text = line
            if line.startswith("h2t2: ") and not self.ready_text:  # why it did not start: supervise() raises it
                continue
            entry = log.parse_entry(line)
            self.last_text = entry.text if entry else line
            if entry and entry.text.startswith("ready: ") and not self.ready_text:
                self.ready_text = entry.text
                self.ready.set()
            else:
                log.relay(LOG, entry, line)
        self.ready.set()
