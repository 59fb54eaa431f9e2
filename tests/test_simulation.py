"""The simulator: its compiled learners against the device's vector file, its other policies against brute force."""

import json

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from portable import replay as vectors
from support import ROOT

from h2t2.core.h2t2 import H2T2 as Device
from h2t2.core.rng import Rng
from h2t2.core.rules import Calibrated as DeviceRule
from h2t2_tools.lab.simulation import policies, twin
from h2t2_tools.lab.simulation.hedge import single_threshold
from h2t2_tools.lab.simulation.names import BINARY, MULTICLASS, NAMES
from h2t2_tools.lab.simulation.policies.calibrated import binary_rule, multiclass_rule
from h2t2_tools.lab.simulation.policies.confidence import local
from h2t2_tools.lab.simulation.policies.h2t2 import options
from h2t2_tools.lab.simulation.stream import Costs, Stream, charged, draw, outcome
from h2t2_tools.lab.simulation.sweep import grid, sweep
from h2t2_tools.lab.traces import Trace

LINES = [json.loads(line) for line in (ROOT / "tests/vectors/core.jsonl").read_text().splitlines()]
COSTS = Costs.binary(0.3, 0.7, 1.0)


def made_up(samples=400, seed=1, classes=2):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, samples)
    if classes > 2:
        score = rng.dirichlet(np.ones(classes), samples)
        score[np.arange(samples), label] += 0.5
        return Trace("made up", score / score.sum(1, keepdims=True), label)
    return Trace("made up", np.clip(rng.normal(0.3 + 0.4 * label, 0.2), 0, 1), label)


def arrivals_of(actions, labels):
    """The vector file's own schedule of labels (tests/portable/replay.py), as the twin takes it; sets the late ones' labels."""
    starts, rounds, costs, waiting = [0], [], [], None
    for n, action in enumerate(actions):
        if action == "-" and n % 7 == 3:
            waiting = n
        elif action == "-":
            rounds.append(n)
            costs.append(twin.LOSE if n % 7 == 5 else twin.AS_CHARGED)
            if n % 7 != 5 and waiting is not None:
                rounds += [waiting, waiting]
                costs += [16384, 16384]
                labels[waiting] = labels[n]  # the file teaches a late ticket the label of the moment
                waiting = None
        starts.append(len(rounds))
    return tuple(np.array(part, np.int64) for part in (starts, rounds, costs))


@pytest.mark.parametrize("n", range(len(vectors.RUNS)))
def test_the_compiled_learners_are_the_devices_own_on_every_vector(n):
    kind, rounds, _, given_options = vectors.RUNS[n]
    want = LINES[n]
    if kind == "rng":
        state = twin.seeded(given_options["seed"])
        assert [int(twin._draw(state)) for _ in range(rounds)] == want["draws"]
        return
    stream = Rng(7)
    if kind == "calibrated":
        f, many = zip(*((stream.draw() >> 1, vectors.scores(stream, 4)) for _ in range(rounds)))
        betas = np.arange(rounds) * 82
        one, four = np.zeros(rounds, np.int64), np.zeros(rounds, np.int64)
        binary_rule(np.array(f), betas, 22938, 32768, one)
        multiclass_rule(np.array(many), betas, np.array(vectors.COSTS), four)
        assert "".join("01-"[a] + "0123-"[b] for a, b in zip(one, four)) == want["actions"]
        return
    device = vectors.make(kind, rounds, given_options)
    bits = given_options.get("bits", 4)
    scores, bins, labels = [], [], []
    for _ in range(rounds):
        first = stream.draw()
        if kind == "pairwise":
            scores.append(vectors.scores(stream, 4))
            labels.append(stream.draw() % 4)
        else:
            bins.append(first << bits >> 15)
            labels.append(1 if stream.draw() < first else 0)
    betas = np.full(rounds, device.beta)
    actions = np.zeros(rounds, np.int64)
    labels = np.array(labels)
    late = arrivals_of(want["actions"], labels)
    if kind == "calibrating":
        numbers = (
            bits,
            device.delta_fp,
            device.delta_fn,
            device.half_life,
            8,
            device.rdl_fp,
            32768 - device.clear - device.rdl_fp,
        )
        counts = twin.calibrate(np.array(bins), labels, betas, numbers, twin.seeded(rounds), *late, actions)
        classes = actions
    elif kind == "pairwise":
        a, b, bins = twin.pairs_of(np.array(scores), np.array(vectors.COSTS), bits)
        rates = np.array([[[row[x], row[y]] for row in device.loss] for x, y in device.pairs])
        trees = b * (b - 1) // 2 + a
        counts = twin.h2t2(trees, bins, labels, betas, rates, options(device), twin.seeded(rounds), *late, actions)
        classes = np.where(actions & 1, b, a)
    else:
        rates = np.array(device.rates).reshape(1, 2, 2)
        trees = np.zeros(rounds, np.int64)
        counts = twin.h2t2(trees, np.array(bins), labels, betas, rates, options(device), twin.seeded(rounds), *late, actions)
        classes = actions
    assert "".join("-" if x >= twin.ASKED else "0123"[c] for x, c in zip(actions, classes)) == want["actions"]
    assert list(counts) == want["counts"]


@pytest.mark.parametrize("feedback", ["explored", "all"])
def test_it_stays_the_device_beyond_the_cap(feedback):
    """30,000 rounds at the largest learning rate: the unit of the losses doubles several times."""
    policy = policies.H2T2(3, eta=5.5, epsilon=0.01, feedback=feedback)
    stream = draw(made_up(), 30000, 3, 0.3)
    device = policy.device(stream, COSTS, 9)
    expected = []
    for k, label in zip(stream.bins(3).tolist(), stream.label.tolist()):
        expected.append(device.decide(k))
        if expected[-1] < 0:
            device.learn(device.ticket, label)
            expected[-1] = -1 - device.local
    assert policy.act(stream, COSTS, 9).tolist() == expected and device.experts.unit > 1


def test_late_labels_reach_the_learner_in_their_round():
    stream = draw(made_up(), 2000, 3, 0.3)
    delay = np.random.default_rng(1).integers(-1, 40, 2000)
    late = Stream(stream.score, stream.label, stream.beta, delay)
    policy = policies.H2T2(4, window=16, feedback="all")
    device = Device(**{**_arguments(policy, late), "window": 16})
    out, expected = {}, []
    for n, k in enumerate(late.bins(4).tolist()):
        expected.append(device.decide(k))
        if expected[-1] < 0:
            out[n] = device.ticket
            expected[-1] = -1 - device.local
        for r in range(n + 1):
            if delay[r] == n - r and r in out:
                device.learn(out[r], int(late.label[r]))
    assert policy.act(late, COSTS, 5).tolist() == expected


def _arguments(policy, stream):
    from h2t2 import units
    from h2t2_tools.common.corollary import corollary

    epsilon = corollary(policy.bits, len(stream), COSTS.beta)[0]
    return units.policy(
        bits=policy.bits,
        beta=0.3,
        delta_fp=0.7,
        delta_fn=1.0,
        eta=1.0,
        epsilon=epsilon,
        seed=5,
        feedback=policy.feedback,
        exploration=policy.exploration,
    )


@settings(max_examples=30, deadline=None)
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
    single_threshold(ranks.astype(np.int64), np.diff(edges), wrong, beta, eta, epsilon, psi, zeta, actions)
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


@settings(deadline=None)
@given(streams, st.sampled_from([0.0, 0.1, 0.3, 0.9]))
def test_the_offline_pair_is_the_best_of_all_pairs(pairs, beta):
    stream, costs = stream_of(pairs, beta, 8)
    bins = stream.bins(3)
    every = [np.where(bins < i, 0, np.where(bins < j, -1, 1)) for i in range(8) for j in range(i, 8)]
    best = min(outcome(actions, stream, costs).cost for actions in every)
    assert outcome(policies.OfflinePair(3).act(stream, costs, 0), stream, costs).cost == pytest.approx(best)
    assert outcome(policies.OfflineBin(3).act(stream, costs, 0), stream, costs).cost <= best + 1e-12


@settings(deadline=None)
@given(streams, st.sampled_from([0.0, 0.1, 0.3, 0.9]))
def test_the_offline_single_is_the_best_of_all_thresholds(pairs, beta):
    stream, costs = stream_of(pairs, beta, 7)
    confidence, guess, _ = local(stream, costs)
    every = [np.where(confidence < theta, -1, guess) for theta in [*confidence, 0, 2]]
    best = min(outcome(actions, stream, costs).cost for actions in every)
    assert outcome(policies.OfflineSingle().act(stream, costs, 0), stream, costs).cost == pytest.approx(best)


def test_the_calibrated_rule_is_the_devices():
    stream = draw(made_up(), 500, 1, 0.3)
    rule = DeviceRule(*(round(x * 32768) for x in (0.7, 1.0)))
    expected = [rule.decide(int(f), round(0.3 * 32768)) for f in stream.q14[:, 1]]
    assert policies.Calibrated().act(stream, COSTS, 0).tolist() == expected


def test_what_a_lost_label_costs():
    stream = Stream(np.full(3, 0.5), np.array([1, 0, 1]), np.full(3, 0.3), np.array([-1, -1, 4]))
    cost, acted, offload = charged(np.array([-1, -2, -1]), stream, COSTS)
    assert cost == pytest.approx([1.3, 1.0, 0.3]) and acted.tolist() == [0, 1, 1] and offload.all()


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_acts_and_repeats(name):
    trace = made_up() if name in BINARY else made_up(classes=4)
    stream = draw(trace, 500, 1, 0.3)
    matrix = tuple(tuple(0.0 if i == j else 0.7 for j in range(trace.classes)) for i in range(trace.classes))
    policy = policies.make(name, 4)
    first, again = (policy.act(stream, Costs(0.3, matrix), 7) for _ in range(2))
    assert first.tolist() == again.tolist() and len(first) == 500
    assert -trace.classes <= first.min() and first.max() < trace.classes
    assert policy.name


@pytest.mark.parametrize("name", MULTICLASS)
def test_policies_for_many_classes(name):
    stream = draw(made_up(classes=5), 300, 1, 0.2)
    matrix = tuple(tuple(0.0 if i == j else 0.5 for j in range(5)) for i in range(5))
    assert outcome(policies.make(name, 3).act(stream, Costs(0.2, matrix), 7), stream, Costs(0.2, matrix)).cost <= 0.5


def test_learning_pays():
    """On a stream with something to learn the learner is near the offline optimum and better than either naive policy."""
    jobs = grid(made_up(4000), [policies.make(name, 4) for name in BINARY], [0.3], COSTS.matrix, 10000, 3, 0)
    cost = {result.job.policy.name: result.mean("cost") for result in sweep(jobs)}
    learned = cost["H2T2 all + anytime"]
    assert cost["offline optimum a bin"] <= cost["offline pair θ*"] < learned < cost["offline pair θ*"] + 0.02
    assert learned < min(cost["no offload"], cost["full offload"], cost["HI single threshold"])


def test_a_sweep_is_the_same_on_a_dask_cluster():
    distributed = pytest.importorskip("distributed", reason="the test's cluster: pip install distributed")
    jobs = grid(made_up(), [policies.make("h2t2-all", 4), policies.make("single", 4)], [0.1, 0.4], COSTS.matrix, 500, 2, 0)
    here = [result.outcomes for result in sweep(jobs)]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert [result.outcomes for result in sweep(jobs)] == here
