"""H2T2: the decisions against the float reference, tickets, arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import paper

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.h2t2 import H2T2, OFFLOAD
from h2t2_tools.checks import validate
from h2t2_tools.common.corollary import optimal_rates


@pytest.mark.parametrize("mode", validate.MODES)
@pytest.mark.parametrize("bits", [2, 4, 6])
def test_no_decision_differs_from_the_dense_reference(bits, mode):
    row = validate.compare(bits, 2000, seed=3, mode=mode)
    assert row["worst_error"] <= 2e-4
    assert row["differ"] == 0 or row["margin"] <= 1e-4


def offload(policy, k=7):
    """Decide until a sample is offloaded; its ticket."""
    while policy.decide(k) != OFFLOAD:
        pass
    return policy.ticket


def losses(policy):
    """Every loss of the tree, exact: units of 2^-28 octave."""
    experts = policy.experts
    return [hi * 2**14 + fine - 8192 for hi, fine in zip(experts.losses, experts.fine)]


def test_a_ticket_teaches_once():
    policy = paper(feedback="all")
    ticket = offload(policy)
    assert policy.learn(ticket, 1)
    after = losses(policy)
    assert not policy.learn(ticket, 1)
    assert losses(policy) == after
    assert (policy.lessons, policy.tickets.refused) == (1, 1)


@pytest.mark.parametrize("ticket", [0, -3, 99, 2**28])
def test_an_unknown_ticket_is_refused_and_counted(ticket):
    policy = paper()
    assert not policy.learn(ticket, 1)
    assert policy.tickets.refused == 1


@pytest.mark.parametrize("label", [-1, 2])
@pytest.mark.parametrize("kind", [H2T2, Adaptive])
def test_a_label_that_is_no_class_is_refused_and_its_ticket_stays(kind, label):
    policy = kind()
    ticket = offload(policy)
    with pytest.raises(ValueError, match=f"label {label} is not 0 or 1"):
        policy.learn(ticket, label)
    assert policy.lessons == 0 and policy.learn(ticket, 1)


def test_the_oldest_ticket_expires_when_the_window_is_full():
    policy = paper(window=2, epsilon=32768)
    tickets = [offload(policy) for _ in range(3)]
    assert policy.tickets.lost == 1
    assert [policy.learn(ticket, 0) for ticket in tickets] == [False, True, True]


def test_a_lost_label_has_charged_beta_and_teaches_nothing_more():
    policy = paper(feedback="all", epsilon=32768)
    ticket = offload(policy)
    before = losses(policy)
    assert policy.lose(ticket) in (0, 1)
    assert losses(policy) == before and any(before)
    assert policy.lose(ticket) == -1
    assert not policy.learn(ticket, 1)


@given(st.permutations(range(6)), st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 32768)), min_size=6, max_size=6))
def test_the_order_of_late_labels_does_not_matter(order, answers):
    outcomes = []
    for arrival in (range(6), order):
        policy = paper(feedback="all", epsilon=32768, seed=9)
        tickets = [offload(policy, 2 * n) for n in range(6)]
        for n in arrival:
            assert policy.learn(tickets[n], *answers[n])
        outcomes.append(losses(policy))
    assert outcomes[0] == outcomes[1]


@given(st.integers(0, 32768), st.integers(0, 32768), st.integers(0, 14))
def test_a_cost_known_only_at_learn_ends_in_the_same_losses(beta, late, k):
    known = paper(beta=late, epsilon=32768)
    learned = paper(beta=beta, epsilon=32768)
    known.learn(offload(known, k), 1)
    learned.learn(offload(learned, k), 1, late)
    assert all(abs(one - other) <= 4 for one, other in zip(losses(known), losses(learned)))


def test_every_round_charges_beta_to_the_offloading_experts():
    policy = paper(bits=1, epsilon=1, beta=32768)
    policy.decide(0)
    assert losses(policy)[1] / 2**28 == pytest.approx(-1.442695, abs=1e-5)


def test_the_likelier_local_class_is_the_fallback():
    policy = paper(bits=4, epsilon=32768, feedback="all")
    for _ in range(200):
        policy.learn(offload(policy, 3), 0)
        policy.learn(offload(policy, 12), 1)
    ticket = offload(policy, 3)
    assert policy.local == 0 and policy.lose(ticket) == 0
    ticket = offload(policy, 12)
    assert policy.local == 1 and policy.lose(ticket) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"bits": 0},
        {"bits": 13},
        {"beta": -1},
        {"delta_fn": 32769},
        {"eta": 0},
        {"epsilon": 0},
        {"feedback": "some"},
        {"exploration": "never"},
        {"window": 0},
        {"half_life": -1},
        {"rdl_fp": 20000, "rdl_fn": 15000},
    ],
)
def test_an_argument_out_of_range_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        paper(**wrong)


def test_bins_labels_and_costs_out_of_range_are_refused():
    policy = paper(epsilon=32768)
    for k in (-1, 16):
        with pytest.raises(ValueError, match="bin"):
            policy.decide(k)
    ticket = offload(policy)
    with pytest.raises(ValueError, match="label"):
        policy.learn(ticket, 2)
    with pytest.raises(ValueError, match="beta"):
        policy.learn(ticket, 1, 40000)
    assert policy.learn(ticket, 1)


def test_corollary_1():
    """epsilon* = (ln 136 / 2 beta^2 T)^(1/3), eta* = sqrt(2 epsilon* ln 136 / T) at b = 4, T = 10^4, beta = 1."""
    epsilon, eta = optimal_rates(4, 10_000, 1.0)
    assert epsilon == pytest.approx(0.062623, abs=1e-5)
    assert eta == pytest.approx(0.0078444, abs=1e-6)
    units.policy(epsilon=epsilon, eta=eta)


def test_the_rounds_of_the_anytime_exploration_stop_at_their_most():
    """2^24 - 1 rounds, then t, its root and epsilon stay as they are; with a half-life at twice that."""
    policy = H2T2()
    policy.t, policy.root = 16777214, 1023
    for _ in range(3):
        policy.decide(3)
    assert (policy.t, policy.root, policy.epsilon) == (16777215, 1023, 64)
    forgetting = H2T2(half_life=5)
    for _ in range(40):
        forgetting.decide(3)
    assert forgetting.t == 10 and forgetting.root == 8 and forgetting.epsilon == 65536 // 8


@pytest.mark.parametrize(
    "name, value, hint",
    [
        ("beta", 0.2, "h2t2.units.q15(0.2)"),
        ("delta_fn", 1.0, "h2t2.units.q15(1.0)"),
        ("eta", 1.5, "h2t2.units.q26(1.5)"),
        ("epsilon", 0.1, "h2t2.units.q15(0.1)"),
    ],
)
def test_a_float_is_told_how_it_is_given(name, value, hint):
    with pytest.raises(ValueError, match=f"{name} {value} is a float: give Q") as caught:
        H2T2(**{name: value})
    assert hint in str(caught.value)
    assert getattr(units, hint.split(".")[2].split("(")[0])(value) > 0  # what the hint says is there


def test_costs_in_peoples_numbers():
    policy = H2T2(**units.policy(bits=4, beta=0.2, delta_fp=0.7, delta_fn=1, eta=1, half_life=9))
    assert (policy.beta, policy.delta_fp, policy.delta_fn, policy.half_life) == (6554, 22938, 32768, 9)
    assert units.defaults_of()["beta"] == 0.3 and units.defaults_of()["feedback"] == "all"
    with pytest.raises(ValueError, match="beta 1.5 is not between 0 and 1"):
        units.policy(beta=1.5)


@pytest.mark.parametrize("score, k", [(0.0, 0), (0.0624, 0), (0.37, 5), (0.999, 15), (1, 15)])
def test_a_score_as_people_write_it_is_the_bin_it_lies_in(score, k):
    policies = [H2T2(), H2T2()]
    assert [policies[0].decide_score(score) for _ in range(30)] == [policies[1].decide(k) for _ in range(30)]


@pytest.mark.parametrize("score", [-0.01, 1.01, float("nan"), 7])
def test_a_score_outside_0_to_1_is_refused(score):
    with pytest.raises(ValueError, match="is not in 0..1"):
        H2T2().decide_score(score)
