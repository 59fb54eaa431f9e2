"""The adaptive policy: what it promises of every stream, and the parts it is made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.core import forecaster
from h2t2.core.adaptive import LOWER, UPPER, Adaptive, logistic
from h2t2.core.forecaster import Forecaster, P, square_root
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2_tools.checks.validate import compare

BETA = 6554  # .2


def live(policy, rounds, sample, beta=BETA / ONE):
    """The cost of every round; sample(n): (bin, label)."""
    paid = np.zeros(rounds)
    for n in range(rounds):
        k, label = sample(n)
        action = policy.decide(k)
        if action == OFFLOAD:
            paid[n] = beta
            policy.learn(policy.ticket, label)
        elif action != label:
            paid[n] = 1.0 if label else 0.7
    return paid


@given(st.integers(0, 2**30 - 1))
def test_square_root(x):
    assert square_root(x) ** 2 <= x < (square_root(x) + 1) ** 2


@pytest.mark.parametrize("lead", [-(2**29), -100000, -1, 0, 1, 16384, 2**29])
def test_logistic_of_a_logarithm(lead):
    assert logistic(lead, 0) / ONE == pytest.approx(1 / (1 + 2.0 ** min(1000, -lead / 2**14)), abs=2e-4)


@pytest.mark.parametrize("k", [3, 12])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_not_locked_in_by_a_time_without_events(k, seed):
    """400 samples without one event, then events only, all with the same score: found out within 1,000 rounds."""
    policy = Adaptive(beta=BETA, seed=seed)
    paid = live(policy, 2400, lambda n: (k, int(n >= 400)))
    assert paid[1400:].mean() < 0.03 and policy.likely(k) == 1


@pytest.mark.slow
def test_it_asks_at_least_so_often_for_ever():
    """In a bin that has been sure for 20,000 rounds."""
    policy = Adaptive(beta=BETA)
    live(policy, 20000, lambda n: (0, 0))
    before = policy.lessons
    live(policy, 20000, lambda n: (0, 0))
    assert 60 < policy.lessons - before < 150  # .005 of them, five standard deviations either way


def test_it_serves_a_model_that_is_upside_down():
    """Events at low scores: no pair of thresholds can; it comes near the cost of knowing each bin."""
    rng = np.random.default_rng(3)
    bins = rng.integers(0, 16, 8000).tolist()
    labels = (rng.random(8000) < np.where(np.array(bins) < 8, 0.98, 0.02)).astype(int).tolist()
    paid = live(Adaptive(beta=BETA), 8000, lambda n: (bins[n], labels[n]))
    assert paid[4000:].mean() < 0.03


@pytest.mark.slow
def test_a_prior_helps_and_one_upside_down_is_unlearned():
    rng = np.random.default_rng(4)
    truth = np.where(np.arange(16) % 2, 0.95, 0.05)  # nothing that the scores would tell
    bins = rng.integers(0, 16, 6000).tolist()
    labels = (rng.random(6000) < truth[bins]).astype(int).tolist()
    costs = {}
    for name, prior in (("none", None), ("right", truth), ("wrong", 1 - truth)):
        table = None if prior is None else [round(p * ONE) for p in prior]
        costs[name] = live(Adaptive(beta=BETA, prior=table), 6000, lambda n: (bins[n], labels[n]))
    assert costs["right"][:1000].mean() < costs["none"][:1000].mean() < costs["wrong"][:1000].mean()
    assert all(paid[3000:].mean() < 0.06 for paid in costs.values())


def test_scores_that_move_make_it_look_again():
    """No label says so: the histogram of the scores alone is another; a quarter of what was known stays."""
    made = Forecaster(4)
    for n in range(3000):
        made.count_score(n % 4)
    for _ in range(100):
        made.learn(9, 1)
    made.audits = 4
    known = made.labels[16 + 9]
    for n in range(200):
        made.count_score(12 + n % 4)
    assert made.labels[16 + 9] == known // 4 and made.audits == 1


def test_what_is_forgotten_and_what_is_not():
    """Half-lives: never, 4000, 1000 and 250 rounds."""
    made = Forecaster(4)
    for _ in range(256):
        made.learn(5, 1)
    for _ in range(1000):
        made.count_score(5)
    made.estimate(5)
    assert [made.labels[m * 32 + 16 + 5] for m in range(4)] == [1024, 1024, 512, 64]


def test_a_forecast_follows_labels_what_fades_and_a_new_prior():
    forecaster = Forecaster(4)

    def p_event():
        forecaster.estimate(0)
        return forecaster.belief[P]

    fresh = p_event()
    for _ in range(100):
        forecaster.learn(0, 1)
    assert p_event() > 0.9 * ONE
    for memory in range(4):
        forecaster.fade(memory, 16)
    assert p_event() < 0.6 * ONE
    forecaster.clear()
    assert p_event() == fresh
    forecaster.set_prior([30000] * 16)
    assert p_event() > 2 * fresh


def test_a_full_node_is_halved():
    """At 8,000 labels: the share of events stays and no count leaves a small int."""
    made = Forecaster(1)
    for n in range(8000):
        made.learn(0, n % 4 == 0)
    assert made.labels[2] == forecaster.FULL // 2 and made.events[2] == forecaster.FULL // 8


def test_costs_are_in_force_at_once():
    """The forecaster keeps counts: another price, and the next round is decided by it."""
    policy = Adaptive(beta=BETA)
    live(policy, 3000, lambda n: (8, n % 2))
    policy.decide(8)
    assert policy.wish == ONE  # at .2 asking is cheaper than half of .7
    policy.set_beta(16384)
    policy.decide(8)
    assert policy.wish < ONE and policy.guess == 1


def test_other_deltas_leave_the_charge_of_a_link_that_is_down():
    policy = Adaptive(beta=BETA)
    policy.set_charge(ONE)
    policy.set_deltas(ONE, ONE // 2)
    assert (policy.charge, policy.beta) == (ONE, BETA) and policy.effective[LOWER : UPPER + 1].tolist() == [ONE, 0]


@pytest.mark.slow
def test_a_wrong_remote_is_corrected():
    """Labels flip at known rates; the estimate is the truth's."""
    rng = np.random.default_rng(5)
    e0, e1, p = 0.1, 0.2, 0.35
    policy = Adaptive(bits=1, beta=0, rdl_fp=round(e0 * ONE), rdl_fn=round(e1 * ONE))
    for _ in range(20000):
        truth = rng.random() < p
        label = int(truth) if rng.random() > (e1 if truth else e0) else 1 - int(truth)
        if policy.decide(0) == OFFLOAD:
            policy.learn(policy.ticket, label)
    assert policy.estimate(0)[P] / ONE == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("prior, why", [([0] * 15, "15 numbers, want 16"), ([40000] * 16, "40000"), ([0.5] * 16, "float")])
def test_a_table_that_is_none_is_refused(prior, why):
    with pytest.raises(ValueError, match=why):
        Adaptive(prior=prior)


def test_a_table_with_a_bad_number_leaves_the_old_one_whole():
    policy = Adaptive(prior=[100] * 16)
    with pytest.raises(ValueError, match="40000"):
        policy.set_prior([200] * 15 + [40000])
    assert policy.forecaster.prior.tolist() == [100] * 16


def test_a_reset_leaves_nothing_that_labels_taught():
    """Its draws, tickets and costs alone go on."""
    policy, new = Adaptive(beta=BETA), Adaptive(beta=BETA)
    live(policy, 500, lambda n: (n % 16, n % 3 == 0))
    policy.reset()
    states = [[(name, getattr(owner, name)) for owner, name, *_ in each.number_rows()] for each in (policy, new)]
    differing = {name for (name, one), (_, other) in zip(*states) if one != other}
    assert differing == {"x", "y", "z", "last"}
    assert [list(row[0]) for row in policy.array_rows()] == [list(row[0]) for row in new.array_rows()]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["adaptive", "adaptive+dear", "adaptive+noisy-rdl"])
def test_the_integers_are_the_float_reference(mode):
    row = compare(4, 3000, 7, mode)
    assert row["within"] and row["differ"] <= 6
