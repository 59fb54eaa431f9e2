"""Shared fixtures: the real broker, the real interpreters. What a machine lacks skips with the command that mends it."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from h2t2_tools import broker

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))


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


@pytest.fixture(params=["amqtt", "mosquitto"])
def broker_url(request):
    """A running broker of each kind, as its URL."""
    if request.param == "mosquitto" and broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    with broker.running(request.param) as url:
        yield url
