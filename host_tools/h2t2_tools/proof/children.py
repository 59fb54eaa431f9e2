"""Child processes of a run. They end when the run ends, however it ends."""

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
def child(arguments: list[str], *, module: str = "h2t2_tools", **streams: Any) -> Iterator[subprocess.Popen[str]]:
    """A Python process that ends with the context, or with this process, however they end.

    Args:
        arguments: the words of its command line, for the `h2t2` command without `h2t2`.
        module: what it runs.
        streams: as subprocess.Popen takes them.
    """
    command = [sys.executable, "-m", module, *arguments]
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


def remaining_output(process: subprocess.Popen[str], seconds: float) -> tuple[str, str]:
    """What a process still writes to stdout and stderr, after some of its lines were read; "" where it has no such pipe.

    `communicate` would read past the buffers of the pipes, and lose what `readline` had already taken into them.

    Raises:
        subprocess.TimeoutExpired: the process does not end within `seconds`. It is killed.
    """
    with ThreadPoolExecutor(2) as readers:
        outputs = [readers.submit(pipe.read) if pipe else None for pipe in (process.stdout, process.stderr)]
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    stdout, stderr = (output.result() if output else "" for output in outputs)
    return stdout, stderr


def _wait_ready(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    lines = []
    killer = threading.Timer(60, process.kill)
    killer.start()
    try:
        for line in process.stderr:
            if words in line:
                return
            lines.append(line)
    finally:
        killer.cancel()
    raise Failure("a child process ended before it was ready: " + "".join(lines[-3:]).strip())


@contextmanager
def ready(arguments: list[str], words: str, *, module: str = "h2t2_tools") -> Iterator[subprocess.Popen[str]]:
    """As child(), once the process has written a line with these words to stderr."""
    with child(arguments, module=module, stderr=subprocess.PIPE) as process:
        _wait_ready(process, words)
        yield process


@contextmanager
def serving(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """`h2t2 rdl` with these arguments, ready to answer. With `--workers` the process is the parent of its workers."""
    with ready(["rdl", *arguments], READY) as worker:
        yield worker
