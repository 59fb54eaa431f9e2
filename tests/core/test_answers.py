"""Answers that do not come: what a question costs then, and how soon that is forgotten."""

import random

import pytest
from snapshots import restored, saved

from h2t2.core.adaptive import FEE, Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.forecaster import fade
from h2t2.core.numbers import ONE
from h2t2.core.policy import EVERY, MOST, OFFLOAD, SIZE, SMALLEST, add_question, answer_rate

BETA = 6554
COSTS = [[0, ONE, ONE], [ONE, 0, ONE], [ONE, ONE, 0]]


def test_questions_that_are_all_answered_change_nothing():
    answers = [0] * SIZE
    for n in range(5000):
        add_question(answers, n % 3, 4, 1)
        if not n % EVERY:
            fade(answers, 0, SIZE, 1)
        assert answer_rate(answers, n % 16, 4) == ONE


def test_half_of_the_answers_double_the_fee_of_their_bin():
    """A question about another bin counts with the mean of all bins, as far as nothing is known of its own."""
    policy = Adaptive(beta=BETA)
    for _ in range(60):
        for came in (0, 1):
            policy.count_question(8, came)
    policy.decide(8)
    assert policy.effective[FEE] == pytest.approx(2 * BETA, rel=0.1)
    for _ in range(60):
        policy.count_question(2, 1)
    policy.decide(2)
    assert BETA < policy.effective[FEE] < 1.2 * BETA and policy.charge == BETA


def test_more_bits_than_four_share_counts():
    answers = [0] * SIZE
    add_question(answers, 255, 8, 0)
    assert answer_rate(answers, 240, 8) < answer_rate(answers, 239, 8) < ONE


def test_counts_fade_by_rounds_and_stay_in_their_range():
    answers = [0] * SIZE
    for n in range(40000):
        add_question(answers, 0, 1, n % 5 == 0)
        if not n % EVERY:
            fade(answers, 0, SIZE, 1)
        assert max(answers) < MOST and answer_rate(answers, 0, 1) >= SMALLEST
    assert answer_rate(answers, 0, 1) == pytest.approx(ONE // 5, rel=0.15)
    for _ in range(3600 // EVERY):
        fade(answers, 0, SIZE, 1)
    assert answers == [0] * SIZE and answer_rate(answers, 0, 1) == ONE
    for _ in range(MOST):
        add_question(answers, 0, 1, 0)
    assert max(answers) == MOST and answer_rate(answers, 0, 1) == SMALLEST


def test_a_policy_halves_its_counts_and_forgets_the_last_lost_answer():
    policy = Adaptive(beta=BETA)
    policy.count_question(8, 0)
    fees = []
    for _ in range(6 * EVERY):
        policy.decide(8)
        fees.append(policy.effective[FEE])
    changes = [n + 1 for n in range(1, len(fees)) if fees[n] != fees[n - 1]]
    assert fees[0] > BETA and changes == [EVERY * n for n in range(1, 6)] and fees[-1] == BETA


def asked_of_classes(came):
    """The share of samples that a policy of three classes asks about after 100 questions."""
    rng, policy = random.Random(3), AdaptiveClasses(COSTS, beta=BETA)
    asked = 0
    for n in range(600):
        if policy.decide([8192, 4096, 4096]) == OFFLOAD:
            policy.count_question(policy.bin([8192, 4096, 4096]), came)
            policy.learn(policy.ticket, rng.choice((0, 0, 1, 2)))
            asked += n >= 300
    return asked / 300


def test_a_policy_of_many_classes_asks_less_where_no_answer_comes():
    assert asked_of_classes(1) > 0.8 > 0.4 > asked_of_classes(0)


@pytest.mark.parametrize("policy_of", [lambda: Adaptive(beta=BETA), lambda: AdaptiveClasses(COSTS, beta=BETA)])
def test_the_counts_are_part_of_the_snapshot_and_a_reset_forgets_them(policy_of):
    policy, again = policy_of(), policy_of()
    for n in range(9):
        policy.count_question(5, n % 2)
    restored(again, saved(policy, policy.cost_list()), policy.cost_list())
    assert again.answers == policy.answers and answer_rate(again.answers, 5, again.bits) < ONE
    assert 4 * len(policy.answers) <= 200
    again.reset()
    assert not any(again.answers)
