"""A limit for missed events: it is kept, its estimate is right as often as it says, and what things cost stays what it is."""

import random

import pytest
from limits import limited

from h2t2.core import policies
from h2t2.core.adaptive import FEE, FN, FP, Adaptive
from h2t2.core.miss_rate import raise_costs, share, smallest_chance
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD

EVENTS = [0.002, 0.01, 0.02, 0.04, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]  # of every bin


def live(policy, rounds, seed=1):
    """(events, misses, offloads) of every half of the rounds."""
    rng = random.Random(seed)
    halves = [[0, 0, 0], [0, 0, 0]]
    for n in range(rounds):
        k = rng.randrange(16)
        label = int(rng.random() < EVENTS[k])
        half = halves[2 * n // rounds]
        action = policy.decide(k)
        half[0] += label
        if action == OFFLOAD:
            half[2] += 1
            policy.learn(policy.ticket, label)
        elif label and action == 0:
            half[1] += 1
    return halves


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.01, 0.03])
def test_the_limit_is_kept_where_the_cheapest_would_miss_more(limit):
    (_, _, _), (events, misses, few) = live(Adaptive(beta=13107), 12000)
    assert misses > 1.5 * limit * events
    (_, _, _), (events, misses, more) = live(limited(beta=13107, miss_rate=round(limit * ONE)), 12000)
    assert misses <= 1.2 * limit * events and more > few


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_limit_that_does_not_bind_changes_next_to_nothing(seed):
    policy = limited(beta=13107, miss_rate=ONE // 2, seed=seed)
    live(policy, 6000, seed)
    assert policy.floor == Adaptive().floor and policy.effective[FN] == ONE
    assert 0.93 * 22938 < policy.effective[FP] <= 22938 and 0.93 * 13107 < policy.effective[FEE] <= 13107


@pytest.mark.whole
def test_the_interval_holds_the_share_that_was_missed():
    """Two standard errors: of 12 runs at least 10 hold it, and it narrows as labels come."""
    held = 0
    for seed in range(12):
        policy = limited(beta=13107, miss_rate=983, seed=seed + 1)
        halves = live(policy, 4000, seed)
        wide = policy.limit.estimated[1]
        events, misses = (sum(part) for part in list(zip(*halves))[:2])
        said = policy.report()
        held += said["miss_rate_low"] <= misses * ONE / events <= said["miss_rate_high"]
        if seed < 2:
            live(policy, 12000, seed + 99)
            assert policy.limit.estimated[1] < wide
    assert held >= 10


def test_costs_stay_what_they_are_and_are_followed():
    policy = limited(beta=13107, miss_rate=164)
    live(policy, 3000)
    assert policy.limit.stake > 0 and (policy.beta, policy.delta_fp, policy.delta_fn) == (13107, 22938, ONE)
    assert policy.effective[FN] == ONE and policy.effective[FP] < 22938 and policy.effective[FEE] < 13107
    before = policy.effective[FEE], policy.effective[FP]
    policy.set_charge(6554)
    assert policy.effective[FEE] == pytest.approx(before[0] / 2, abs=2) and policy.effective[FP] == before[1]
    policy.set_deltas(11469, ONE)
    assert policy.effective[FP] == pytest.approx(before[1] / 2, abs=2)


@pytest.mark.parametrize("octaves", [0, 0.5, 1, 2.5, 4])
@pytest.mark.parametrize("fp, fn", [(22938, ONE), (ONE, 3000), (3000, 3000), (0, ONE)])
def test_a_miss_counts_so_many_times_more_beside_the_others(octaves, fp, fn):
    made = [0, 0, 0, 0]
    raise_costs(round(octaves * 2**20), fp, fn, made)
    assert max(made[1:]) <= ONE
    assert made[2] / made[3] == pytest.approx(fn / ONE * 2**octaves, rel=2e-3)
    assert made[1] / made[3] == pytest.approx(fp / ONE, abs=2e-3)


def test_a_reset_begins_anew():
    policy = limited(beta=13107, miss_rate=655)
    live(policy, 2000)
    policy.reset()
    fresh = limited(beta=13107, miss_rate=655)
    assert policy.limit.sums == fresh.limit.sums and policy.limit.stake == 0
    assert policy.limit.estimated.tolist() == [0, ONE] and policy.effective[FEE] == 13107


def test_a_low_limit_makes_it_look_more_often():
    assert [smallest_chance(limit) for limit in (1, 66, 655, 3277, ONE)] == [8192, 7943, 800, 164, 164]
    assert share(1, 3) == ONE // 3 and share(2**21 - 2, 2**21 - 1) == ONE - 1 and share(5, 5) == ONE


def test_only_the_adaptive_policy_keeps_one():
    assert policies.kind("adaptive", ["miss_rate"]) is Adaptive
    with pytest.raises(ValueError, match="policy h2t2 keeps no such limit"):
        policies.kind("h2t2", ["miss_rate"])
    for value in (0, ONE + 1, 0.02):
        with pytest.raises(ValueError, match="miss_rate"):
            limited(miss_rate=value)
