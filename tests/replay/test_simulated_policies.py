"""Every simulated policy acts, repeats, and learning pays."""

import pytest
from streams import COSTS, made_up

from h2t2_tools.replay.simulation import policies
from h2t2_tools.replay.simulation.policy_names import MULTICLASS, NAMES
from h2t2_tools.replay.simulation.stream import Costs, draw, outcome
from h2t2_tools.replay.simulation.sweep import grid, sweep


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_acts_and_repeats(name):
    trace = made_up()
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
    assert outcome(policies.make(name, 3, classes=5).act(stream, Costs(0.2, matrix), 7), stream, Costs(0.2, matrix)).cost <= 0.5


def test_learning_pays():
    """On a stream with something to learn the learner is near the offline optimum and better than either naive policy."""
    jobs = grid(made_up(4000), [policies.make(name, 4) for name in NAMES], [0.3], COSTS.matrix, samples=10000, runs=3)
    cost = {result.job.policy.name: result.mean("cost") for result in sweep(jobs)}
    learned = cost["H2T2 all + anytime"]
    assert cost["offline pair θ*"] < learned < cost["offline pair θ*"] + 0.02
    assert learned < min(cost["no offload"], cost["full offload"])
