"""Whole nodes on MicroPython's own network stack, a Pico W's, with its heap: real Mosquitto, real remote model, an unfriendly
network."""

import json
import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from name_server import NameServer
from rig import Board, Material, parse
from support import ROOT, mosquitto, need, need_mosquitto, worker

from h2t2.core import policies
from h2t2.node.keeper import Keeper
from h2t2.node.store import file_store
from h2t2_lab.emulators import lwip
from h2t2_lab.processes import remaining_output
from h2t2_lab.usage import children
from h2t2_tools.boards import cross
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.fleet import broker as brokers
from h2t2_tools.fleet import certs

pytestmark = [pytest.mark.whole, pytest.mark.slow]
MODULE = "h2t2/node/awaited.py"
AWAITED = (ROOT / "tests/portable/awaited_mqtt.py").read_text()
ENTRY = {"id": "lwip", "kind": "unix", "emulator": "lwip", "features": []}


@pytest.fixture
def board():
    need(lwip.LWIP)
    need(UNIX)  # which looks at the folder that a node is put into
    return Board(ENTRY, None, True)


@pytest.fixture
def broker(tmp_path_factory):
    with mosquitto(tmp_path_factory.mktemp("mosquitto")) as running:
        yield running


@pytest.fixture
def make_material(tmp_path, broker):
    """make_material(samples, **config) -> Material for a node whose broker this machine runs."""
    entries = {"broker": lwip.HOST, "port": broker.port, "device": "lwip", "policy": "adaptive"}
    return lambda samples, **config: Material(tmp_path, samples, {**entries, **config})


class Network:
    """The network of a running port: slirp, its process's child."""

    def __init__(self, process):
        (self.slirp,) = children(process.pid)

    def stall(self):
        os.kill(self.slirp, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.slirp, signal.SIGCONT)


@contextmanager
def running(board, material, names=None, before="", program="import main\n"):
    """A node's process; killed at the end if it still runs. names: its NameServer. before: source that runs first."""
    board.prepare(material)
    script = material.folder / "start.py"
    port = f"import h2t2.link.names\nh2t2.link.names.PORT = {names.port}\n" if names else ""
    script.write_text(port + before + program)
    env = lwip.LWIP.environment(material.folder, dns=lwip.HOST)
    process = subprocess.Popen(
        lwip.LWIP.command(script, []), cwd=material.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finished(process, output="", seconds=120):
    out = output + remaining_output(process, seconds)[0]
    assert process.returncode == 0, out[-800:]
    return parse(out)


def decided(outcome, samples):
    return sorted(row["n"] for row in outcome.decisions) == list(range(samples))


# every random number is -1: lwIP's first port would be 0xffff
ONES = """
#include <string.h>
#include <sys/types.h>
ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    memset(bytes, 255, count);
    return count;
}
"""


def test_whatever_port_lwip_draws_the_first_connection_is_made(board, make_material, broker, tmp_path, monkeypatch):
    """lwIP steps past its last port, the one start in 16,384 that draws it, to port 0: "ENOBUFS" without a packet sent."""
    (tmp_path / "ones.c").write_text(ONES)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "ones.so", tmp_path / "ones.c"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "ones.so"))
    outcome = board.run(make_material(20, snapshot=""))
    assert outcome.summary["connections"] == 1 and "ENOBUFS" not in outcome.log, outcome.log


def test_a_stalled_network_delays_no_decision(board, make_material, broker):
    """Nothing comes and nothing is refused: each sample is decided within its deadline, and the link is there afterwards."""
    material = make_material(300, every="20ms", deadline="400ms", snapshot="")
    with worker(broker.url, "breast_cancer"), running(board, material) as process:
        output = board.wait_for(process, '"remote"')
        network = Network(process)
        network.stall()
        output += board.wait_for(process, '"fallback"') + board.wait_for(process, '"fallback"')
        network.go_on()
        outcome = finished(process, output)
    assert decided(outcome, 300) and outcome.summary["errors"] == 0, outcome.log
    sources = [row["source"] for row in sorted(outcome.decisions, key=lambda row: row["n"])]
    assert "remote" in sources[sources.index("fallback") :]


def test_a_missing_broker_delays_no_decision(board, make_material, broker):
    broker.stop()
    outcome = board.run(make_material(100, snapshot=""))
    assert decided(outcome, 100) and outcome.summary["replies"] == outcome.summary["connections"] == 0
    assert outcome.summary["errors"] == 0 and "deciding locally" in outcome.log


def test_a_silent_name_server_delays_no_decision(board, make_material, broker):
    """It falls silent before the first sample, for as long as a Pico W's own look-up takes to give up on a server; then it
    answers, and the node is there. Each sample is decided when it is due."""
    material = make_material(160, broker="broker.test", every="50ms", deadline="400ms", snapshot="")
    with worker(broker.url, "breast_cancer"), NameServer(lwip.HOST) as names:
        names.silent = True
        with running(board, material, names) as process:
            output = board.wait_for(process, '"n": 100,')
            questions, names.silent = names.questions, False
            outcome = finished(process, output)
    assert decided(outcome, 160) and outcome.summary["errors"] == 0, outcome.log
    # getaddrinfo() of lwIP skips 140 slots each time; a machine that holds the node for 0.4 s makes a sample too late to ask
    assert outcome.summary["skipped"] + outcome.summary["crowded"] < 20, outcome.summary
    assert 3 <= questions <= 12 and outcome.summary["replies"] > 0
    sources = [row["source"] for row in outcome.decisions]
    assert "remote" not in sources[:100]


# prints what its policy is asked and told, in order; how long after it was due each sample was decided; when it saved
RECORD = """
import h2t2.core.policies as policies
import h2t2.node.service as service
from h2t2.clock import ticks_diff, ticks_ms
from h2t2.node.keeper import Keeper
from h2t2.node.node import Node

make, step, show, save = policies.make, Node.step, service.show, Keeper.save
due = {}
began = ticks_ms()

def recorded(name, arguments):
    policy = make(name, arguments)
    decide, learn, lose, charge = policy.decide, policy.learn, policy.lose, policy.set_charge
    count = policy.count_question

    def decided(k):
        action = decide(k)
        print("D", due["n"], k, action, policy.ticket)
        return action

    def learned(ticket, label, beta):
        print("L", ticket, label, beta)
        return learn(ticket, label, beta)

    def lost(ticket):
        print("X", ticket)
        return lose(ticket)

    def counted(k, came):
        print("Q", k, came)
        count(k, came)

    def charged(beta):
        print("C", beta)
        charge(beta)

    policy.decide, policy.learn, policy.lose, policy.set_charge = decided, learned, lost, charged
    policy.count_question = counted
    return policy

def stepped(node, x, shape, remote, tag, since=None):
    due["n"] = tag
    due[tag] = since
    step(node, x, shape, remote, tag, since)

def shown(tag, k, decision, source):
    print("T", tag, ticks_diff(ticks_ms(), due.pop(tag)))
    show(tag, k, decision, source)

def saved(keeper):
    save(keeper)
    print("S", ticks_diff(ticks_ms(), began))

policies.make, Node.step, service.show, Keeper.save = recorded, stepped, shown, saved
"""
# prints the milliseconds for which the process was ready and had no core
WAITED = 'print("W", int(open("/proc/self/schedstat").read().split()[1]) // 1000000)'


class SecureBroker(brokers.Mosquitto):
    """A Mosquitto with a second listener, `secure`, whose clients show certificates of `folder`."""

    def __init__(self, folder):
        certs.make(folder / "certs", ["broker.test"], ["lwip"], 30)
        (folder / "certs/server.key").chmod(0o644)  # Mosquitto reads it as a user of its own
        self.secure = brokers.free_port()
        files = {"cafile": "ca.crt", "certfile": "server.crt", "keyfile": "server.key"}
        lines = [f"{name} {folder / 'certs' / file}" for name, file in files.items()]
        super().__init__(folder, f"listener {self.secure} 127.0.0.1", *lines, "require_certificate true")


@pytest.fixture
def secure_broker():
    need(lwip.LWIP)
    need_mosquitto()
    with tempfile.TemporaryDirectory(prefix="h2t2-secure-") as name:  # not pytest's: Mosquitto's user may read it
        folder = Path(name)
        broker = SecureBroker(folder)
        for readable in (folder, folder / "certs"):
            readable.chmod(0o755)
        broker.start()
        yield broker
        broker.stop()


def allowed(waited_ms):
    """Slots of 45 ms that a node may skip which waited so long for a core. A look-up that blocks skips 150."""
    return 40 + waited_ms // 45


def replayed(material, log):
    """The policy on this host, asked and told the same in the same order: each of its answers is the node's."""
    from h2t2.ldl.bundle import Int8Model

    config = material.board_config
    ldl = Int8Model(material.blob, config.event)
    policy = policies.make(config.policy, config.arguments())
    told = {"L": policy.learn, "X": policy.lose, "C": policy.set_charge, "Q": policy.count_question}
    decisions = 0
    for line in log.splitlines():
        kind, *numbers = line.split(" ")
        if kind == "D":
            n, k, action, ticket = map(int, numbers)
            assert k == ldl.level(ldl.run(memoryview(material.local[n].copy().data))) >> 8 - config.bits, n
            assert (policy.decide(k), policy.ticket) == (action, ticket), n
            decisions += 1
        elif kind in told and all(number.lstrip("-").isdigit() for number in numbers):
            told[kind](*map(int, numbers))
    return policy, decisions


def after_trouble(board, process, broker, output):
    """The node's output, once Mosquitto was killed and came back, and the network has stalled for 25 s."""
    broker.stop(kill=True)
    output += board.wait_for(process, '"fallback"')
    broker.start()
    output += board.wait_for(process, '"remote"')
    network = Network(process)
    network.stall()
    last = max(json.loads(line)["n"] for line in output.splitlines() if line.startswith('{"n"'))
    output += board.wait_for(process, f'"n": {last + 560},')  # 25 s of its slots
    network.go_on()
    return output


@pytest.mark.timeout(400)
def test_a_secure_node_with_a_boards_heap_through_all_of_it(board, make_material, secure_broker, tmp_path):
    """2,000 samples, a certificate of its own, the Pico W's free heap: the name server is silent for the first 30 s, then the
    broker is killed and comes back, then the network stalls for 25 s. Every sample is decided within its deadline, a snapshot
    is never older than a minute, and the host's policy replays every decision to the same state."""
    folder = secure_broker._config.parent / "certs"
    files = {"ca": str(folder / "ca.crt"), "cert": str(folder / "lwip.crt"), "key": str(folder / "lwip.key")}
    material = make_material(2000, broker="broker.test", port=secure_broker.secure, every="45ms", snapshot_every=20, **files)
    with worker(secure_broker.url, "breast_cancer"), NameServer(lwip.HOST) as names:
        names.silent = True
        with running(board, material, names, RECORD, "import main\n" + WAITED) as process:
            output = board.wait_for(process, '"n": 0,')
            output += board.wait_for(process, '"n": 660,')  # 30 s of its slots
            names.silent = False
            output += board.wait_for(process, '"remote"')
            output = after_trouble(board, process, secure_broker, output)
            outcome = finished(process, output, 200)
    summary = outcome.summary
    assert decided(outcome, 2000), outcome.log
    assert summary["errors"] == summary["unsaved"] == 0, summary
    (waited_ms,) = [int(line.split()[1]) for line in outcome.log.splitlines() if line.startswith("W ")]
    assert summary["skipped"] < allowed(waited_ms)
    lateness = [int(line.split()[2]) for line in outcome.log.splitlines() if line.startswith("T ")]
    assert len(lateness) == 2000 and max(lateness) <= material.board_config.deadline_ms
    saves = [0] + [int(line.split()[1]) for line in outcome.log.splitlines() if line.startswith("S ")]
    assert max(after - before for before, after in zip(saves, saves[1:])) <= 60_000
    assert summary["connections"] >= 2 and summary["replies"] > 30
    policy, decisions = replayed(material, outcome.log)
    assert decisions + summary["crowded"] == 2000
    kept = policies.make(material.board_config.policy, material.board_config.arguments())
    assert Keeper(kept, file_store(str(material.folder / "h2t2.state"))).restored
    assert list(kept.state()) == list(policy.state())


@pytest.mark.timeout(400)
def test_a_task_beside_a_secure_node_runs_every_50_ms_through_all_of_it(board, make_material, secure_broker):
    """Mosquitto is killed and comes back, and the network stalls for 25 s. The task of a program with asyncio runs within 70 ms
    of its last run, 99 times of 100, and every sample is decided within its deadline."""
    folder = secure_broker._config.parent / "certs"
    files = {"ca": str(folder / "ca.crt"), "cert": str(folder / "lwip.crt"), "key": str(folder / "lwip.key")}
    material = make_material(1200, broker="broker.test", port=secure_broker.secure, every="45ms", snapshot_every=20, **files)
    deadline_ms = material.board_config.deadline_ms
    path, content = cross.compiled_file(MODULE, (ROOT / "firmware" / MODULE).read_bytes(), None)
    task = (ROOT / "tests/portable/awaited_task.py").read_bytes()
    for name, data in ((path, content), ("awaited_task.py", task)):
        (material.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (material.folder / name).write_bytes(data)
    with (
        worker(secure_broker.url, "breast_cancer"),
        NameServer(lwip.HOST) as names,
        running(board, material, names, program=AWAITED) as process,
    ):
        output = board.wait_for(process, '"remote"')
        output = after_trouble(board, process, secure_broker, output)
        output += remaining_output(process, 200)[0]
        assert process.returncode == 0, output[-800:]
    lines = output.splitlines()
    lateness = [int(line.split()[2]) for line in lines if line.startswith("T ")]
    assert sorted(int(line.split()[1]) for line in lines if line.startswith("T ")) == list(range(1200))
    assert max(lateness) <= deadline_ms
    (gaps,) = [sorted(json.loads(line[2:])) for line in lines if line.startswith("G ")]
    errors, replies, connections, skipped, waited_ms = map(int, lines[-1].split()[1:])
    print(gaps[-30:], max(lateness), lines[-1])
    assert errors == 0 and connections >= 3 and replies > 30 and skipped < allowed(waited_ms)
    assert len(gaps) > 700 and gaps[-len(gaps) // 100 - 1] <= 70, gaps[-30:]
