"""The head: a local model that learns on the device, and the forecaster that weighs it."""

import math

import numpy as np
import pytest
from float_heads import follow_head
from hypothesis import given
from hypothesis import strategies as st
from snapshots import restored, saved
from taught_heads import BETA, live

from h2t2.core import head, policies
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.head import Heads, log2, logit_table
from h2t2.core.head_saving import LIMIT, PERIOD, ROUNDS, SAVED, bounded, count_saving, period
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD


def stream(rounds, seed=3):
    """(samples, labels): scores that tell nothing, and the second of three features, which tells the label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rounds)
    features = rng.normal(0, 1, (rounds, 3))
    features[:, 1] = 2 * labels - 1 + rng.normal(0, 0.3, rounds)
    samples = np.column_stack([rng.integers(100, 156, rounds), np.clip(features * 32, -127, 127).astype(int)])
    return samples.tolist(), labels.tolist()


@given(st.integers(1, 2**14))
def test_logarithm(x):
    assert math.log2(x) - 0.005 <= log2(x) / 4096 <= math.log2(x) + 1e-9


def test_logits_of_the_scores():
    exact = [math.log((i + 128.5) / (127.5 - i)) for i in range(128)]
    assert np.abs(np.array(logit_table()) / 4096 - exact).max() < 0.004


def test_heads_begin_as_the_local_model():
    heads = Heads(2, 1)
    for score in range(256):
        heads.see([score, 100, -100])
        heads.predict()
        assert heads.g[0] / ONE == pytest.approx((score + 0.5) / 256, abs=2e-3) and len(set(heads.g[: len(head.RATES)])) == 1


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=40), st.integers(0, 255))
def test_a_ticket_keeps_its_sample(features, score):
    heads = Heads(len(features), 2)
    heads.see([score, *features])
    x = heads.x.tolist()
    heads.keep(1)
    heads.see([7] + [1] * len(features))
    heads.keep(0)
    assert not heads.recall(0)  # it is the current one
    assert heads.recall(1)
    assert heads.x.tolist() == x and x[len(features) + 3] == score


def test_a_root_grows_with_the_sum_of_squares():
    """It is the square root of 1 + the sum within 12 %, and at first at most three times as large."""
    rng = np.random.default_rng(5)
    heads = Heads(1, 1)
    total = 1.0
    for n in range(300):
        label = int(rng.integers(0, 2))
        heads.see([128, int(rng.integers(-127, 128))])
        heads.predict()
        total += ((heads.g[0] / ONE - label) * heads.x[0] / 32) ** 2
        head.descend(heads.weights, heads.roots, heads.x, heads.g, label, heads.features + 2)
        exact = math.sqrt(total)
        assert 0.999 * exact <= heads.roots[0] / 2**18 <= (1.12 if n > 100 else 3) * exact


def test_it_learns_what_the_score_does_not_tell():
    samples, labels = stream(3000)
    paid = live(AdaptiveHead(3, beta=BETA), samples, labels)
    without = live(Adaptive(beta=BETA), [sample[0] >> 4 for sample in samples], labels)
    assert paid[500:].mean() < 0.03 and without[500:].mean() > 0.15


@pytest.mark.whole
def test_features_without_information_cost_little():
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 2, 4000)
    scores = np.clip(rng.normal(128 + 50 * (2 * labels - 1), 45), 0, 255).astype(int)
    samples = np.column_stack([scores, rng.integers(-64, 64, (4000, 8))]).tolist()
    paid, without = [], []
    for seed in range(3):
        paid.append(live(AdaptiveHead(8, beta=BETA, seed=seed), samples, labels.tolist()).mean())
        without.append(live(Adaptive(beta=BETA, seed=seed), (scores >> 4).tolist(), labels.tolist()).mean())
    assert np.mean(paid) < 1.04 * np.mean(without)


def test_labels_turned_over_show_a_drift():
    """The scores do not move; after some surprising labels the forecaster forgets and audits again."""
    samples, labels = stream(2000)
    policy = AdaptiveHead(3, beta=BETA)
    live(policy, samples, labels)
    paid = live(policy, samples, [1 - label for label in labels])
    assert paid[1000:].mean() < 0.1


def test_its_share_of_the_weight():
    policy = AdaptiveHead(3, beta=BETA)
    assert policy.report()["head_share"] == ONE * 3 / 4  # each of three heads counts as much as all bins
    live(policy, *stream(800))
    assert policy.report()["head_share"] > 0.95 * ONE


def saving(samples, labels, seed):
    """(what a head really saves, what it reports), in costs of 1."""
    numbers = {"beta": BETA, "seed": seed}
    without = live(Adaptive(**numbers), [sample[0] >> 4 for sample in samples], labels).sum()
    policy = AdaptiveHead(len(samples[0]) - 1, **numbers)
    return without - live(policy, samples, labels).sum(), policy.report()["head_saved"] / 1000


@pytest.mark.whole
def test_it_reports_what_the_head_saved():
    samples, labels = stream(1500)
    real, reported = np.mean([saving(samples, labels, seed) for seed in (1, 2, 3)], axis=0)
    assert real > 250 and reported == pytest.approx(real, rel=0.15)
    rng = np.random.default_rng(5)
    for sample, label in zip(samples, labels):  # a score that tells something, and features of noise
        sample[:] = [
            int(np.clip(128 + (label - 0.5) * 100 + rng.normal(0, 60), 0, 255)),
            *rng.normal(0, 32, 3).astype(int).tolist(),
        ]
    real, reported = np.mean([saving(samples, labels, seed) for seed in (1, 2, 3)], axis=0)
    assert abs(real) < 15 and abs(reported) < 20


def test_the_saving_of_a_period_is_settled():
    sums = [0] * 9
    effective = [6554, 22938, 32768, 0, 0, 0, 0]  # FEE to WRONG_1
    for n in range(PERIOD):
        count_saving(sums, 0, [32000 if n & 1 else 768], effective)  # the bin tells nothing, the head nearly all
    reported = period(sums, 22938, 32768)
    assert reported / 1024 == pytest.approx(PERIOD * (0.2 - (0.0234 + 0.0164) / 2), rel=0.01)
    count_saving(sums, 0, [768], effective)
    assert sums[SAVED] == reported and sums[5::3] == [1, 0] and sums[ROUNDS] == 1


def test_a_sum_stays_within_its_limit_both_ways():
    assert [bounded(x) for x in (-LIMIT - 2, -LIMIT, 5, LIMIT + 2)] == [-LIMIT, -LIMIT, 5, LIMIT]


def test_a_label_that_is_refused_reports_nothing():
    samples, labels = stream(300)
    policy = AdaptiveHead(3, beta=BETA)
    live(policy, samples, labels)
    before = policy.report()
    assert not policy.learn(policy.tickets.last, 1) and policy.report() == before


def test_it_continues_from_a_snapshot_bit_for_bit():
    samples, labels = stream(700)
    policy = AdaptiveHead(3, beta=BETA)
    live(policy, samples, labels)
    other = AdaptiveHead(3, beta=BETA)
    restored(other, saved(policy, policy.cost_list()), policy.cost_list())
    assert live(other, samples, labels).tolist() == live(policy, samples, labels).tolist()
    assert saved(other, other.cost_list()) == saved(policy, policy.cost_list())


def test_a_snapshot_of_other_features_is_refused():
    policy = AdaptiveHead(3)
    with pytest.raises(ValueError):
        restored(AdaptiveHead(4), saved(policy, policy.cost_list()), policy.cost_list())


def test_a_reset_forgets_the_head():
    policy = AdaptiveHead(3, beta=BETA)
    live(policy, *stream(300))
    policy.reset()
    heads = policy.forecaster.heads
    assert not any(heads.weights) and set(heads.roots) == {head.FRESH_ROOT} and not heads.taught


def test_a_late_label_teaches_its_own_sample():
    """Two offloads are out; the label of the first comes last."""
    policy = AdaptiveHead(1, beta=0, window=2)
    tickets = []
    for x in (100, -100):
        assert policy.decide([128, x]) == OFFLOAD
        tickets.append(policy.ticket)
    policy.learn(tickets[1], 0)
    policy.learn(tickets[0], 1)
    assert min(policy.forecaster.heads.weights[0::3]) > 0  # the feature's, in each head


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_the_bin_of_a_sample_is_that_of_its_score(bits):
    policy = AdaptiveHead(1, bits)
    assert [policy.bin([score, 100]) for score in range(256)] == [score * 2**bits // 256 for score in range(256)]


def test_where_the_bins_alone_tell_the_label_it_acts_by_them():
    """Events in every other bin of the score, and a feature that says nothing: a head cannot learn that."""
    rng = np.random.default_rng(7)
    policy = AdaptiveHead(1, beta=BETA // 2)
    scores = rng.integers(0, 256, 600).tolist()
    live(policy, [[score, 0] for score in scores], [score >> 4 & 1 for score in scores])
    assert [policy.likely([16 * k + 8, 0]) for k in range(16)] == [0, 1] * 8


def test_policies_make_it():
    arguments = {"beta": BETA, "features": 4}
    assert type(policies.make("adaptive", arguments)) is AdaptiveHead
    limited = policies.make("adaptive", {**arguments, "miss_rate": 655})
    assert type(limited) is AdaptiveHead and limited.limit.miss_rate == 655
    for name, wrong, why in (
        ("h2t2", {}, "learns from the score alone"),
        ("adaptive", {"ordered": True}, "not with features"),
        ("adaptive", {"features": 41}, "41 is not in 1..40"),
        ("adaptive", {"bits": 9}, "9 is not in 1..8"),
    ):
        with pytest.raises(ValueError, match=why):
            policies.make(name, {**arguments, **wrong})


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 4, 8])
def test_the_integers_follow_float64(bits):
    differ, _, _ = follow_head(bits, 1500, 1)
    assert differ * 250 <= 1500


def test_a_feature_out_of_range_is_saturated_not_wrapped():
    heads = Heads(3, 2)
    heads.see([128, 200, -300, 5])
    heads.keep(0)
    heads.see([9, 0, 0, 0])
    heads.recall(0)
    assert heads.x.tolist()[:3] == [127, -128, 5]
