"""The node with a scripted link: one decision a sample, one lesson a label, whatever the replies are."""

import pytest
from scripted import BOOT, Link, set_clock
from support import Ldl, paper

import h2t2.node
from h2t2.clock import ticks_add, ticks_diff, ticks_ms
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2.node.node import FALLBACK, LOCAL, REMOTE, Node


@pytest.fixture
def setup():
    decisions = []
    link = Link()
    link.answers = False
    policy = paper(epsilon=32768, feedback="all")  # offloads everything
    node = Node(policy, Ldl(), link, lambda *args: decisions.append(args), model_id=1, boot=BOOT, window=4, deadline_ms=1000)
    return node, link, decisions


def step(node, k=5, tag="s"):
    node.step(k, (1,), b"x", tag)


def test_a_reply_decides_and_teaches_once(setup):
    node, link, decisions = setup
    step(node)
    link.answer_to(label=1)
    link.answer_to(label=1)
    node.poll()
    assert decisions == [("s", 5, 1, REMOTE)]
    assert (node.policy.lessons, node.replies, node.strangers) == (1, 1, 1)


def test_an_answer_after_a_later_sample_has_the_score_of_its_own(setup):
    node, link, _ = setup
    levels = []
    node.ldl.level = lambda q: 16 * q
    node.actuate = lambda tag, *_: levels.append((tag, node.level))
    step(node, 3, "first")
    link.answer_to(label=1)
    step(node, 9, "second")
    node.poll()
    node.give_up_all()
    assert levels == [("first", 48), ("second", 144)]


def test_without_a_score_the_level_is_minus_one(setup):
    """Before the first sample, and while act() is called for one on which the local model failed."""
    node, _, _ = setup
    levels = [node.level]
    node.ldl.level = lambda q: 16 * q
    node.actuate = lambda *_: levels.append(node.level)
    for x in (None, 5, None):
        step(node, x)
        node.give_up_all()
    assert levels == [-1, -1, 80, -1]


def test_a_local_decision_sends_nothing():
    decisions = []
    node = Node(paper(epsilon=1), Ldl(), Link(), lambda *args: decisions.append(args), model_id=1, boot=BOOT)
    step(node, 15)
    assert decisions == [("s", 15, 1, LOCAL)]  # every expert says 1 in the top bin
    assert node.link.sent == []


def test_strangers_replies_teach_nothing(setup):
    node, link, decisions = setup
    step(node)
    link.answer_to(label=1, boot=BOOT + 1)
    link.answer_to(label=7)
    link.waiting += [b"", b"nonsense", b"\0" * 14, b"\xff" * 14]
    node.poll()
    assert decisions == [] and node.policy.lessons == 0 and node.strangers == 6
    link.answer_to(label=0)
    node.poll()
    assert decisions == [("s", 5, 0, REMOTE)]


def test_past_the_deadline_it_falls_back_and_the_late_label_still_teaches_once(setup, monkeypatch):
    node, link, decisions = setup
    step(node)
    now = ticks_ms()
    set_clock(monkeypatch, lambda: ticks_add(now, 1001))
    node.poll()
    assert decisions == [("s", 5, node.policy.local, FALLBACK)]
    link.answer_to(label=1)
    link.answer_to(label=1)
    node.poll()
    assert len(decisions) == 1 and node.policy.lessons == node.late == 1 and node.strangers == 1


def test_a_label_teaches_as_long_as_its_ticket_is_held():
    """500 replies, each 40 rounds late: all are lessons where 64 tickets are held, none where 8 are."""
    for hold, lessons in ((64, 460), (8, 0)):
        link = Link()
        link.answers = False
        node = Node(
            paper(epsilon=32768, feedback="all", window=hold),
            Ldl(),
            link,
            lambda *_: None,
            model_id=1,
            boot=BOOT,
            deadline_ms=0,
        )
        for n in range(500):
            node._no_answer = lambda now, ticket: None  # workers that are merely late
            link.sent.clear() if n == 0 else None
            node.policy.decide(5)
            ticket = node.policy.ticket
            link.sent.append(wire.encode_request(1, BOOT, ticket, (1,), b"x"))
            if n >= 40:
                link.answer_to(link.sent[n - 40], 1)
                node.poll()
        assert node.policy.lessons == node.late == lessons


def test_a_fallback_is_the_class_of_the_round_it_was_asked_in(setup, monkeypatch):
    """Window 4, replies lost, tickets expired by those after them: the policy's class decides, not what is left of a ticket."""
    node, link, decisions = setup
    node.policy.tickets.window = 1  # each new ticket expires the one before
    classes = []
    now = ticks_ms()
    for k in (15, 0, 15):
        step(node, k)
        classes.append(node.policy.local)
    set_clock(monkeypatch, lambda: ticks_add(now, 2000))
    node.poll()
    assert classes == [1, 0, 1] and [decision for _, _, decision, _ in decisions] == classes
    assert {source for *_, source in decisions} == {FALLBACK}


def test_the_deadline_counts_from_when_the_sample_was_due(setup, monkeypatch):
    node, link, decisions = setup
    now = ticks_ms()
    set_clock(monkeypatch, lambda: now)
    node.step(5, (1,), b"x", "late", ticks_add(now, -600))
    assert worker_wire.decode_request(link.sent[-1]).remaining_ms == 275 and node.slack_ms() == 275
    node.step(5, (1,), b"x", "too late", ticks_add(now, -900))
    assert [tag for tag, *_ in decisions] == ["too late"] and node.crowded == 1
    set_clock(monkeypatch, lambda: ticks_add(now, 275))
    node.poll()
    assert [tag for tag, *_ in decisions] == ["too late", "late"]


def test_what_cannot_be_sent_or_understood_is_decided():
    """A remote tensor of the wrong size, a local model that raises, an actuator that raises: nothing goes undecided."""
    decisions, said = [], []

    class Broken(Ldl):
        def run(self, x):
            if x == 99:
                raise IndexError("no such number")
            return x

    def act(*decision):
        decisions.append(decision)
        if decision[0] == "jammed":
            raise OSError("jammed")

    node = Node(paper(epsilon=32768), Broken(), Link(), act, model_id=1, boot=BOOT, log=said.append)
    for _ in range(100):
        node.step(5, (7,), b"x", "size")
    node.step(99, (1,), b"x", "model")
    node.step(5, (1,), b"x", "jammed")
    node.poll()
    assert [tag for tag, *_ in decisions] == ["size"] * 100 + ["model", "jammed"]
    assert decisions[100] == ("model", -1, 1, FALLBACK)  # a missed event costs more
    assert node.complain.total == 102 and len(said) == 9 and "1 bytes do not fit" in said[0] and not node.in_flight


def test_deadlines_hold_across_the_wrap_of_the_clock(setup, monkeypatch):
    node, _, decisions = setup
    end = 2**30 - 5
    set_clock(monkeypatch, lambda: end)
    step(node)
    set_clock(monkeypatch, lambda: ticks_add(end, 874))
    node.poll()
    assert decisions == []
    set_clock(monkeypatch, lambda: ticks_add(end, 875))  # an eighth before the deadline
    node.poll()
    assert len(decisions) == 1
    assert ticks_diff(ticks_add(end, 10), end) == 10


@pytest.mark.parametrize("status", [wire.MALFORMED, wire.WRONG_MODEL, wire.FAILED])
def test_an_error_status_falls_back_at_once(setup, status):
    node, link, decisions = setup
    step(node)
    link.answer_to(status=status)
    node.poll()
    assert decisions == [("s", 5, node.policy.local, FALLBACK)] and node.fallbacks == 1


def test_a_link_that_is_down_falls_back_at_once(setup):
    node, link, decisions = setup
    link.up = False
    step(node)
    assert decisions == [("s", 5, node.policy.local, FALLBACK)] and not node.in_flight


def test_the_window_bounds_what_is_in_flight_and_the_rest_is_decided(setup):
    node, link, decisions = setup
    for n in range(6):
        step(node, 5, n)
    assert len(node.in_flight) == node.window and len(link.sent) == 4
    assert [tag for tag, *_ in decisions] == [4, 5] and node.crowded == 2
    for payload in reversed(link.sent):
        link.answer_to(payload, 0)
    node.poll()
    assert len(decisions) == 6 and node.policy.lessons == 4 and len(node.in_flight) < node.window


def test_busy_workers_are_asked_for_less_and_asked_again():
    """ "Busy" is news about what an offload costs: the charge rises with each, falls with every answer."""
    node = Node(paper(epsilon=1, beta=3000), Ldl(), Link(), lambda *_: None, model_id=1, boot=BOOT)
    charged = []
    for status in [wire.BUSY] * 8 + [wire.OK] * 90:
        node.link.status = status
        node.link.answer_to(wire.encode_request(1, BOOT, 9, (1,), b"x"))
        node.poll()
        step(node, 8)
        charged.append(node.policy.charge)
    assert charged[0] > 3000 and charged[7] > 25000 and charged[-1] == 3000 == node.policy.beta
    assert sorted(charged[:8]) == charged[:8] and sorted(charged[8:], reverse=True) == charged[8:]


def test_a_flood_of_replies_does_not_keep_a_poll():
    """However many come, a poll ends, and what is past its deadline is decided."""
    decisions = []
    link = Link()
    link.receive = lambda wait_ms: b"nonsense"
    node = Node(paper(epsilon=32768), Ldl(), link, lambda *args: decisions.append(args), model_id=1, boot=BOOT, deadline_ms=0)
    step(node)
    node.poll()
    assert node.strangers == h2t2.node.node.REPLIES_PER_POLL and len(decisions) == 1
