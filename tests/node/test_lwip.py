"""Whole nodes on MicroPython's own network stack, a Pico W's, with its heap: real Mosquitto, real remote model, an unfriendly
network."""

import os
import signal
import subprocess
from contextlib import contextmanager

import pytest
from interpreters import need
from name_server import NameServer
from rig import Board, Material, parse
from support import mosquitto, worker

from h2t2_tools.boards.emulators import lwip
from h2t2_tools.proof.children import rest
from h2t2_tools.proof.usage import children

pytestmark = [pytest.mark.whole, pytest.mark.slow]
ENTRY = {"id": "lwip", "kind": "unix", "emulator": "lwip", "features": []}


@pytest.fixture
def board():
    need(lwip.LWIP)
    return Board(ENTRY, None, True)


@pytest.fixture
def broker(tmp_path_factory):
    with mosquitto(tmp_path_factory.mktemp("mosquitto")) as running:
        yield running


@pytest.fixture
def material(tmp_path, broker):
    """material(samples, **config) -> Material for a node whose broker this machine runs."""
    given = {"broker": lwip.HOST, "port": broker.port, "device": "lwip", "policy": "adaptive"}
    return lambda samples, **config: Material(tmp_path, samples, {**given, **config})


class Network:
    """The network of a running port: slirp, its process's child."""

    def __init__(self, process):
        (self.slirp,) = children(process.pid)

    def stall(self):
        os.kill(self.slirp, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.slirp, signal.SIGCONT)


@contextmanager
def running(board, material, names=None):
    """A node's process; killed at the end if it still runs. names: its NameServer."""
    board.prepare(material)
    script = material.folder / "start.py"
    port = f"import h2t2.link.names\nh2t2.link.names.PORT = {names.port}\n" if names else ""
    script.write_text(port + "import main\n")
    env = lwip.LWIP.environment(material.folder, dns=lwip.HOST)
    process = subprocess.Popen(
        lwip.LWIP.command(script, []), cwd=material.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finished(process, said="", seconds=120):
    out = said + rest(process, seconds)[0]
    assert process.returncode == 0, out[-800:]
    return parse(out)


def decided(outcome, samples):
    return sorted(row["n"] for row in outcome.decisions) == list(range(samples))


def test_a_stalled_network_delays_no_decision(board, material, broker):
    """Nothing comes and nothing is refused: each sample is decided within its deadline, and the link is there afterwards."""
    made = material(300, every="20ms", deadline_ms=400, snapshot="")
    with worker(broker.url, "breast_cancer"), running(board, made) as process:
        said = board.heard(process, '"remote"')
        network = Network(process)
        network.stall()
        said += board.heard(process, '"fallback"') + board.heard(process, '"fallback"')
        network.go_on()
        outcome = finished(process, said)
    assert decided(outcome, 300) and outcome.summary["errors"] == 0, outcome.log
    sources = [row["source"] for row in sorted(outcome.decisions, key=lambda row: row["n"])]
    assert "remote" in sources[sources.index("fallback") :]


def test_a_missing_broker_delays_no_decision(board, material, broker):
    broker.stop()
    outcome = board.run(material(100, snapshot=""))
    assert decided(outcome, 100) and outcome.summary["replies"] == outcome.summary["connections"] == 0
    assert outcome.summary["errors"] == 0 and "deciding locally" in outcome.log


def test_a_silent_name_server_delays_no_decision(board, material, broker):
    """It falls silent before the first sample, for as long as a Pico W's own look-up takes to give up on a server; then it
    answers, and the node is there. Each sample is decided when it is due."""
    made = material(160, broker="broker.test", every="50ms", deadline_ms=400, snapshot="")
    with worker(broker.url, "breast_cancer"), NameServer(lwip.HOST) as names:
        names.silent = True
        with running(board, made, names) as process:
            said = board.heard(process, '"n": 100,')
            asked, names.silent = names.asked, False
            outcome = finished(process, said)
    assert decided(outcome, 160) and outcome.summary["errors"] == outcome.summary["crowded"] == 0, outcome.log
    assert 3 <= asked <= 12 and outcome.summary["replies"] > 0
    sources = [row["source"] for row in outcome.decisions]
    assert "remote" not in sources[:100]
