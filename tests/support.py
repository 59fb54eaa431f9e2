"""What tests of this folder and of hil/ share."""

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
    """For a process that a test starts: a shell starts what it puts into the background with Ctrl-C ignored, and it inherits
    that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def worker(url, pair="digits", *options):
    """A real RDL worker's process, ready to answer. At the end it is asked to end, so that it can write what it covered."""
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
        except subprocess.TimeoutExpired:  # a test made it hang
            for child in workers:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            process.kill()
            process.communicate()


def open_to_readers(folder):
    """Let Mosquitto, which is a user of its own where root starts it, read a folder of a test.

    Folders that others may enter stay as they are: the one for temporary files is everybody's.
    """
    if os.geteuid():
        return
    for place in (folder, *folder.parents[:3]):
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & 0o005 != 0o005:
            place.chmod(mode | 0o055)


@contextmanager
def mosquitto(folder):
    """A Mosquitto of a test's own, which it may stop and start again; skips where there is none."""
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    open_to_readers(folder)
    one = broker.Mosquitto(folder)
    one.start()
    try:
        yield one
    finally:
        one.stop()


def retained(one, topic, seconds=10):
    """The text that a broker retains on a topic, "" for none within so many seconds. one: of mosquitto()."""
    heard = []

    def client():
        made = make_client("")
        made.on_message = lambda _client, _data, message: heard.append(message.payload.decode())
        return made

    session = Session(one.host, one.port, client, [topic]).start()
    try:
        until(lambda: heard, seconds)
    finally:
        session.close()
    return heard[0] if heard else ""


def until(condition, seconds=60):
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def paper(**options):
    """H2T2 as the paper prints it, Algorithm 1: explored feedback and a fixed exploration rate, unless told otherwise."""
    return H2T2(**{**PAPER, **options})


class Ldl(h2t2.ldl.ldl.Ldl):
    """A node's model that says the bin a test hands it."""

    def run(self, x):
        return x

    def bin(self, q):
        return q

    def level(self, q):
        return 0
