"""The baselines against their definitions, computed the slow way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import COSTS

from h2t2_lab.rivals.hedge import single_threshold
from h2t2_lab.rivals.policies import Filter, HiLcb, PaperPair, TwoSidedBound
from h2t2_tools.replay.simulation.policies.baselines import FixedPair, OfflinePair, OfflineSingle, local
from h2t2_tools.replay.simulation.stream import Costs, Stream, charged, outcome


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(0, 2**32 - 1), st.sampled_from([0.05, 1.0, 3.0]))
def test_the_single_threshold_is_exact_on_the_continuum(rounds, seed, eta):
    """Against the weights of all intervals between confidences, kept and summed one by one."""
    rng = np.random.default_rng(seed)
    confidence = rng.choice(np.round(0.5 + rng.random(8) / 2, 3), rounds)
    wrong = rng.choice([0.0, 0.7, 1.0], rounds)
    beta, epsilon = np.full(rounds, 0.3), 0.2
    psi, zeta = rng.random(rounds), rng.random(rounds)
    values, ranks = np.unique(confidence, return_inverse=True)
    edges = np.concatenate([[0.0], values, [1.0]])
    actions = np.zeros(rounds, np.int64)
    single_threshold(ranks.astype(np.int64), np.diff(edges), (wrong, beta), (eta, epsilon), (psi, zeta), actions)
    loss = np.zeros(len(values) + 1)
    expected = []
    for t in range(rounds):
        weight = np.diff(edges) * np.exp(-eta * (loss - loss.min()))
        offloads = edges[:-1] >= confidence[t] - 1e-12  # thresholds above this confidence
        q = weight[offloads].sum() / weight.sum()
        explore = zeta[t] < epsilon
        expected.append(int(psi[t] <= q or explore))
        loss[offloads] += beta[t]
        if explore:
            loss[~offloads] += wrong[t] / epsilon
    assert actions.tolist() == expected


streams = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 1)), min_size=1, max_size=40)


def stream_of(pairs, beta, steps):
    bins, label = np.array(pairs).T
    return Stream(bins / steps, label, np.full(len(label), beta)), Costs.binary(beta, 0.7, 1.0)


@given(streams, st.sampled_from([0.0, 0.1, 0.3, 0.9]))
def test_the_offline_pair_is_the_best_of_all_pairs(pairs, beta):
    """The paper's grid alone has no pair that offloads the last bin."""
    stream, costs = stream_of(pairs, beta, 8)
    bins = stream.bins(3)
    for rival, last in ((PaperPair(3), 7), (OfflinePair(3), 8)):
        every = [np.where(bins < i, 0, np.where(bins < j, -1, 1)) for i in range(last + 1) for j in range(i, last + 1)]
        best = min(outcome(actions, stream, costs).cost for actions in every)
        assert outcome(rival.act(stream, costs, 0), stream, costs).cost == pytest.approx(best)


@given(streams, st.sampled_from([0.0, 0.1, 0.3, 0.9]))
def test_the_offline_single_is_the_best_of_all_thresholds(pairs, beta):
    stream, costs = stream_of(pairs, beta, 7)
    confidence, guess, _ = local(stream, costs)
    every = [np.where(confidence < theta, -1, guess) for theta in [*confidence, 0, 2]]
    best = min(outcome(actions, stream, costs).cost for actions in every)
    assert outcome(OfflineSingle().act(stream, costs, 0), stream, costs).cost == pytest.approx(best)


def test_what_a_lost_label_costs():
    stream = Stream(np.full(3, 0.5), np.array([1, 0, 1]), np.full(3, 0.3), np.array([-1, -1, 4]))
    cost, acted, offload = charged(np.array([-1, -2, -1]), stream, COSTS)
    assert cost == pytest.approx([1.3, 1.0, 0.3]) and acted.tolist() == [0, 1, 1] and offload.all()


def test_a_table_from_few_labels_is_better_than_the_scores():
    """200 labels of a model whose scores are too sure: nearer to the truth in every quarter; without labels, the scores."""
    from h2t2_tools.replay.prior import table

    rng = np.random.default_rng(8)
    score = rng.random(200)
    truth = 0.3 + 0.4 * (np.arange(16) + 0.5) / 16
    label = (rng.random(200) < truth[(score * 16).astype(int)]).astype(int)
    made = np.array(table(score, label, 4))
    middle = (np.arange(16) + 0.5) / 16
    assert abs(made - truth).mean() < 0.6 * abs(middle - truth).mean()
    assert table(np.zeros(0), np.zeros(0), 4) == pytest.approx(middle, abs=0.01)


def test_every_hostile_stream_is_one_the_device_takes():
    from h2t2_lab.experiments.hostile import STREAMS, make

    for name in STREAMS:
        stream = make(name, 500, 1, 0.3)
        assert set(stream.label) <= {0, 1} and stream.bins(4).max() < 16 and 0 <= stream.beta.min() <= stream.beta.max() <= 1
    assert len(STREAMS) >= 12


def test_hi_lcb_stops_asking_where_a_bound_rules_it_out():
    """Right above .9 and wrong below .6: it asks for ever below, and hardly above, where a surer bin cannot cost more."""
    rng = np.random.default_rng(1)
    score = np.where(rng.random(6000) < 0.5, rng.uniform(0.9, 1, 6000), rng.uniform(0.5, 0.6, 6000))
    stream = Stream(score, (score > 0.9).astype(int), np.full(6000, 0.3))
    for policy in (HiLcb(), HiLcb(monotone=False), TwoSidedBound()):
        asked = policy.act(stream, COSTS, 0) < 0
        late = np.arange(6000) > 5000
        assert asked[late & (score > 0.9)].mean() < 0.05
        if policy.name.startswith("HI-LCB ("):
            assert asked[late & (score < 0.6)].all()


def test_the_fixed_filters_ask_where_they_say():
    score = np.linspace(0, 1, 401)
    stream = Stream(score, np.zeros(401, int), np.full(401, 0.3))
    confidence = np.maximum(score, 1 - score)
    assert ((Filter("threshold").act(stream, COSTS, 0) < 0) == (confidence < 0.9)).all()
    f = np.clip(score, 1e-12, 1 - 1e-12)
    entropy = -(f * np.log(f) + (1 - f) * np.log(1 - f))
    sure = np.abs(entropy - 0.5) > 1e-3
    assert ((Filter("entropy").act(stream, COSTS, 0) < 0) == (entropy > 0.5))[sure].all()


def test_kept_thresholds_are_those_of_the_labelled_samples():
    """On a stream that turns they go on as they were."""
    score = np.tile(np.linspace(0, 0.999, 100), 10)
    label = (score > 0.5).astype(int)
    label[500:] ^= 1
    stream = Stream(score, label, np.full(1000, 0.3))
    actions = FixedPair(100).act(stream, COSTS, 0)
    assert (actions[:500] == label[:500]).all() and (actions[500:] != label[500:]).all()
    other = Stream(score, np.ones(1000, int), stream.beta)
    assert (FixedPair(50, labelled=other).act(stream, COSTS, 0) == 1).all()
