"""A limit for missed events that holds with a confidence: the bet's arithmetic, the statement, and what may void it."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import limited

from h2t2.core import policies
from h2t2.core.adaptive import Adaptive
from h2t2.core.logarithm import log2
from h2t2.core.miss_guarantee import (
    DEBIT,
    RATE,
    RESERVE,
    SURE,
    VOID,
    false_alarm_cost,
    log_ratio,
)
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.core.restoring import restore

CONFIDENCE = 31130  # .95
COSTS = [[0, 22938, 22938], [ONE, 0, 22938], [ONE, 22938, 0]]
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
        exceeded = exceeded or (stated is not None and misses * ONE > policy.limit.miss_rate * events)
    return stated, exceeded, offloads


@pytest.mark.slow
def test_it_asks_until_it_can_state_the_limit_and_keeps_it():
    policy = limited(beta=13107, miss_rate=3277, confidence=CONFIDENCE)
    stated, exceeded, offloads = live(policy, 3000, 1)
    assert 100 < stated < 1500 and not exceeded
    assert stated < offloads < 2700  # all of them at first, fewer then
    assert policy.report()["miss_evidence"] == ONE and policy.report()["miss_guaranteed"] == 1


@pytest.mark.whole
def test_few_runs_exceed_the_limit_even_where_answers_are_lost():
    """Answers get lost. The confidence is .8, so 20 % of the runs may exceed the limit."""
    exceeded = 0
    for seed in range(40):
        policy = limited(beta=13107, miss_rate=6554, confidence=26214, seed=seed + 1)
        chances = [seed % 4 * 0.1 + p * 0.6 for p in EVENTS]
        exceeded += live(policy, 1500, seed, chances, 0.8)[1]
    assert exceeded <= 12


def test_an_answer_that_never_comes_improves_nothing():
    policy = limited(beta=13107, miss_rate=3277, confidence=CONFIDENCE)
    for n in range(400):
        if policy.decide(n % 16) == OFFLOAD:
            policy.lose(policy.ticket)
    assert policy.limit.evidence <= 0 and not policy.report()["miss_guaranteed"]


def test_a_save_leaves_evidence_for_what_a_power_cut_may_hide():
    policy = limited(miss_rate=3277, confidence=CONFIDENCE)
    policy.limit.note_saved()
    assert policy.limit.mark == -RESERVE
    policy.limit.end()
    policy.limit.note_saved()
    assert policy.limit.mark == 0


def test_it_belongs_to_a_limit():
    assert policies.kind("adaptive", ["miss_rate", "confidence"]) is Adaptive
    with pytest.raises(ValueError, match="confidence: of a miss_rate"):
        policies.kind("adaptive", ["confidence"])
    with pytest.raises(ValueError, match="confidence"):
        limited(miss_rate=655, confidence=ONE)


def stated_policy(**options):
    policy = limited(beta=13107, miss_rate=6554, confidence=CONFIDENCE, **options)
    live(policy, 1500, 1)
    assert policy.report()["miss_guaranteed"]
    return policy


def test_a_sample_answered_0_without_the_policy_is_paid_and_no_restart_gives_it_back():
    policy = stated_policy()
    before = policy.limit.evidence
    assert policy.limit.bypass(policy, 1) == 1 and policy.limit.evidence == before
    answers = [policy.limit.bypass(policy, 0) for _ in range(1000)]
    paid = answers.count(0)
    assert answers == [0] * paid + [1] * (1000 - paid) and 1 <= paid < 1000  # then the answer is 1
    assert policy.limit.evidence == before - paid * DEBIT >= policy.limit.threshold and policy.report()["miss_guaranteed"]
    again = limited(beta=13107, miss_rate=6554, confidence=CONFIDENCE)
    restore(again, list(policy.state()))
    again.limit.go_on()
    assert again.limit.evidence == policy.limit.evidence - RESERVE


def test_a_late_label_gives_back_what_was_no_event():
    policy = stated_policy()
    for label in (0, 1):
        while policy.decide(0) != OFFLOAD or policy.limit.bypass(policy, 0, policy.ticket):
            pass
        before = policy.limit.evidence
        waged = log_ratio(policy.limit.gain, (policy.limit.rounds[0] >> 15) + 1, policy.limit.rounds[0] & 32767)
        assert policy.learn(policy.ticket, label)
        assert policy.limit.evidence - before == (DEBIT + max(0, -waged) if label == 0 else max(0, waged))


def test_a_snapshot_of_a_former_release_that_was_void_stays_so():
    policy = stated_policy()
    policy.limit.ending = VOID
    again = limited(beta=13107, miss_rate=6554, confidence=CONFIDENCE)
    restore(again, list(policy.state()))
    again.limit.go_on()
    assert again.limit.evidence >= again.limit.threshold and not again.report()["miss_guaranteed"]
    again.reset()
    live(again, 1500, 1)
    assert again.report()["miss_guaranteed"]


@pytest.mark.parametrize("rdl_fp, rdl_fn", [(0, 0), (0, 1000), (2000, 0), (3000, 2000)])
@pytest.mark.parametrize("chance, zero", [(ONE, 0), (SURE, ONE - SURE), (SURE, 0), (20000, 9000)])
def test_the_bet_is_fair_for_true_events_where_the_remote_model_errs(rdl_fp, rdl_fn, chance, zero):
    """The mean factor of a true event is at most (1 + b)^m, with a miss of the remote model as a miss; of a non-event 1."""
    policy = limited(beta=13107, miss_rate=6554, confidence=CONFIDENCE, rdl_fp=rdl_fp, rdl_fn=rdl_fn)
    x = log_ratio(policy.limit.gain, chance, zero)
    cost = false_alarm_cost(policy.limit.gain, chance, zero, policy.limit.odds) if x >= 0 else 0
    r, none = 2 ** (x / 4096), 2 ** (-cost / 4096)
    m, q, z, fp, fn = 0.2, chance / ONE, zero / ONE, rdl_fp / ONE, rdl_fn / ONE
    event = q * ((1 - fn) * r + fn * 1.25 * none) + 1.25 * z + 1 - q - z
    assert 1.25 ** (m - 2e-4) * 0.99 < event + (0.02 if fn or fp else 0.01) and event <= 1.25**m + 1e-4
    assert fp * r + (1 - fp) * none <= 1 + 1e-6


def test_a_remote_model_that_misses_as_much_itself_is_refused():
    with pytest.raises(ValueError, match="holds, as the remote model misses 100 "):
        limited(miss_rate=3277, confidence=CONFIDENCE, rdl_fn=3277)


@pytest.mark.parametrize("arguments", [["confidence", "costs"], ["miss_rate", "confidence", "costs"], ["normal", "miss_rate"]])
def test_what_cannot_be_guaranteed_is_refused_by_name(arguments):
    with pytest.raises(ValueError, match="confidence|miss_rate|normal"):
        policies.kind("adaptive", arguments)


def reading_of(policy, k, label, rng):
    """What a policy reads of a sample in bin k of the score of an event, with a feature that tells of the label."""
    score = [16384 - 1000 * k - 500, 700 * k + 300, 300 * k + 200] if policy.classes > 2 else [16 * k]
    if "features" in vars(policy):
        return score + [30 * label + rng.randrange(-60, 30)]
    return score if policy.classes > 2 else policy.reading(None, 16 * k)


CLASSES = {"costs": COSTS, "normal": 2}


@pytest.mark.parametrize(
    "learner", [{"features": 1}, {"ordered": True}, CLASSES, {**CLASSES, "normal": 0, "features": 1}], ids=list
)
def test_a_limit_holds_with_features_with_a_past_and_of_many_classes(learner):
    """Both limits: it asks, states and keeps it, and its state goes on bit for bit in another one."""
    normal = learner.get("normal", 0)
    for limit in ({"miss_rate": 3277}, {"miss_rate": 3277, "confidence": CONFIDENCE}):
        rng = random.Random(5)
        policy, again = (limited(beta=13107, **limit, **learner) for _ in range(2))
        assert policy.kind not in (limited(**limit).kind, type(policy).kind)
        missed = events = asked = 0
        for n in range(1500):
            k = rng.randrange(16)
            event = rng.random() < EVENTS[k]
            label = int(event) + (event and "costs" in learner and rng.random() < 0.3)
            label = (normal + label) % 3 if "costs" in learner else label
            reading = reading_of(policy, k, label, rng)
            action = policy.decide(reading)
            if n > 1200:
                assert again.decide(reading) == action
            if action == OFFLOAD:
                asked += 1
                assert policy.learn(policy.ticket, label) and (n <= 1200 or again.learn(again.ticket, label))
            events += event
            missed += event and action == normal
            if n == 1200:
                restore(again, list(policy.state()))
        assert 50 < asked < 1500 and missed * ONE <= 3277 * events
        assert policy.report()["miss_guaranteed"] if "confidence" in limit else policy.report()["miss_counts"] >= 1024
        assert list(again.state()) == list(policy.state())
