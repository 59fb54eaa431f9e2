"""A limit for missed events that holds with a confidence: the bet's arithmetic, the statement, and what may void it."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.core import policies
from h2t2.core.logarithm import log2
from h2t2.core.miss_guarantee import RATE, SURE, MissGuaranteed, log_ratio
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.core.restoring import restore

CONFIDENCE = 31130  # .95
EVENTS = [0.002, 0.01, 0.02, 0.04, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]  # of every bin


@given(st.integers(1, 32767))
def test_the_logarithm_is_rounded_down(x):
    assert -0.0015 < log2(x) / 4096 - math.log2(x) <= 0


@given(st.integers(1, ONE), st.integers(SURE, ONE), st.floats(0, 1))
def test_an_event_multiplies_the_wealth_by_no_more_than_is_fair(limit, chance, share):
    """Whatever the policy did: the mean of (1 + b)^(missed - limit) r over its three outcomes is at most 1."""
    zero = int((ONE - chance) * share)
    r = 2 ** (log_ratio(limit * RATE >> 12, chance, zero) / 4096)
    m, q, z = limit / ONE, chance / ONE, zero / ONE
    assert 1.25**-m * (z * 1.25 + q * r + (1 - z - q)) <= 1 + 1e-9 and r > 0.2


def live(policy, rounds, seed, chances=EVENTS, arrive=1.0):
    """(the round of the first statement or None, whether more than the limit was missed at any time after it, offloads)."""
    rng = random.Random(seed)
    events = misses = offloads = 0
    stated, exceeded = None, False
    for n in range(rounds):
        k = rng.randrange(16)
        label = int(rng.random() < chances[k])
        action = policy.decide(k)
        if action == OFFLOAD:
            offloads += 1
            if rng.random() < arrive:
                policy.learn(policy.ticket, label)
        events += label
        misses += label and action == 0
        if stated is None and policy.report()["miss_guaranteed"]:
            stated = n
        exceeded = exceeded or (stated is not None and misses * ONE > policy.miss_limit * events)
    return stated, exceeded, offloads


@pytest.mark.slow
def test_it_asks_until_it_can_state_the_limit_and_keeps_it():
    policy = MissGuaranteed(beta=13107, miss_rate=3277, confidence=CONFIDENCE)
    stated, exceeded, offloads = live(policy, 3000, 1)
    assert 100 < stated < 1500 and not exceeded
    assert stated < offloads < 2700  # all of them at first, fewer then
    assert policy.report()["miss_evidence"] == ONE


@pytest.mark.whole
def test_few_runs_exceed_the_limit_even_where_answers_are_lost():
    """Answers get lost. The confidence is .8, so 20 % of the runs may exceed the limit."""
    exceeded = 0
    for seed in range(40):
        policy = MissGuaranteed(beta=13107, miss_rate=6554, confidence=26214, seed=seed + 1)
        chances = [seed % 4 * 0.1 + p * 0.6 for p in EVENTS]
        exceeded += live(policy, 1500, seed, chances, 0.8)[1]
    assert exceeded <= 12


def test_an_answer_that_never_comes_improves_nothing():
    policy = MissGuaranteed(beta=13107, miss_rate=3277, confidence=CONFIDENCE)
    for n in range(400):
        if policy.decide(n % 16) == OFFLOAD:
            policy.lose(policy.ticket)
    assert policy.evidence <= 0 and not policy.report()["miss_guaranteed"]


def test_it_belongs_to_a_limit():
    assert policies.kind("adaptive", ["miss_rate", "confidence"]) is MissGuaranteed
    with pytest.raises(ValueError, match="confidence: of a miss_rate"):
        policies.kind("adaptive", ["confidence"])
    with pytest.raises(ValueError, match="confidence"):
        MissGuaranteed(miss_rate=655, confidence=ONE)


def test_a_sample_answered_0_without_the_policy_ends_the_guarantee_and_no_restart_brings_it_back():
    policy = MissGuaranteed(beta=13107, miss_rate=6554, confidence=CONFIDENCE)
    live(policy, 1500, 1)
    assert policy.report()["miss_guaranteed"]
    policy.bypass(1)
    assert policy.report()["miss_guaranteed"]
    policy.bypass(0)
    again = MissGuaranteed(beta=13107, miss_rate=6554, confidence=CONFIDENCE)
    restore(again, list(policy.state()))
    live(again, 500, 2)
    assert not again.report()["miss_guaranteed"] and again.evidence >= again.threshold
    again.reset()
    live(again, 1500, 1)
    assert again.report()["miss_guaranteed"]


@pytest.mark.parametrize("other", ["features", "costs"])
@pytest.mark.parametrize("arguments", [["confidence"], ["miss_rate", "confidence"]])
def test_what_cannot_be_guaranteed_is_refused_by_name(arguments, other):
    with pytest.raises(ValueError, match="confidence|miss_rate"):
        policies.kind("adaptive", [*arguments, other])
