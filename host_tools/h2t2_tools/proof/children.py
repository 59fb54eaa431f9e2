"""`h2t2` processes of a run's own: gone when it ends, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ..common import parent
from ..common.errors import Failure
from ..fleet.rdl.pool import READY


@contextmanager
def child(arguments: list[str], **streams: Any) -> Iterator[subprocess.Popen[str]]:
    """An `h2t2` process of its own that is gone when the context ends, or this process does, however they end."""
    command = [sys.executable, "-m", "h2t2_tools", *arguments]
    # its own session: Ctrl-C reaches this process alone, which then ends its children in order
    process = subprocess.Popen(command, text=True, start_new_session=True, env=parent.child_environment(), **streams)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def rest(process: subprocess.Popen[str], seconds: float) -> tuple[str, str]:
    """What a process some of whose lines were read still says, on stdout and stderr, until it ends; "" where there is no pipe.

    `communicate` reads past the pipes' buffers, and loses what the reading of a line had taken along with it.
    subprocess.TimeoutExpired where it does not end within so many seconds; it is killed then.
    """
    with ThreadPoolExecutor(2) as readers:
        said = [readers.submit(pipe.read) for pipe in (process.stdout, process.stderr) if pipe]
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    told = iter(said)
    return next(told).result() if process.stdout else "", next(told).result() if process.stderr else ""


def _wait_ready(worker: subprocess.Popen[str]) -> None:
    assert worker.stderr is not None
    noise = []
    late = threading.Timer(60, worker.kill)
    late.start()
    try:
        for line in worker.stderr:
            if READY in line:
                return
            noise.append(line)
    finally:
        late.cancel()
    raise Failure("the RDL worker ended before it was ready: " + "".join(noise[-3:]).strip())


@contextmanager
def serving(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A worker of `h2t2 rdl` with these arguments, ready to answer; several where they say so, whose parent this is."""
    with child(["rdl", *arguments], stderr=subprocess.PIPE) as worker:
        _wait_ready(worker)
        yield worker
