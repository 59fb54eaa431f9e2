"""Heads for many classes: one head per class, and the forecaster that weighs the distributions they give."""

import numpy as np
import pytest
from float_heads import follow_class_head
from snapshots import restored, saved
from taught_heads import BETA, live

from h2t2.core import policies
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.class_head_forecaster import FIRST
from h2t2.core.class_heads import ClassHeads, normalise
from h2t2.core.head import FRESH_ROOT, RATES, Heads
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD

CLASSES = 4
COSTS = [[0 if i == j else ONE * 7 // 10 for j in range(CLASSES)] for i in range(CLASSES)]
FLAT = [4096] * CLASSES  # scores that tell nothing


def stream(rounds, seed=3):
    """(samples, labels): scores that tell nothing, and two features of three on whose signs the label depends."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, rounds)
    features = rng.normal(0, 1, (rounds, 3))
    features[:, 0] = 2 * (labels & 1) - 1 + rng.normal(0, 0.3, rounds)
    features[:, 2] = 2 * (labels >> 1) - 1 + rng.normal(0, 0.3, rounds)
    samples = np.column_stack([np.tile(FLAT, (rounds, 1)), np.clip(features * 32, -127, 127).astype(int)])
    return samples.tolist(), labels.tolist()


def made(features=3, **options):
    return AdaptiveClassHead(features, COSTS, **{"beta": BETA, "bits": 2, **options})


def test_outputs_become_distributions():
    p = [0] * 4 + [8192, 8192, 4096, 4096] + [32738, 30, 30, 30]
    normalise(p, 1, 4)
    assert p[:8] == [0] * 4 + [10922, 10922, 5461, 5461]
    assert all(0 < share < ONE for share in p[8:]) and ONE - 4 <= sum(p[8:]) <= ONE


def test_heads_begin_as_the_local_model():
    heads = ClassHeads(CLASSES, 2, 1)
    scores = [10000, 4000, 2000, 384]
    heads.see([*scores, 100, -100])
    p = [0] * (CLASSES * len(RATES))
    heads.predict(p, 0)
    for r in range(len(RATES)):
        assert np.array(p[r * CLASSES : (r + 1) * CLASSES]) / ONE == pytest.approx(np.array(scores) / 16384, abs=0.005)


def test_each_class_has_the_heads_of_two_classes():
    """What each learns is what Heads of its own learn from 1 for its class and 0 for the others."""
    samples, labels = stream(200)
    heads, own = ClassHeads(CLASSES, 3, 2), [Heads(3, 2) for _ in range(CLASSES)]
    p = [0] * (CLASSES * len(RATES))
    for sample, label in zip(samples, labels):
        heads.see(sample)
        heads.predict(p, 0)
        heads.learn(label)
        for k in range(CLASSES):
            own[k].see([sample[k] >> 6, *sample[CLASSES:]])
            own[k].predict()
            own[k].learn(int(k == label))
    for k in range(CLASSES):
        assert heads.of_class[k].weights == own[k].weights and heads.of_class[k].roots == own[k].roots
        assert heads.of_class[k].rows == own[k].rows and heads.of_class[k].answers == own[k].answers


def test_it_learns_what_the_scores_do_not_tell():
    samples, labels = stream(2000)
    policy = made()
    paid = live(policy, samples, labels)
    without = live(AdaptiveClasses(COSTS, 2, beta=BETA), [sample[:CLASSES] for sample in samples], labels)
    assert paid[500:].mean() < 0.04 and without[500:].mean() > 0.19
    assert policy.report()["head_share"] > 0.9 * ONE


def test_its_share_of_the_weight_at_the_start():
    assert made().report()["head_share"] == pytest.approx(ONE * 3 / 19, abs=100)


@pytest.mark.whole
def test_features_without_information_cost_little():
    rng = np.random.default_rng(6)
    labels = rng.integers(0, CLASSES, 4000)
    logits = rng.normal(0, 1, (4000, CLASSES)) + 3 * np.eye(CLASSES)[labels]
    scores = (np.exp(logits) / np.exp(logits).sum(1, keepdims=True) * 16384).astype(int)
    samples = np.column_stack([scores, rng.integers(-64, 64, (4000, 8))]).tolist()
    paid, without = [], []
    for seed in range(3):
        paid.append(live(made(8, seed=seed), samples, labels.tolist()).mean())
        policy = AdaptiveClasses(COSTS, 2, beta=BETA, seed=seed)
        without.append(live(policy, scores.tolist(), labels.tolist()).mean())
    assert np.mean(paid) < 1.04 * np.mean(without)


def test_it_continues_from_a_snapshot_bit_for_bit():
    samples, labels = stream(400)
    policy, other = made(), made()
    live(policy, samples, labels)
    restored(other, saved(policy, policy.cost_list()), policy.cost_list())
    assert live(other, samples, labels).tolist() == live(policy, samples, labels).tolist()
    assert saved(other, other.cost_list()) == saved(policy, policy.cost_list())


def test_the_state_holds_the_stored_features_once():
    policy = made()
    state = sum(stop - start for _, start, stop, *_ in policy.forecaster.heads.array_rows())
    assert state == 64 + CLASSES * (2 * len(RATES) * 5 + 64)


def test_a_snapshot_of_other_features_is_refused():
    policy = made()
    for other in (made(4), AdaptiveClasses(COSTS, 2)):
        with pytest.raises(ValueError):
            restored(other, saved(policy, policy.cost_list()), policy.cost_list())


def test_a_reset_forgets_the_heads():
    policy = made()
    live(policy, *stream(200))
    policy.reset()
    for heads in policy.forecaster.heads.of_class:
        assert not any(heads.weights) and set(heads.roots) == {FRESH_ROOT} and not heads.taught


def test_heads_of_another_model_begin_anew():
    policy = made()
    policy.adopt(5)
    live(policy, *stream(200))
    policy.adopt(5)
    assert any(policy.forecaster.heads.of_class[2].weights) and any(policy.forecaster.loss[FIRST:])
    policy.adopt(6)
    assert not any(policy.forecaster.heads.of_class[2].weights) and not any(policy.forecaster.loss)
    assert policy.forecaster.heads.model == 6 and any(policy.forecaster.counts)


def test_a_late_label_teaches_its_own_sample():
    """Two offloads are out; the label of the first comes last."""
    policy = made(1, beta=0, window=2)
    tickets = []
    for x in (100, -100):
        assert policy.decide([*FLAT, x]) == OFFLOAD
        tickets.append(policy.ticket)
    policy.learn(tickets[1], 0)
    policy.learn(tickets[0], 1)
    heads = policy.forecaster.heads.of_class
    assert max(heads[0].weights[0::3]) < 0 < min(heads[1].weights[0::3])  # the feature's, of each rate


def test_a_guess_without_an_offload_changes_nothing():
    samples, labels = stream(300)
    policy = made()
    live(policy, samples, labels)
    before = saved(policy, policy.cost_list())
    assert policy.likely(samples[0]) == labels[0] and policy.bin(samples[0]) == 0
    assert saved(policy, policy.cost_list()) == before


def test_policies_make_it():
    arguments = {"costs": COSTS, "beta": BETA, "features": 4}
    assert type(policies.make("adaptive", arguments)) is AdaptiveClassHead
    for wrong, why in (({"miss_rate": 655}, "want `normal`"), ({"features": 41}, "41 is not in 1..40")):
        with pytest.raises(ValueError, match=why):
            policies.make("adaptive", {**arguments, **wrong})


@pytest.mark.parametrize("bits", [1, 4, 6])
def test_the_integers_follow_float64(bits):
    differ, _, _ = follow_class_head(bits, 1000, 1)
    assert differ * 250 <= 1000
