"""A node whose link is down, silent or slow, and a clock that jumps."""

import pytest
from scripted import Link, running, set_clock
from support import paper

from h2t2.core.adaptive import Adaptive
from h2t2.link import wire
from h2t2.link.cost import LinkCost
from h2t2.node.memory_slots import BufferSlot
from h2t2.node.node import FALLBACK, LOCAL, NOBODY, REMOTE, SILENT, SILENT_AFTER, UP
from h2t2.node.store import Store


@pytest.fixture
def now(monkeypatch):
    """The milliseconds of the clock, which a test sets."""
    now = [0]
    set_clock(monkeypatch, lambda: now[0] % 2**30)
    return now


def test_while_the_link_is_down_beta_is_raised_and_comes_back():
    service, node, _, _ = running(paper(beta=3000, epsilon=1, feedback="all"), when_down="raise")
    node.step(5, (1,), b"x", 0)
    assert node.policy.beta == 3000
    node.link.up = False
    node.step(5, (1,), b"x", 1)
    assert node.policy.charge == 32768 and node.policy.beta == 3000
    node.link.up = True
    node.step(5, (1,), b"x", 2)
    assert node.policy.beta == 3000


def test_a_raised_beta_is_not_what_is_saved():
    memory = bytearray(4096)
    store = Store([BufferSlot(memory, 0, 2048), BufferSlot(memory, 2048, 2048)])
    service, node, _, _ = running(paper(beta=3000), store=store, when_down="raise")
    node.link.up = False
    service.run()
    assert node.policy.charge == 32768 and node.policy.beta == 3000
    again, node, _, _ = running(paper(beta=3000), store=store)
    assert again.keeper.restored and node.policy.beta == 3000


def test_while_the_link_is_down_the_policy_may_rest():
    service, node, decisions, _ = running(when_down="pause")
    node.link.up = False
    before = list(node.policy.state())
    service.run(20)
    assert list(node.policy.state()) == before and node.unasked == 20 and {source for *_, source in decisions} == {FALLBACK}
    node.link.up = True
    service.run()
    assert {source for *_, source in decisions[20:]} == {REMOTE} and len(decisions) == 30
    for wrong in ({"when_down": "sleep"}, {"window": 0}, {"window": 9}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            running(**wrong)


def test_workers_that_are_silent_are_noticed_and_asked_ever_more_rarely(now):
    """Three deadlines without an answer; then probes with twice the wait between, to a minute; the first answer ends it."""
    _, node, decisions, _ = running()
    node.link.answers = False
    asked = []
    for n in range(6000):
        sent = len(node.link.sent)
        node.step(5, (1,), b"x", n, now[0] % 2**30)
        if len(node.link.sent) > sent:
            asked.append(now[0])
        now[0] += 100
        node.poll()
        if n == 40:
            assert node.standing() == SILENT
    assert len(decisions) == 6000 and node.link.renewed == 1
    waits = [b - a for a, b in zip(asked, asked[1:])]
    assert asked[SILENT_AFTER - 1] <= 2 * 1000 and waits[-3:] == [60000 + 900] * 3 or waits[-1] >= 60000
    assert len(asked) < 20 and waits == sorted(waits)
    node.link.answers = True
    for n in range(700):
        node.step(5, (1,), b"x", n, now[0] % 2**30)
        now[0] += 100
        node.poll()
    assert node.standing() == UP and node.replies > 50


def test_a_window_that_is_lost_at_once_counts_as_one_silence(now):
    """Eight in flight, none answered: the workers are asked again after one deadline, not after a minute."""
    _, node, _, _ = running(window=8)
    node.link.answers = False
    for n in range(8):
        node.step(5, (1,), b"x", n, now[0])
    now[0] += 1000
    node.poll()
    assert node.standing() == SILENT and node.fallbacks == 8 and node.retry_ms == 1000 and not node.link.renewed
    node.link.answers = True
    for n in range(20):
        now[0] += 100
        node.step(5, (1,), b"x", n, now[0])
        node.poll()
    assert node.standing() == UP and node.replies >= 8


def test_a_worker_that_comes_is_asked_at_once(now):
    _, node, decisions, _ = running()
    node.link.answers = False
    for n in range(100):
        node.step(5, (1,), b"x", n, now[0])
        now[0] += 100
        node.poll()
    assert node.standing() == SILENT
    node.give_up_all()
    node.link.answers = True
    node.link.announcements += 1
    node.step(5, (1,), b"x", "first", now[0])
    node.poll()
    assert node.standing() == UP and decisions[-1] == ("first", 5, 1, REMOTE)


@pytest.mark.parametrize("when_down, charged, rounds", [("ask", 9830, 30), ("raise", 32768, 30), ("pause", 9830, 0)])
def test_without_a_worker_it_behaves_as_when_the_broker_is_away(when_down, charged, rounds):
    service, node, decisions, said = running(when_down=when_down)
    node.link.worker_count = 0
    before = node.policy.rng.x
    service.run()
    assert node.standing() == NOBODY and not node.link.sent and len(decisions) == 30
    assert {source for *_, source in decisions} <= {FALLBACK, LOCAL} and node.policy.charge == charged
    assert (node.policy.rng.x != before) == bool(rounds)
    assert said == ["from now on: no worker serves the model"]


def test_the_clock_may_jump_either_way(now):
    for jump in (600000, -600000):
        _, node, decisions, _ = running()
        node.link.answers = False
        node.step(5, (1,), b"x", 0)
        now[0] += jump
        node.poll()
        assert len(decisions) == 1 and not node.in_flight  # never later than its deadline


class Slow(Link):
    """Replies after 500 ms of the test's clock."""

    def __init__(self, now):
        super().__init__()
        self.now = now

    def receive(self, wait_ms):
        if self.waiting:
            self.now[0] += 500
        return super().receive(wait_ms)


def test_what_an_offload_cost_is_charged_and_expected(now):
    """beta = 1/4 a second + 1/8 a KiB: half a second and 21 bytes; the correction is learn()'s."""
    cost = LinkCost(0, 8192, 4096, 16384)
    _, node, _, _ = running(cost=cost)
    node.link = Slow(now)
    charged = []
    learn = node.policy.learn
    node.policy.learn = lambda ticket, label, beta: (
        charged.append((node.policy.tickets.slots[ticket % 8 * 5 + 2], beta)) or learn(ticket, label, beta)
    )
    for n in range(60):
        node.step(5, (1,), b"x", n)
        node.poll()
    size = len(wire.encode_request(1, 9, 1, (1,), b"x"))
    paid = 8192 * 500 // 1000 + (4096 * (size >> 5) >> 5)
    assert charged[0] == (16384, paid) and charged[-1][1] == paid
    assert abs(charged[-1][0] - paid) <= 8 and abs(node.policy.beta - paid) <= 8


def test_lost_offloads_raise_what_is_expected(now):
    _, node, decisions, _ = running(cost=LinkCost(0, 32768, 0, 0))
    node.link.answers = False
    for n in range(20):
        node.step(5, (1,), b"x", n)
        now[0] += 1000
        node.poll()
    assert node.policy.beta > 15000 and {source for *_, source in decisions} <= {FALLBACK, LOCAL}


def test_a_lost_answer_makes_questions_dearer_but_a_known_outage_does_not(now):
    _, node, _, _ = running(Adaptive(beta=0))  # which always asks
    outcomes = []
    node.policy.count_question = lambda k, came: outcomes.append(came)

    def lost():
        return outcomes.count(0)

    def ask(rounds):
        """Steps of a second, longer than the deadline."""
        for n in range(rounds):
            node.step(5, (1,), b"x", n)
            node.poll()
            now[0] += 1000
            node.poll()

    ask(9)
    assert outcomes == [1] * 9
    assert sum(node.in_time) == 9 and node.in_time[0] == node.in_time[2] == 0
    node.link.answers = False
    ask(60)
    assert node.standing() == SILENT
    assert lost() == SILENT_AFTER  # the probes that follow are no lost questions
    node.link.answers = True
    ask(90)
    assert node.standing() == UP and lost() == SILENT_AFTER
    node.step(5, (1,), b"x", 0)
    node.link.up = False
    ask(20)
    assert lost() == SILENT_AFTER


def test_what_is_in_flight_when_the_connection_ends_is_decided_before_another_is_made(monkeypatch):
    """Making one may block for seconds (TLS, a name), and no answer comes meanwhile. A label that comes later still teaches."""
    set_clock(monkeypatch, lambda: 1000)
    _, node, decisions, _ = running(window=3)
    node.link.answers = False
    for n in range(3):
        node.step(5, (1,), b"x", n)
    node.poll()
    assert len(node.in_flight) == 3 and decisions == []
    node.link.up = False
    node.poll()
    assert not node.in_flight and [(tag, source) for tag, _, _, source in decisions] == [(n, FALLBACK) for n in range(3)]
    node.link.up = True
    node.link.answer_to(node.link.sent[0])
    node.poll()
    assert node.late == 1 and len(decisions) == 3


def test_samples_that_were_due_while_a_connection_was_made_are_decided_at_once(now):
    """Their time is over, so nobody is asked: they count as crowded, not as offloads."""
    _, node, decisions, _ = running()
    now[0] += 5000  # a handshake
    for n in range(3):
        node.step(5, (1,), b"x", n, 1500 + n)
    assert node.crowded == 3 and node.offloads == 0 and node.link.sent == []
    assert [source for *_, source in decisions] == [FALLBACK] * 3
