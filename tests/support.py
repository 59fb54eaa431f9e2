"""What tests of this folder and of hil/ share."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def worker(url, pair="digits", *options):
    """A real RDL worker's process, ready to answer; killed at the end if it still runs."""
    command = [sys.executable, "-m", "h2t2_tools", "rdl", "--pair", pair, "--broker", url, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "ready" in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.communicate()
