"""What a node's account says of the costs, against the truth that only a test knows."""

import random

import pytest
from scripted import BOOT, Link
from support import Ldl, paper

from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.node.asking import PLACES, WAITS, Asking
from h2t2.node.node import LOCAL, Node
from h2t2_tools.fleet.monitoring.costs import of_counters

ONE = 32768


def costs_of(node):
    kept = node
    return of_counters(kept.scores, kept.answered, kept.local_cost, kept.paid, node.policy.beta)


def lived(samples, seed, answers=1.0):
    """A node of the adaptive policy after so many samples, of which the remote model answers a share: the node, the true
    cost a sample of what it did, and of its local decisions alone."""
    rng = random.Random(seed)
    said = []
    link = Link()
    node = Node(Adaptive(bits=4), Ldl(), link, lambda *args: said.append(args[1:]), model_id=1, boot=BOOT)
    delta = {(0, 1): node.policy.delta_fn, (1, 0): node.policy.delta_fp}
    paid = local = 0
    for _ in range(samples):
        k = rng.randrange(16)
        true = int(rng.random() < (k + 0.5) / 16)
        link.label, link.answers = true, rng.random() < answers
        node.step(k, (1,), b"x", None)
        alone = node.policy.local
        asked = bool(node.in_flight)
        node.poll()
        node.give_up_all()
        _, decision, source = said[-1]
        paid += node.policy.beta * asked + (0 if decision == true else delta[decision, true])
        local += 0 if (alone if source != LOCAL else decision) == true else delta[alone if source != LOCAL else decision, true]
    return node, paid / samples / ONE, local / samples / ONE


@pytest.mark.slow
def test_the_estimates_are_the_true_costs():
    node, paid, local = lived(20000, 1)
    costs = costs_of(node)
    assert 0.005 < costs.error < 0.03
    assert abs(costs.own - paid) < 3 * costs.error, (costs, paid)
    assert abs(costs.never - local) < 3 * costs.error, (costs, local)
    assert costs.always == node.policy.beta / ONE
    assert sum(node.scores) == 20000


@pytest.mark.slow
def test_the_estimates_allow_for_answers_that_do_not_come():
    node, paid, local = lived(20000, 2, answers=0.7)
    assert node.fallbacks > 1000
    costs = costs_of(node)
    assert abs(costs.own - paid) < 3 * costs.error, (costs, paid)
    assert abs(costs.never - local) < 3 * costs.error, (costs, local)


def test_nothing_is_known_before_the_first_answer():
    node = Node(Adaptive(bits=4), Ldl(), Link(), lambda *_: None, model_id=1, boot=BOOT)
    assert costs_of(node) is None


def test_an_offload_that_did_not_go_out_is_not_paid():
    link = Link()
    node = Node(paper(epsilon=32768), Ldl(), link, lambda *_: None, model_id=1, boot=BOOT)
    link.up = False
    node.step(5, (1,), b"x", None)
    assert node.paid == 0
    link.up = True
    node.step(5, (1,), b"x", None)
    assert node.paid == node.policy.beta


def test_finer_bins_share_a_place():
    for bits, size in ((1, 2), (4, 16), (8, PLACES), (12, PLACES)):
        asking = Asking(bits)
        for k in range(1 << bits):
            asking.count_score(k)
        assert asking.scores == [(1 << bits) // size] * size


def test_waits_are_counted_by_powers_of_two():
    asking = Asking(4)
    for ms in (-5, 0, 1, 2, 3, 4, 1023, 1024, 2047, 2048, 10**6):
        asking.count_answer(paper(), 3, 0, 0, ms)
    assert asking.waits == [2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2, 2] and len(asking.waits) == WAITS


def test_losses_of_many_classes_are_the_matrix():
    policy = AdaptiveClasses([[0, 100, 200], [300, 0, 400], [500, 600, 0]], 4)
    assert [[policy.mistake_cost(said, true) for said in range(3)] for true in range(3)] == [
        [0, 100, 200],
        [300, 0, 400],
        [500, 600, 0],
    ]
