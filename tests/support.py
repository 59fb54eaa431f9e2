"""Helpers for the tests of this folder and of hil/."""

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from command_line import H2T2 as COMMAND
from command_line import PIPES, line_with

import h2t2.ldl.ldl
from h2t2.core.h2t2 import H2T2
from h2t2.cpython.mqtt_session import Session, make_client
from h2t2.cpython.worker_wire import decode_request
from h2t2_lab.usage import children
from h2t2_tools.common.policies import PAPER
from h2t2_tools.fleet import broker, config, template

ROOT = Path(__file__).parents[1]


def program(path):
    """A Python file that no package holds, as a module under its own name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def made_once(factory, name, make):
    """The folder that make(folder) fills. Of the processes of a test run the first one makes it, the others wait for it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"once-{name}"
    with open(f"{folder}.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.fstat(lock.fileno()).st_size:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            lock.write("made")
    return folder


def need(emulator):
    """Return an emulated board; skip the test if something of it is missing."""
    reason = emulator.missing()
    if reason:
        pytest.skip(reason)
    return emulator


def need_mosquitto():
    """Skip the test if Mosquitto is not installed."""
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")


@contextmanager
def worker(url, pair="digits", *options):
    """Run a real RDL worker, ready to answer. At the end it terminates in order, so that it writes its coverage."""
    process = subprocess.Popen([*COMMAND, "rdl", "--pair", pair, "--broker", url, *options], **PIPES)
    try:
        line_with("ready", process.stderr)
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


def worker_replies(worker, payloads):
    """The replies of a Worker to requests, as its server passes them on."""
    return worker.answer([decode_request(payload) for payload in payloads])


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
def mosquitto(folder, *settings):
    """Run a Mosquitto that the test may stop and start again. Skip if it is not installed. settings: as Mosquitto's."""
    need_mosquitto()
    open_to_readers(folder)
    server = broker.Mosquitto(folder, *settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def subscribed(server, topics, take):
    """Yield a session on a broker that passes each message on these topics to take(message)."""

    def client():
        new = make_client("")
        new.on_message = lambda _client, _data, message: take(message)
        return new

    session = Session(server.host, server.port, client, topics).start()
    session.open()
    try:
        yield session
    finally:
        session.close()


@contextmanager
def listening(server, topic="frigate/events/decision"):
    """Yield (session, heard): a client that publishes, and what it hears on a topic, as JSON."""
    heard = []
    with subscribed(server, [topic], lambda message: heard.append(json.loads(message.payload))) as session:
        yield session, heard


def retained(server, topic, seconds=10):
    """Return the text that a broker retains on a topic, "" if none arrives in time. server: as mosquitto() yields it."""
    texts = []
    with subscribed(server, [topic], lambda message: texts.append(message.payload.decode())):
        until(lambda: texts, seconds)
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
    """A node's model that returns what a test passes: the bin, of four bits, of a score, or the scores of all classes."""

    def run(self, x):
        return x

    def level(self, q):
        return q << 4 if isinstance(q, int) else 0
