"""A node with a budget: it offloads what there is, and no more."""

import pytest
from scripted import BOOT, Link, recorded, set_clock
from support import Ldl, paper

from h2t2.core.budget import Budget
from h2t2.node import asking, start
from h2t2.node.node import FALLBACK, REMOTE, Node
from h2t2_tools.common.budget_text import budget_arguments


@pytest.fixture
def clock(monkeypatch):
    now = [5]
    set_clock(monkeypatch, lambda: now[0] % 2**30)
    return now


def node_with(budget, policy=None):
    decisions = []
    policy = policy or paper(epsilon=32768, feedback="all")  # offloads everything
    node = Node(policy, Ldl(), Link(), lambda *args: decisions.append(args), model_id=1, boot=BOOT, window=4, budget=budget)
    return node, decisions


def filled(budget):
    budget.level = budget.capacity
    return budget


def live(node, samples):
    for n in range(samples):
        node.step(5, (1,), b"x", n)
        node.poll()


def test_an_empty_bucket_decides_locally_and_fills_with_time(clock):
    node, decisions = node_with(filled(Budget(3, fixed=1, per_kb=0, amount=10, period=1000)))
    live(node, 8)
    assert [source for *_, source in decisions] == [REMOTE] * 3 + [FALLBACK] * 5
    assert (node.unaffordable, node.offloads) == (5, 3)
    before = list(node.policy.state())
    live(node, 1)
    assert list(node.policy.state()) == before  # not asked, nothing charged
    clock[0] += 200
    live(node, 4)
    assert [source for *_, source in decisions[9:]] == [REMOTE] * 2 + [FALLBACK] * 2


def test_the_price_is_charged(clock):
    node, _ = node_with(filled(Budget(4, fixed=1, per_kb=0)))
    charged = []
    for _ in range(4):
        live(node, 1)
        charged.append(node.policy.charge - node.policy.beta)
    assert charged == [0, 32768 // 16 - 0, 32768 // 4, 32768 * 9 // 16]


def test_what_is_not_sent_costs_nothing(clock):
    node, _ = node_with(filled(Budget(4, fixed=1, per_kb=0)))
    node.link.up = False
    live(node, 5)
    assert node.budget.level == 4 and node.fallbacks == 5


def test_bytes_are_those_of_the_request(clock):
    node, _ = node_with(filled(Budget(100, fixed=0, per_kb=1024)))
    live(node, 9)
    size = node.budget.cost(len(node.link.sent[0]))
    assert node.offloads == 100 // size and node.budget.level == 100 - size * node.offloads


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_no_start_begins_with_a_full_budget_and_a_later_one_knows_what_was_spent(clock, monkeypatch, tmp_path, has_snapshot):
    """Four an hour, and five starts within an hour that want to ask always."""
    monkeypatch.setattr(asking, "unix_now", lambda: 1_800_000_000 + clock[0] // 1000)
    config = {
        "policy": "h2t2", "arguments": {"bits": 4, "exploration": "epsilon", "epsilon": 32768}, "ldl": "", "event": 1,
        "remote_shape": [1], "model_id": 1, "in_flight": 1, "deadline_ms": 1000, "telemetry_s": 0,
        "budget": budget_arguments("4/hour", 100, 1000), **({"snapshot": str(tmp_path / "state")} if has_snapshot else {}),
    }  # fmt: skip

    offloads = []
    for _ in range(5):
        sensor = recorded((5,) * 11)

        def sense(sensor=sensor):
            clock[0] += 60_000
            return sensor()

        service = start.service(config, Link(), lambda *_: None, sensor=sense, opener=lambda *_: Ldl())
        service.run()
        offloads.append(service.node.offloads)
    assert sum(offloads) == (3 if has_snapshot else 0), offloads  # 55 minutes; a token takes fifteen
