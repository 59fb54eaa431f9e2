"""A node that keeps what it could not ask: what the labels teach, when it asks, what it drops, and how it survives a kill."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from array import array
from contextlib import contextmanager

import pytest
from command_line import h2t2
from scripted import BOOT, Link
from snapshots import restored, saved
from support import Ldl, paper, until, worker

from h2t2.core.budget import Budget
from h2t2.core.forecaster import fade
from h2t2.core.policies import make
from h2t2.core.policy import SIZE
from h2t2.cpython.worker_wire import decode_request
from h2t2.ldl.head_sample import HeadSample
from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2.node.node import FALLBACK, REMOTE, Node
from h2t2_tools.cli.main import main
from h2t2_tools.common import policies
from h2t2_tools.fleet.queue.lesson import Lesson
from h2t2_tools.fleet.queue.queue_options import QueueOptions
from h2t2_tools.fleet.queue.queueing_node import QUEUED, QueueFile, QueueNode, Samples

DEADLINE_MS = 2000  # of a node without another one
KINDS = {
    "adaptive": {}, "h2t2": {}, "miss_rate": {"miss_rate": 0.05}, "guaranteed": {"miss_rate": 0.05, "confidence": 0.9},
    "classes": {"costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, "head": {},
    "classes, guaranteed": {"costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]], "miss_rate": 0.05, "confidence": 0.9, "normal": 0},
    "class-head": {"costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, "ordered": {"ordered": True},
}  # fmt: skip


class FeatureLdl(HeadSample):
    """A local model that gives the sample which a test passes: its score, or scores, and three features."""

    def __init__(self):
        pass

    def run(self, x):
        self.sample = x
        self.first = len(x) - 3
        return x


def policy_of(kind):
    name = "h2t2" if kind == "h2t2" else "adaptive"
    arguments = policies.policy_arguments(name, {**policies.DEFAULTS, "beta": 0.2, **KINDS[kind]})
    return make(name, arguments | ({"features": 3} if "head" in kind else {}) | {"window": 4})


def offloading():
    """A policy that offloads everything."""
    return paper(epsilon=32768, feedback="all", window=8)


def reading_of(kind, n):
    score = n * 7919 % 256
    scores, features = [score * 40, 16384 - score * 40, 0], [n % 50, -n % 40, 7]
    samples = {
        "classes": scores, "head": array("i", [score, *features]), "class-head": array("i", [*scores, *features]),
    }  # fmt: skip
    return samples.get(kind.partition(",")[0], score >> 4)


def queue_file(folder, **options):
    return QueueFile(folder / "node.queue", QueueOptions(**options))


@pytest.fixture
def ticks(monkeypatch):
    """The node's clock, milliseconds in a list: it stands still until a test advances it."""
    clock = [0]
    for module in ("h2t2.clock", "h2t2.node.asking", "h2t2.node.node"):
        monkeypatch.setattr(f"{module}.ticks_ms", lambda: clock[0])
    return clock


@contextmanager
def queue_node(folder, policy=None, ldl=None, **options):
    """A QueueNode of a start, with its decisions."""
    decisions = []
    file = queue_file(folder, **{name: options.pop(name) for name in ("queue_mb",) if name in options})
    samples = Samples(file)
    node = QueueNode(
        policy or offloading(), ldl or Ldl(), Link(), lambda *args: decisions.append(args), queue=samples,
        **{"patience": 60, "model_id": 1, "boot": BOOT, "window": 2, "log": lambda text: None, **options},
    )  # fmt: skip
    try:
        yield node, decisions
    finally:
        samples.close()


def outage(folder, count, **options):
    """Queue samples with the payloads 0, 1, 2 ... while the broker is away."""
    with queue_node(folder, **options) as (node, decisions):
        node.link.up = False
        for n in range(count):
            node.step(5, (1,), bytes([n]), n)
            node.poll()
        assert [source for *_, source in decisions] == [FALLBACK] * count and node.queue.length == count


def asked(node):
    """The payloads of the requests for queued samples."""
    requests = [decode_request(payload) for payload in node.link.sent]
    return [bytes(request.data)[0] for request in requests if request.sequence >= QUEUED]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_after_an_outage_and_a_restart_teach_bit_for_bit_what_they_teach_in_time(kind, tmp_path, ticks):
    """Two nodes see the same samples at the same times. One is answered at once; the other has no broker, and it restarts."""
    ldl = FeatureLdl if "head" in kind else Ldl
    prompt = Node(policy_of(kind), ldl(), Link(), lambda *_: None, model_id=1, boot=BOOT)
    policy, late, restarts_with_samples = policy_of(kind), 0, 0

    def asks(node):
        """The broker is back; what is queued is asked."""
        node.link.up, node.link.label = True, prompt.link.label
        for _ in range(3):
            node.poll()
        if hasattr(policy.limit, "evidence"):
            prompt.policy.limit.evidence = policy.limit.evidence  # what was decided during the outage is not taken back
        if prompt.policy.answers:
            fade(prompt.policy.answers, 0, SIZE, 15)  # a label of the queue is no answer in time
        assert not node.queue.length and list(policy.state()) == list(prompt.policy.state())

    for first in range(0, 160, 10):
        with queue_node(tmp_path, policy, ldl()) as (node, decisions):
            restarts_with_samples += node.queue.length
            asks(node)
            assert not decisions
            for n in range(first, first + 10):
                asks(node)
                reading, prompt.link.label = reading_of(kind, n), int(n * 7919 % 256 > 100 + n % 60)
                prompt.step(reading, (1,), b"x", n)
                prompt.poll()
                node.link.up = False
                node.step(reading, (1,), b"x", n)
                node.poll()
            assert [decision[0] for decision in decisions] == list(range(first, first + 10))
            late += node.late
        content, policy = saved(policy, policy.cost_list()), policy_of(kind)
        restored(policy, content, policy.cost_list())
    assert late > 20 and restarts_with_samples and prompt.replies - late in (0, 1)  # the last one may still wait


def test_the_oldest_is_asked_first_one_at_a_time_and_never_beside_a_live_offload(tmp_path):
    outage(tmp_path, 3)
    with queue_node(tmp_path) as (node, decisions):
        node.link.answers = False
        node.step(5, (1,), b"x", "live")
        node.poll()
        assert asked(node) == []
        node.link.answer_to()
        node.poll()
        node.poll()
        assert decisions[0][3] == REMOTE and asked(node) == [0]
        node.link.answer_to()
        node.link.answers = True
        for _ in range(4):
            node.poll()
        assert asked(node) == [0, 1, 2] and (node.late, node.queue.length, len(decisions)) == (3, 0, 1)
        assert node.policy.lessons == 4 and node.strangers == 0
        assert node.report()["queued"] == 0


def test_only_what_may_still_get_an_answer_is_kept(tmp_path):
    """Busy workers, a gateway without workers, a server that is away, and silence: kept. What fails on this sample: not."""
    waiting = (wire.BUSY, wire.NOBODY, wire.LATER, wire.WRONG_MODEL)
    for status, count in (*((status, 1) for status in waiting), (wire.FAILED, 0), (wire.TOO_LARGE, 0)):
        folder = tmp_path / str(status)
        folder.mkdir()
        with queue_node(folder) as (node, _):
            node.link.status = status
            node.step(5, (1,), b"x", 0)
            node.poll()
            assert (node.queue.length, node.fallbacks) == (count, 1), STATUS[status]
    with queue_node(tmp_path, data_limit=2) as (node, _):
        node.step(5, (3,), b"xyz", 0)
        assert (node.queue.length, node.fallbacks) == (0, 1)


def test_a_reply_after_the_deadline_teaches_once_and_empties_the_queue(tmp_path, ticks):
    with queue_node(tmp_path) as (node, decisions):
        node.link.answers = False
        node.step(5, (1,), b"x", 0)
        ticks[0] += DEADLINE_MS
        node.poll()
        assert decisions
        assert node.queue.length == 1 and asked(node) == []  # its answer may still come
        node.link.answer_to()
        node.link.answer_to()
        node.poll()
        assert (node.queue.length, node.late, node.policy.lessons, node.strangers) == (0, 1, 1, 1)


@pytest.mark.slow
def test_a_question_without_an_answer_is_asked_again_after_the_patience(tmp_path):
    outage(tmp_path, 1)
    with queue_node(tmp_path, patience=0.01) as (node, _):
        node.link.answers = False
        assert until(lambda: node.poll() or len(asked(node)) == 2, 10)
        assert node.queue.length == 1 and node.unanswered >= 1
        node.link.answer_to(node.link.sent[0])  # the reply to the first request comes at last
        node.poll()
        assert (node.late, node.queue.length) == (1, 0)


def test_the_queue_keeps_to_the_budget(tmp_path):
    outage(tmp_path, 5)
    with queue_node(tmp_path, budget=Budget(2, fixed=1, per_kb=0)) as (node, _):
        node.budget.level = 2
        for _ in range(20):
            node.poll()
        assert asked(node) == [0, 1] and node.queue.length == 3 and node.budget.level == 0
        assert node.paid == 2 * node.policy.beta
        statements = []
        node.queue._base.set_trace_callback(statements.append)
        node.poll()
        assert statements == []  # without a budget it reads nothing


def test_a_late_label_leaves_the_ticket_of_a_live_offload(tmp_path):
    """The policy holds one ticket only, and a label of the queue comes while it is outstanding."""
    policy = paper(epsilon=32768, feedback="all", window=1)
    outage(tmp_path, 1, policy=policy)
    with queue_node(tmp_path, policy) as (node, decisions):
        node.link.answers = False
        node.poll()
        node.step(5, (1,), b"x", "live")
        for request in list(node.link.sent):
            node.link.answer_to(request)
        node.poll()
        assert asked(node) == [0] and decisions[0][3] == REMOTE
        assert (node.late, node.replies, policy.lessons, policy.tickets.lost) == (1, 1, 2, 0)


@pytest.mark.parametrize(
    "change", [{"policy": paper(bits=3)}, {"policy": policy_of("adaptive")}, {"model_id": 2}], ids=["bits", "kind", "model"]
)
def test_samples_of_another_policy_or_model_are_dropped(change, tmp_path, caplog):
    outage(tmp_path, 3)
    with queue_node(tmp_path, **change) as (node, _):
        node.poll()
        assert node.link.sent == [] and (node.queue.length, node.queue.dropped) == (0, 3)
    assert caplog.text.count("they are dropped") == 1


@pytest.mark.parametrize("lesson", ["", "[]", '{"bin": "x"}', "{}", None], ids=repr)
def test_a_row_that_nobody_can_read_is_dropped_and_logged(lesson, tmp_path, caplog):
    outage(tmp_path, 2)
    base = sqlite3.connect(tmp_path / "node.queue")
    with base:
        base.execute("UPDATE waiting SET lesson = ? WHERE id = 1", (lesson if lesson is not None else b"\xff",))
    base.close()
    with queue_node(tmp_path) as (node, _):
        for _ in range(3):
            node.poll()
        assert asked(node) == [1] and (node.late, node.queue.length, node.queue.dropped) == (1, 0, 1)
    assert "cannot be read and is dropped" in caplog.text


def test_a_lesson_whose_numbers_no_policy_has_does_not_fit():
    policy = offloading()
    policy.decide(5)
    lesson = Lesson.of(policy)
    assert lesson.fits(policy)
    for wrong in ({"bin": -1}, {"bin": 16}, {"local": 2}, {"bits": 5}, {"classes": 3}, {"features": (1, 2)}):
        assert not Lesson(**{**vars(lesson), **wrong}).fits(policy), wrong


def test_a_disk_that_fails_stops_no_decision_and_the_ticket_still_teaches(tmp_path, ticks):
    with queue_node(tmp_path) as (node, decisions):
        node.queue.close()
        node.link.answers = False
        node.step(5, (1,), b"x", 0)
        ticks[0] += DEADLINE_MS
        node.poll()
        assert decisions
        node.link.answer_to()
        node.poll()
        assert decisions[0][3] == FALLBACK and node.queue.failures and (node.late, node.policy.lessons) == (1, 1)


def test_a_full_queue_drops_the_oldest(tmp_path):
    with queue_node(tmp_path, queue_mb=1) as (node, _):
        node.link.up = False
        for n in range(129):
            node.step(5, (20000,), bytes(20000), n)
        assert node.queue.dropped and node.queue.length + node.queue.dropped == 129
        assert node.queue.next().number == node.queue.dropped + 1


def test_a_bare_queue_needs_a_snapshot_and_a_file_of_another_kind_is_refused(tmp_path, capsys):
    assert main(["node", "--queue"]) == 2
    assert "also give --snapshot" in capsys.readouterr().err
    (tmp_path / "q").write_text("no database, but longer than the header of one" * 9)
    assert main(["node", "--samples", "1", "--queue", str(tmp_path / "q")]) == 2
    assert "name another file in --queue" in capsys.readouterr().err


@pytest.mark.whole
def test_a_killed_node_asks_after_the_outage_and_its_queue_empties(broker, tmp_path):
    """Real Mosquitto. The worker is away, the node is killed; the next start asks the worker about all of it."""
    snapshot = tmp_path / "state"
    url = f"mqtt://{broker.host}:{broker.port}"
    options = ["--pair", "digits", "--broker", url, "--beta", "0.1", "--snapshot", str(snapshot), "--queue"]
    command = [sys.executable, "-m", "h2t2_tools", "node", *options, "--samples", "100000"]
    node = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    fallbacks = 0
    for line in node.stdout:
        fallbacks += '"fallback"' in line
        if fallbacks == 30:
            break
    os.kill(node.pid, signal.SIGKILL)
    node.communicate()
    samples = Samples(QueueFile(tmp_path / "state.queue", QueueOptions()))
    queued = samples.length
    samples.close()
    assert queued >= 29
    with worker(url):
        run = h2t2("node", *options, "--samples", 300, "--every", "10ms")
    summary = json.loads(run.stdout.splitlines()[-1])["summary"]
    assert summary["queued"] == summary["queue_dropped"] == summary["strangers"] == 0
    assert summary["late"] >= queued and summary["taught"] == summary["late"] + summary["replies"]
    assert summary["samples"] == 300 and summary["fallbacks"] + queued <= summary["late"] + 1
