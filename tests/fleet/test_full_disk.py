"""A queue whose file cannot be written: nobody is asked twice, and no label teaches twice. SQLite itself refuses the writes."""

import json
import threading

import pytest
from disks import at_once, read_only  # noqa: F401
from gate_decisions import Scripted
from scripted import BOOT, Link
from support import Ldl, paper, until

from h2t2.cpython.worker_wire import decode_request
from h2t2.link import wire
from h2t2_tools.fleet.failures import Cause
from h2t2_tools.fleet.gate import Detection, Gate, GateConfig, Payload
from h2t2_tools.fleet.gate.gate_backlog import Backlog
from h2t2_tools.fleet.gate.gate_state import state
from h2t2_tools.fleet.gate.remote import Answer
from h2t2_tools.fleet.monitoring.alarms import _of_state
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.monitoring.watched_device import Device
from h2t2_tools.fleet.queue.queue_options import QueueOptions
from h2t2_tools.fleet.queue.queueing_node import QUEUED, QueueFile, QueueNode, Samples

pytestmark = pytest.mark.usefixtures("at_once")


def node_of(folder, policy):
    samples = Samples(QueueFile(folder / "node.queue", QueueOptions()))
    arguments = {"patience": 60, "model_id": 1, "boot": BOOT, "window": 2, "log": lambda text: None}
    return QueueNode(policy, Ldl(), Link(), lambda *_: None, queue=samples, **arguments), samples


def asked(node):
    return sum(decode_request(payload).sequence >= QUEUED for payload in node.link.sent)


def asking_node(folder):
    """A node, and its queue: it has decided one sample while its link was down, and has just asked about it."""
    node, samples = node_of(folder, paper(epsilon=32768, feedback="all", window=8))
    node.link.up = False
    node.step(5, (1,), b"x", 0)
    node.poll()
    node.link.up, node.link.answers = True, False
    node.poll()
    return node, samples


def test_a_node_asks_once_and_learns_once_it_can_write(tmp_path):
    node, samples = asking_node(tmp_path)
    assert asked(node) == 1
    read_only(node.queue)
    node.link.answer_to()
    node.link.answer_to()  # a broker may deliver it twice
    for _ in range(50):
        node.poll()
    assert (asked(node), node.late, node.policy.lessons, node.strangers) == (1, 0, 0, 1)
    assert node.report()["queue_stuck"] and node.queue.length == 1
    read_only(node.queue, on=False)
    node.poll()
    assert (asked(node), node.late, node.policy.lessons, node.queue.length) == (1, 1, 1, 0)
    assert not node.report()["queue_stuck"]
    samples.close()


def test_a_node_that_starts_on_a_read_only_file_asks_nothing_of_it(tmp_path):
    policy = paper(epsilon=32768, feedback="all", window=8)
    node, samples = node_of(tmp_path, policy)
    node.link.up = False
    node.step(5, (1,), b"x", 0)
    node.poll()
    samples.close()
    node, samples = node_of(tmp_path, policy)
    read_only(node.queue)
    for _ in range(20):
        node.poll()
    assert asked(node) == 0 and node.queue.length == 1
    read_only(node.queue, on=False)
    assert until(lambda: node.poll() or not node.queue.length, 20)
    assert asked(node) == 1
    samples.close()


class Remote(Scripted):
    """Answers 1 at once when it is `here`; otherwise it is away."""

    def __init__(self):
        self.asked, self.here, self.held = [], False, None

    def ask(self, question, deliver):
        self.asked.append(bytes(question.payload.data))
        answer = Answer(label=1) if self.here else Answer(-1, "away", Cause.SERVER)
        if self.held is not None:
            self.held.append(lambda: deliver(answer))
        else:
            threading.Timer(0, deliver, (answer,)).start()


def gate_of(folder, remote):
    config = GateConfig(topic="x", remote="worker:1", folder=folder, beta=0.01, deadline=20, policy="h2t2", epsilon=1.0)
    return Gate(config, remote)


def test_a_gate_asks_once_about_a_sample_and_its_label_teaches_once(tmp_path, monkeypatch):
    remote = Remote()
    with gate_of(tmp_path, remote) as gate:
        gate.decide("porch", 0.5, Payload(data=b"old", media="image/jpeg"))
        assert gate.backlog.length == 1
        read_only(gate.backlog)
        remote.here = True
        gate.health.note_answer(0.0, 1.0)  # the remote model is back
        until(lambda: False, 1)
        assert remote.asked.count(b"old") == 1 and gate.lessons == 0  # nothing of the queue is asked about
        assert gate.decide("porch", 0.5, Payload(data=b"new", media="image/jpeg"), identity="a").source == "remote"
        assert gate.decide("porch", 0.5, Payload(data=b"new", media="image/jpeg"), identity="a").source == "remote"
        assert remote.asked.count(b"new") == 1 and gate.lessons == 1  # no row of it exists that could teach again
        entries = state(gate, boot=1, uptime_s=1, strangers=0, complaints=0)
        device = Device("gate")
        device.state = parse_state(json.dumps(entries).encode())
        assert "disk" in _of_state(device, device.state, None, 0.0)
        read_only(gate.backlog, on=False)
        assert until(lambda: gate.lessons == 2 and not gate.backlog.length, 20)
    assert remote.asked.count(b"old") == 2


def test_an_answer_that_cannot_be_settled_teaches_after_the_disk_or_is_asked_again_after_a_restart(tmp_path):
    remote = Remote()
    remote.here, remote.held = True, []
    with gate_of(tmp_path, remote) as gate:
        decided = []
        gate.submit(Detection("porch", 0.5, identity="b", payload=Payload(data=b"x", media="image/jpeg")), decided.append)
        read_only(gate.backlog)
        remote.held.pop()()
        assert [decision.source for decision in decided] == ["remote"] and gate.lessons == 0
    remote.held = None
    with gate_of(tmp_path, remote) as gate:
        assert until(lambda: gate.lessons == 1, 20)
    assert remote.asked == [b"x", b"x"]


def test_decisions_that_could_not_be_written_are_known_and_written_later(tmp_path):
    file = Backlog(tmp_path / "gate.db", 10**6, 100.0, 10)
    with gate_of(tmp_path / "other", Remote()) as gate:
        decision = gate.decide("porch", 0.9, identity="c")
    read_only(file)
    file.decide(decision)
    assert file.decision("", decision.mark) == decision
    read_only(file, on=False)
    assert file.flush()
    file.close()
    again = Backlog(tmp_path / "gate.db", 10**6, 100.0, 10)
    assert again.decision("", decision.mark) == decision
    again.close()


def attempts(queue):
    return queue._base.execute("SELECT attempts FROM waiting").fetchone()[0]


def test_a_gate_that_ends_in_order_counts_no_attempt_and_asks_nothing_more_after_eight(tmp_path):
    remote = Remote()
    remote.held = []
    with gate_of(tmp_path, remote) as gate:
        gate.submit(Detection("porch", 0.5, payload=Payload(data=b"x", media="image/jpeg")), lambda decision: None)
        assert attempts(gate.backlog) == 1
    file = Backlog(tmp_path / "gate-state/gate.db", 10**6, 10**6, 10)
    assert attempts(file) == 0
    file._base.execute("UPDATE waiting SET attempts = 8")
    file.close()
    with gate_of(tmp_path, remote) as gate:
        assert until(lambda: not gate.backlog.length)
        assert gate.backlog.dropped == 1
    assert remote.asked == [b"x"]


def test_a_node_asks_nothing_more_after_eight_attempts_and_a_busy_worker_is_none(tmp_path):
    node, samples = asking_node(tmp_path)
    assert asked(node) == 1 and attempts(samples) == 1
    node.link.answer_to(status=wire.BUSY)
    node.poll()
    assert attempts(samples) == 0
    samples._base.execute("UPDATE waiting SET attempts = 8")
    node._retry_at = 0.0
    node.poll()
    assert asked(node) == 1 and (samples.length, samples.dropped) == (0, 1)
    samples.close()


def test_a_connection_that_ends_is_no_fault_of_the_sample_that_was_asked_about(tmp_path):
    """Although another sample was answered just before."""
    node, samples = asking_node(tmp_path)
    node.link.answer_to()
    node.poll()
    assert samples.length == 0
    node.link.up = False
    node.step(5, (1,), b"y", 0)
    node.poll()
    node.link.up, node._retry_at = True, 0.0
    node.poll()
    assert attempts(samples) == 1
    node.link.up = False
    node.poll()
    assert attempts(samples) == 0
    samples.close()
