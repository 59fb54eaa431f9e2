"""The adaptive policy for many classes: what it learns, and what it is made of."""

from array import array

import numpy as np
import pytest

from h2t2 import units
from h2t2.core.adaptive_classes import AdaptiveClasses, weights
from h2t2.core.class_forecaster import COST, GUESS, INTERVAL, ClassForecaster, confidence, likeliest
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD

COSTS = [[0 if i == j else 22938 for j in range(3)] for i in range(3)]


def live(policy, rounds, right, beta):
    """The mean cost of rounds whose label is the model's class where right(n, class), else the next class."""
    rng = np.random.default_rng(3)
    paid = 0.0
    for n in range(rounds):
        top = int(rng.integers(3))
        f = [1000] * 3
        f[top] = 16384 - 2000
        label = top if right(n, top) else (top + 1) % 3
        action = policy.decide(f)
        if action == OFFLOAD:
            paid += beta / ONE
            policy.learn(policy.ticket, label)
        elif action != label:
            paid += COSTS[label][action] / ONE
    return paid / rounds


def test_it_learns_in_which_class_a_sure_model_is_wrong():
    """Sure of everything, and wrong whenever it says 2: that is answered with the class it really is, without asking."""
    policy = AdaptiveClasses(COSTS, beta=6554)
    assert live(policy, 3000, lambda n, top: top != 2, 6554) < 0.05
    assert policy.decide([1000, 1000, 14384]) in (0, OFFLOAD) and policy.forecaster.belief[GUESS] == 0


def test_it_looks_again_after_a_sure_time():
    """400 samples on which the model is right, then on none: within 1,000 rounds it has found out."""
    policy = AdaptiveClasses(COSTS, beta=6554)
    live(policy, 400, lambda n, top: True, 6554)
    live(policy, 1000, lambda n, top: False, 6554)
    assert live(policy, 500, lambda n, top: False, 6554) < 0.15


def test_a_right_model_is_asked_about_as_seldom_as_can_be():
    policy = AdaptiveClasses(COSTS, beta=6554)
    live(policy, 2000, lambda n, top: True, 6554)
    assert live(policy, 2000, lambda n, top: True, 6554) < 0.01


@pytest.mark.parametrize("classes", [2, 3, 16])
@pytest.mark.parametrize("bits", [1, 4, 6])
def test_bins_of_the_confidence_go_from_chance_to_certainty(classes, bits):
    bins = [confidence(score, classes, bits) for score in range(16384 // classes, 16385)]
    assert bins[0] == 0 and bins[-1] == 2**bits - 1 and sorted(bins) == bins and set(bins) == set(range(2**bits))
    assert likeliest([3, 9, 9]) == 1


def test_forecasts_are_shares():
    """Of every memory and prior: near what the labels were, and their sum one."""
    seen = ClassForecaster(2, 3)
    costs = [22938 * (i != j) for i in range(3) for j in range(3)]
    cell = 2 << 2 | 3
    for n in range(1000):
        seen.observe([1000, 1000, 14384], cell)
        seen.learn(cell, (0, 0, 0, 2)[n % 4])
    seen.estimate(array("i", costs), cell)
    for n in range(0, len(seen.forecast), 3):
        assert sum(seen.forecast[n : n + 3]) == pytest.approx(ONE, abs=70)
    assert seen.mixed[0] == pytest.approx(ONE * 3 // 4, rel=0.02) and seen.belief[GUESS] == 0
    assert seen.belief[COST] == pytest.approx(ONE * 0.7 / 4, rel=0.05) and 0 < seen.belief[INTERVAL] < 2000


def test_the_weights_of_equal_experts():
    """No loss yet: the forecaster has .99, and of 17 thresholds those above the bin ask."""
    shares = [0, 0]
    policy = AdaptiveClasses(COSTS)
    weights(policy.losses, shares, policy.head, 3)
    assert shares[0] / ONE == pytest.approx(0.99, abs=0.001) and shares[1] / ONE == pytest.approx(13 / 17, abs=0.01)


@pytest.mark.parametrize("options, why", [({"bits": 7}, "bits"), ({"beta": 0.2}, "float"), ({"window": 0}, "window")])
def test_bad_options_are_named(options, why):
    with pytest.raises(ValueError, match=why):
        AdaptiveClasses(COSTS, **options)


def test_bad_labels_and_tickets():
    policy = AdaptiveClasses(COSTS)
    with pytest.raises(ValueError, match="0..2"):
        policy.learn(1, 3)
    assert not policy.learn(1, 2) and policy.tickets.refused == 1
    with pytest.raises(ValueError, match="cost matrix"):
        policy.set_deltas(1, 2)


@pytest.mark.slow
def test_a_remote_model_that_errs_is_allowed_for():
    """It says the next class for one in five: what it says of the local model's errors is not believed as it stands."""
    classes, costs = 3, [[0.0 if i == j else 1.0 for j in range(3)] for i in range(3)]
    confusion = [[0.8 if i == j else 0.2 if j == (i + 1) % 3 else 0.0 for j in range(3)] for i in range(3)]
    paid = {}
    for rates in (None, units.confusion(confusion)):
        rng = np.random.default_rng(5)
        policy = AdaptiveClasses([[int(x * ONE) for x in row] for row in costs], beta=6554, confusion=rates)
        total = 0.0
        for _ in range(4000):
            top = int(rng.integers(classes))
            is_class = top if rng.random() < 0.95 else int(rng.integers(classes))
            action = policy.decide([14384 if k == top else 1000 for k in range(classes)])
            if action == OFFLOAD:
                total += 0.2
                policy.learn(policy.ticket, int(rng.choice(classes, p=confusion[is_class])))
            else:
                total += action != is_class
        paid[rates is None] = total / 4000
    assert paid[False] < 0.07 and paid[False] < 0.8 * paid[True]


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_what_labels_say_of_costs_is_right_on_average(classes):
    """Beyond the mean cost of the remote model's answer, which a question costs."""
    rng = np.random.default_rng(classes)
    confusion = 0.85 * np.eye(classes) + 0.15 * rng.dirichlet(np.ones(classes), classes)
    costs = rng.random((classes, classes)) * (1 - np.eye(classes))
    policy = AdaptiveClasses(units.matrix(costs), confusion=units.confusion(confusion))
    by_labels = np.array(policy.label_costs).reshape(classes, classes) / ONE
    asked = (confusion * costs).sum(1, keepdims=True)
    assert np.abs(confusion @ by_labels + asked - costs).max() < 3e-4


def test_a_remote_model_of_which_nothing_can_be_learned_is_refused():
    policy = AdaptiveClasses([[0, ONE], [ONE, 0]])
    with pytest.raises(ValueError, match="too little apart"):
        units.confusion([[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match="errs too often: a label would count 1.44, at most 1.41"):
        policy.set_confusion(units.confusion([[0.7, 0.3], [0.3, 0.7]]))
    with pytest.raises(ValueError, match="confusion: 18 numbers, want 8"):
        policy.set_confusion(units.confusion([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    assert policy.label_costs == policy.costs and not policy.confusion


def test_scores_as_people_write_them_are_taken():
    costs = [[0, 32768, 32768], [32768, 0, 32768], [32768, 32768, 0]]
    policies = [AdaptiveClasses(costs), AdaptiveClasses(costs)]
    scores = [0.125, 0.25, 0.625]
    assert [policies[0].decide_score(scores) for _ in range(30)] == [policies[1].decide([2048, 4096, 10240]) for _ in range(30)]
    with pytest.raises(ValueError, match="2 scores, want 3"):
        policies[0].decide_score([0.5, 0.5])
