"""A local model in a process of its own: one that hangs, crashes or holds the interpreter's lock does not stop this process."""

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Pipe
from typing import Any

import numpy as np

from h2t2.cpython.interpreter import python

from ....common import end_with_parent
from ....common.errors import UserError
from ...failures import Cause, Later, Misconfigured, Refused
from .model_source import Source
from .tensors import Batch, Model

LOAD_S = 180.0  # for which a model may load: a slow machine imports large libraries
EXIT_S = 1.0  # between the end of a process's connection and its own
CHILD = f"from {__package__}.separate_child import main; main()"


@dataclass(frozen=True)
class Raised:
    """An exception of the model, as it crosses between the processes."""

    cause: Cause
    reason: str


class Separate(Model):
    """A function or a model in a file. The process answers one batch at a time. One that ended is replaced at the next batch.

    Args:
        source: where the model is.
        hang_s: seconds after which a batch without an answer ends the process.

    Raises:
        UserError: the file holds no such model.
    """

    def __init__(self, source: Source, hang_s: float) -> None:
        self._source, self._hang_s = source, hang_s
        self._lock = threading.Lock()
        self._closed = False
        self._start()

    def scores(self, batch: Batch) -> np.ndarray:
        """As Model.scores(). Later: the process hung or ended. UserError: the model cannot be loaded any more."""
        with self._lock:
            if self._process.ended:
                self._start()  # which raises once the model is closed
            scores = self._process.ask(batch, self._hang_s)
        if not isinstance(scores, np.ndarray):
            raise Refused(f"{self._source.path}: want an array of scores")
        return scores

    def close(self) -> None:
        """End the process. A call under way raises Later."""
        self._closed = True
        self._process.kill()

    def _start(self) -> None:
        self._process = _Process(self._source.path)
        try:
            if self._closed:
                self._process.kill()
            self.raw, self.shape = self._process.ask(self._source, LOAD_S)
        except BaseException as error:  # a signal's, too
            self._process.kill()
            if isinstance(error, (Later, Misconfigured, Refused)) and not self._closed:
                raise UserError(str(error)) from None
            raise


class _Process:
    """A process that loads one model.

    Attributes:
        ended: whether it has ended, or was told to.
    """

    def __init__(self, name: str) -> None:
        self.ended = self._hung = False
        self._name, self._lock = name, threading.Lock()
        self._connection, theirs = Pipe()
        # a session of its own: Ctrl-C does not reach it, and kill() ends what the model has started, too
        self._process = subprocess.Popen(
            python("-c", CHILD, str(theirs.fileno())),
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env=end_with_parent.child_environment(),
        )
        theirs.close()

    def ask(self, content: Source | Batch, seconds: float) -> Any:
        """The answer to a source or a batch.

        Raises:
            Later: there is none within these seconds, or the process ended.
            Misconfigured, Refused: the model raised.
        """
        timer = threading.Timer(seconds, self._end_hung)
        timer.daemon = True
        timer.start()
        try:
            self._connection.send(content)
            answer = self._connection.recv()
        except (EOFError, OSError):
            self._await_exit()
            self.kill()
            why = f"no answer in {seconds:g} s" if self._hung else f"its process ended, status {self._process.returncode}"
            raise Later(f"{self._name}: {why}; another process replaces it", of_sample=True) from None
        finally:
            timer.cancel()
        if isinstance(answer, Raised):
            if answer.cause is Cause.SERVER:
                raise Later(answer.reason)
            raise (Misconfigured if answer.cause is Cause.SETUP else Refused)(answer.reason)
        return answer

    def _await_exit(self) -> None:
        """Wait until the process has ended by itself. Its number, and that of its session, stay its own until kill()."""
        end = time.monotonic() + EXIT_S
        with suppress(ChildProcessError):  # kill() was here
            while not os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) and time.monotonic() < end:
                time.sleep(0.01)

    def kill(self) -> None:
        """End the process, and those that it started."""
        self.ended = True
        with self._lock:
            if self._process.returncode is None:  # until wait() its number is no other process's
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _end_hung(self) -> None:
        self._hung = True
        self.kill()
