"""Answers that do not come: what a question costs then, and how soon that is forgotten."""

import random

import pytest
from snapshots import restored, saved

from h2t2.core.adaptive import FEE, Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.answers import EVERY, MOST, PRIOR, SMALLEST, Answers
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD

BETA = 6554
COSTS = [[0, ONE, ONE], [ONE, 0, ONE], [ONE, ONE, 0]]


def test_questions_that_are_all_answered_change_nothing():
    answers = Answers(4)
    for n in range(5000):
        answers.count(n % 3, 1)
        if not n % EVERY:
            answers.fade_counts()
        assert answers.rate(n % 16) == ONE


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
    answers = Answers(8)
    answers.count(255, 0)
    assert 2 * len(answers.questions) == 34 and answers.rate(240) < answers.rate(239) < ONE


def test_counts_fade_by_rounds_and_stay_in_their_range():
    answers = Answers(1)
    for n in range(40000):
        answers.count(0, n % 5 == 0)
        if not n % EVERY:
            answers.fade_counts()
        assert 0 <= answers.answered[0] <= answers.questions[0] <= MOST and answers.rate(0) >= SMALLEST
    assert answers.rate(0) == pytest.approx(ONE // 5, rel=0.15)
    asked = answers.questions[0]
    for _ in range(352 // EVERY):
        answers.fade_counts()
    assert answers.questions[0] == pytest.approx(asked / 2, rel=0.02)
    for _ in range(3600 // EVERY):
        answers.fade_counts()
    assert list(answers.questions) == [0, 0, 0] and answers.rate(0) == ONE and PRIOR > 0


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
    assert again.answers.questions == policy.answers.questions and again.answers.rate(5) == policy.answers.rate(5) < ONE
    assert 8 * len(policy.answers.questions) <= 200
    again.reset()
    assert again.answers.rate(5) == ONE
