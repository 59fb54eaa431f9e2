"""`h2t2` processes of a run's own: gone when it ends, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
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
    process = subprocess.Popen(command, text=True, start_new_session=True, env=parent.bound(), **streams)
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


def _wait_ready(worker: subprocess.Popen[str]) -> None:
    assert worker.stderr is not None
    noise = []
    late = threading.Timer(60, worker.kill)
    late.start()
    try:
        for line in worker.stderr:
            if line.startswith(READY):
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
