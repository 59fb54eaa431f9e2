"""Helpers for the tests of this folder and of hil/."""

import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import h2t2.ldl.ldl
from h2t2.core.h2t2 import H2T2
from h2t2.cpython.mqtt_session import Session, make_client
from h2t2_tools.common.policies import PAPER
from h2t2_tools.fleet import broker, config, template
from h2t2_tools.proof.usage import children

ROOT = Path(__file__).parents[1]


USUAL = {"device": "unix-1", "remote_shape": [30], "model_id": 1, "beta": 0.2}  # of the pair breast_cancer


def project_file(folder, board="unix", **entries):
    """Write an h2t2.toml with the section of a board, and with these entries; its path."""
    path = folder / config.FILE
    path.write_text(template.render("mine", {**USUAL, **entries}) + template.section(board))
    return path


def configuration(folder, board="unix", **entries):
    """The configuration of a board that the file of project_file() says."""
    network = board not in ("pico", "microbit")
    return config.load(project_file(folder, board, **entries), board, network)


def hears_ctrl_c():
    """Let a process react to Ctrl-C. A shell's background processes ignore SIGINT, and their children inherit this."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def worker(url, pair="digits", *options):
    """Run a real RDL worker, ready to answer. At the end it terminates in order, so that it writes its coverage."""
    command = [sys.executable, "-m", "h2t2_tools", "rdl", "--pair", pair, "--broker", url, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "ready" in process.stderr.readline()
        yield process
    finally:
        workers = children(process.pid)
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:  # a test stopped it
            for child in workers:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            process.kill()
            process.communicate()


def open_to_readers(folder):
    """Let Mosquitto read a folder of a test; as root's child it runs under a user of its own.

    Folders that others may enter stay unchanged, because the folder for temporary files belongs to everybody.
    """
    if os.geteuid():
        return
    for place in (folder, *folder.parents[:3]):
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & 0o005 != 0o005:
            place.chmod(mode | 0o055)


@contextmanager
def mosquitto(folder):
    """Run a Mosquitto that the test may stop and start again. Skip if it is not installed."""
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    open_to_readers(folder)
    server = broker.Mosquitto(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def retained(server, topic, seconds=10):
    """Return the text that a broker retains on a topic, "" if none arrives in time. server: as mosquitto() yields it."""
    texts = []

    def client():
        listener = make_client("")
        listener.on_message = lambda _client, _data, message: texts.append(message.payload.decode())
        return listener

    session = Session(server.host, server.port, client, [topic]).start()
    try:
        until(lambda: texts, seconds)
    finally:
        session.close()
    return texts[0] if texts else ""


def until(condition, seconds=60):
    """Return whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def paper(**options):
    """Return the paper's H2T2 (Algorithm 1): explored feedback and a fixed exploration rate, except for `options`."""
    return H2T2(**{**PAPER, **options})


class Ldl(h2t2.ldl.ldl.Ldl):
    """A node's model that returns the bin which a test passes."""

    def run(self, x):
        return x

    def bin(self, q):
        return q

    def level(self, q):
        return 0
