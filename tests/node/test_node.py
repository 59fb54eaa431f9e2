"""The node with a scripted link: one decision a sample, one lesson a label, whatever the replies are."""

import pytest
from support import Ldl, paper

import h2t2.node
from h2t2.clock import ticks_add, ticks_diff, ticks_ms
from h2t2.link import wire
from h2t2.node.node import FALLBACK, LOCAL, REMOTE, Node

BOOT = 77


class Link:
    """Requests go to `sent`; a test puts replies into `replies`."""

    def __init__(self):
        self.sent, self.replies, self.up = [], [], True

    def send(self, payload):
        self.sent.append(payload)
        return self.up

    def receive(self, wait_ms):
        return self.replies.pop(0) if self.replies else None

    def answer(self, label, payload=None, status=wire.OK, boot=None):
        _, own, sequence, _, _ = wire.decode_request(payload or self.sent[-1])
        self.replies.append(wire.encode_reply(status, own if boot is None else boot, sequence, label, 0))


@pytest.fixture
def setup():
    decisions = []
    link = Link()
    policy = paper(epsilon=32768, feedback="all")  # offloads everything
    node = Node(policy, Ldl(), link, lambda *args: decisions.append(args), 1, BOOT, window=4, deadline_ms=1000)
    return node, link, decisions


def step(node, k=5, tag="s"):
    node.step(k, (1,), b"x", tag)


def test_a_reply_decides_and_teaches_once(setup):
    node, link, decisions = setup
    step(node)
    link.answer(1)
    link.answer(1)
    node.poll()
    assert decisions == [("s", 5, 1, REMOTE)]
    assert (node.policy.taught, node.replies, node.strangers) == (1, 1, 1)


def test_a_local_decision_sends_nothing():
    decisions = []
    node = Node(paper(epsilon=1), Ldl(), Link(), lambda *args: decisions.append(args), 1, BOOT)
    step(node, 15)
    assert decisions == [("s", 15, 1, LOCAL)]  # every expert says 1 in the top bin
    assert node.link.sent == []


def test_strangers_replies_teach_nothing(setup):
    node, link, decisions = setup
    step(node)
    link.answer(1, boot=BOOT + 1)
    link.answer(7)
    link.replies += [b"", b"nonsense", b"\0" * 13, b"\xff" * 13]
    node.poll()
    assert decisions == [] and node.policy.taught == 0 and node.strangers == 6
    link.answer(0)
    node.poll()
    assert decisions == [("s", 5, 0, REMOTE)]


def test_past_the_deadline_it_falls_back_and_a_late_reply_teaches_nothing(setup, monkeypatch):
    node, link, decisions = setup
    step(node)
    now = ticks_ms()
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: ticks_add(now, 1001))
    node.poll()
    assert decisions == [("s", 5, node.policy.local, FALLBACK)]
    link.answer(1)
    node.poll()
    assert len(decisions) == 1 and node.policy.taught == 0 and node.strangers == 1


def test_deadlines_hold_across_the_wrap_of_the_clock(setup, monkeypatch):
    node, _, decisions = setup
    end = 2**30 - 5
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: end)
    step(node)
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: ticks_add(end, 874))
    node.poll()
    assert decisions == []
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: ticks_add(end, 875))  # an eighth before the deadline
    node.poll()
    assert len(decisions) == 1
    assert ticks_diff(ticks_add(end, 10), end) == 10


@pytest.mark.parametrize("status", [wire.MALFORMED, wire.WRONG_MODEL, wire.FAILED])
def test_an_error_status_falls_back_at_once(setup, status):
    node, link, decisions = setup
    step(node)
    link.answer(-1, status=status)
    node.poll()
    assert decisions == [("s", 5, node.policy.local, FALLBACK)] and node.fallbacks == 1


def test_a_link_that_is_down_falls_back_at_once(setup):
    node, link, decisions = setup
    link.up = False
    step(node)
    assert decisions == [("s", 5, node.policy.local, FALLBACK)] and not node.pending


def test_the_window_bounds_what_is_in_flight(setup):
    node, link, decisions = setup
    for _ in range(4):
        step(node)
    assert node.busy()
    with pytest.raises(RuntimeError, match="in flight"):
        step(node)
    for payload in reversed(link.sent):
        link.answer(0, payload)
    node.poll()
    assert len(decisions) == 4 and node.policy.taught == 4 and not node.busy()


def test_a_flood_of_replies_does_not_keep_a_poll():
    """However many come, a poll ends, and what is past its deadline is decided."""
    decisions = []
    link = Link()
    link.receive = lambda wait_ms: b"nonsense"
    node = Node(paper(epsilon=32768), Ldl(), link, lambda *args: decisions.append(args), 1, BOOT, deadline_ms=0)
    step(node)
    node.poll()
    assert node.strangers == h2t2.node.node.AT_ONCE and len(decisions) == 1
