"""Runs pytest again and again, each time in a fork of a process that has imported what the tests import from elsewhere.

Standard input: lines of pytest's arguments as JSON. Standard output: a line for each run, exit status and failed test.
Nothing of H2T2 is imported before the fork, so that a run reads the changed file.
"""

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from importlib import import_module

import pytest

LIMIT_S = 1800
IMPORTED = (
    "amqtt.broker", "cryptography.x509", "cryptography.hazmat.primitives.serialization", "fastapi", "httpx", "hypothesis",
    "hypothesis.strategies", "nicegui", "numpy", "paho.mqtt.client", "PIL.Image", "pydantic", "sklearn.linear_model", "uvicorn",
)  # fmt: skip


def run(arguments: list[str]) -> tuple[int, str]:
    """The exit status of pytest in a fork, or 1 if it does not end, and the test that failed."""
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            os.setsid()
            for descriptor in (1, 2):
                os.dup2(output.fileno(), descriptor)
            os._exit(int(pytest.main(arguments)))
        until, status = time.monotonic() + LIMIT_S, None
        while status is None and time.monotonic() < until:
            time.sleep(0.02)
            ended, state = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(state) if ended else None
        with contextlib.suppress(ProcessLookupError):  # what its tests started ends with it
            os.killpg(child, signal.SIGKILL)
        if status is None:
            os.waitpid(child, 0)
        output.seek(0)
        failed = re.search(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - |$)", output.read(), re.MULTILINE)
    return 1 if status is None else status, failed[1] if failed else ""


def main() -> None:
    """Answer each line."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
