"""Child processes of a run. They end with the run, however it ends."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from h2t2.cpython.interpreter import python

from ..common import end_with_parent
from ..common.errors import Failure
from . import broker, profile
from .rdl.pool import READY

READY_S = 180.0  # a slow machine that imports a model's libraries for the first time takes a minute


@contextmanager
def child(arguments: list[str], *, module: str = "h2t2_tools", **streams: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a Python process that ends with the context or with this process, however they end.

    Args:
        arguments: The words of its command line; for the `h2t2` command without `h2t2`.
        module: The module that it runs.
        streams: Options of subprocess.Popen.
    """
    command = python("-m", module, *arguments)
    environment = end_with_parent.child_environment()
    if broker.OPEN.intersection(arguments):
        environment = profile.without_login(environment)
    # its own session: Ctrl-C reaches only this process, which then ends its children in order
    process: subprocess.Popen[str] | None = None
    try:
        with _interrupt_deferred():
            process = subprocess.Popen(command, text=True, start_new_session=True, env=environment, **streams)
        yield process
    finally:
        if process:
            process.terminate()
            end_with_parent.await_end(process, 5)


@contextmanager
def _interrupt_deferred() -> Iterator[None]:
    """Let Ctrl-C take effect at the end of the context: in the middle of Popen() it would leave a process that nobody ends."""
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C interrupts the main thread alone
        yield
        return
    interrupts: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if interrupts:
        signal.raise_signal(signal.SIGINT)


def _wait_ready(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    lines = []
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    killer = threading.Timer(READY_S, give_up)
    killer.start()
    try:
        for line in process.stderr:
            if words in line:
                return
            lines.append(line)
    finally:
        killer.cancel()
    event = f"was not ready after {READY_S:g} s" if late.is_set() else "ended before it was ready"
    raise Failure(f"a child process {event}: " + "".join(lines[-3:]).strip())


@contextmanager
def ready(arguments: list[str], words: str, *, module: str = "h2t2_tools") -> Iterator[subprocess.Popen[str]]:
    """As child(), after the process has written a line with these words to stderr."""
    with child(arguments, module=module, stderr=subprocess.PIPE) as process:
        _wait_ready(process, words)
        yield process


def serving(arguments: list[str]) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run `h2t2 rdl` until it can answer. With `--workers` the process is the parent of its workers."""
    return ready(["rdl", *arguments], READY)
