"""The policy that reads its past: what moves it, what does not, and what it saves."""

import math
import random

import pytest
from limits import limited
from snapshots import restored, saved

from h2t2.core import policies
from h2t2.core.adaptive import Adaptive, logistic
from h2t2.core.forecaster import BINS, KINDS
from h2t2.core.numbers import ONE
from h2t2.core.ordered import Ordered
from h2t2.core.past import (
    FADES,
    FADING,
    FIRST,
    FORGOTTEN,
    INPUTS,
    LOGIT,
    LONGEST,
    PAST,
    RATES,
    STEPS,
    TRACE,
    answer,
    expected,
    follow_up,
)
from h2t2.core.policy import OFFLOAD
from h2t2.node.restoring import Mismatch


def chain(rounds, lasts, seed):
    """Scores in 256ths that say nothing, and labels that stay as they are for `lasts` rounds on average."""
    rng, label = random.Random(seed), 0
    for _ in range(rounds):
        if rng.random() < 1 / lasts:
            label = 1 - label
        yield rng.randrange(256), label


@pytest.mark.parametrize("prior", [6144, 11264, 30000])
def test_heads_begin_as_the_prior_of_the_bin_says(prior):
    """The second is the prior that bin 5 has where none is given."""
    heads = Ordered().forecaster.heads
    heads.see_score(5, prior)
    assert heads.x[LOGIT] / 16384 == pytest.approx(math.log(prior / (ONE - prior)), abs=0.02)


def play(policy, stream):
    """Mean cost a sample in Q15, and the share of offloads."""
    cost = offloads = rounds = 0
    for level, label in stream:
        action = policy.decide(policy.reading(None, level))
        if action == OFFLOAD:
            policy.learn(policy.ticket, label)
            cost, offloads = cost + policy.beta, offloads + 1
        else:
            cost += policy.mistake_cost(action, label)
        rounds += 1
    return cost / rounds, offloads / rounds


@pytest.mark.parametrize(("lasts", "share"), [(20, 0.75), (100, 0.6), (400, 0.6)])
def test_events_that_last_cost_less(lasts, share):
    costs = [play(kind(beta=6554), chain(5000, lasts, 1))[0] for kind in (Adaptive, Ordered)]
    assert costs[1] < share * costs[0]


def value(trace, learned, share=ONE):
    """What follow_up() returns for a head that has learned a weight for its first trace, in Q20, and a trace in Q5."""
    weights, weight, x = [0] * (len(RATES) * INPUTS), [0] * (FIRST + KINDS), [0] * INPUTS
    weights[2 * INPUTS + TRACE], weight[FIRST - 1], x[TRACE] = learned, share, trace
    logit = learned // 1048576 * trace * 512
    g = logistic(logit + (logit * 7253 >> 14), 0)
    return follow_up(weights, weight, x, [0, 0, logit], [0, 0, g], [9830, 32768, 32768, 0, 0, 0, 0])


def test_an_answer_is_worth_more_the_more_the_last_one_has_faded():
    values = [value(trace, 2 << 20) for trace in (64, 48, 32, 16, 0)]
    assert values == sorted(values) and 0 < values[0] < values[-1] <= 2 * 9830
    assert value(0, 0) == 0  # answers tell nothing
    assert value(0, 2 << 20, share=0) == 0  # the bins forecast best
    assert value(0, 2 << 20, share=ONE >> 1) == pytest.approx(values[-1] / 2, abs=2)


def test_what_a_sample_costs_at_best():
    """The remote model says 1 for a tenth of what is no event, and 0 for a fifth of the events."""
    for fee, wrong, costs in ((8192, (0, 0), [0, 4096, 8192, 0]), (2048, (1638, 6554), [0, 4096, 6144, 0])):
        effective = [fee, 16384, 32768, 0, 0, *wrong]
        assert [expected(p, effective) for p in (0, 4096, 16384, 32768)] == costs


def test_without_order_it_costs_no_more():
    rng = random.Random(5)
    stream = [(level, rng.random() < (level + 0.5) / 256) for level in (rng.randrange(256) for _ in range(4000))]
    costs = [play(kind(beta=9830), stream)[0] for kind in (Adaptive, Ordered)]
    assert costs[1] < 1.03 * costs[0]


def test_scores_in_one_bin_are_not_alike():
    """Scores of 128 to 135 are no events, those of 136 to 143 are: the past tells them apart, bins of 16 do not."""
    rng = random.Random(6)
    stream = [(level, level > 135) for level in (rng.randrange(128, 144) for _ in range(4000))]
    costs = [play(kind(beta=9830), stream)[0] for kind in (Adaptive, Ordered)]
    assert costs[1] < 0.6 * costs[0]


def test_a_bin_is_forecast_by_its_middle_where_no_sample_is_in_it():
    """The gate asks for all bins."""
    policy, _ = twins()
    past = policy.forecaster.heads
    policy.decide(135)
    logits = []
    for k in (7, 8, 9):
        policy.forecaster.bin = -1
        policy.estimate(k)
        logits.append(past.x[LOGIT])
    assert logits[0] < 0 < logits[1] < logits[2]


def test_the_heads_begin_as_the_prior_says():
    """A table that says the opposite of the scores."""
    policy = Ordered(prior=[ONE * (15 - k) // 15 for k in range(16)])
    past = policy.forecaster.heads
    policy.decide(250)
    assert max(past.g) < ONE // 50 and policy.likely(250) == 0
    policy.decide(5)
    assert min(past.g) > ONE - ONE // 50 and policy.likely(5) == 1
    usual = Ordered(prior=[(2 * k + 1) << 10 for k in range(16)])
    for one in (usual, Ordered()):
        one.decide(77)
    assert usual.forecaster.heads.x[LOGIT] == one.forecaster.heads.x[LOGIT]


@pytest.mark.parametrize("level", [-1, 256])
def test_a_score_out_of_range_changes_nothing(level):
    policy, _ = twins()
    before = seen(policy), learned(policy)
    with pytest.raises(ValueError, match=f"score {level} is not in 0..255"):
        policy.decide(level)
    assert (seen(policy), learned(policy)) == before


def twins():
    pair = Ordered(beta=3000), Ordered(beta=3000)
    for policy in pair:
        play(policy, chain(500, 30, 2))
    return pair


def seen(policy):
    past = policy.forecaster.heads
    return list(past.traces), list(past.means), past.since


def learned(policy):
    return list(policy.forecaster.heads.weights), list(policy.forecaster.loss), list(policy.forecaster.labels)


def ask(policy, level=150):
    while policy.decide(level) != OFFLOAD:
        pass
    return policy.ticket


def test_a_lost_label_leaves_no_trace():
    one, other = twins()
    ask(one)
    one.lose(one.ticket)
    ask(other)
    one.decide(50)
    other.decide(50)
    assert seen(one) == seen(other)


def test_a_late_answer_has_faded_as_much_as_one_in_time():
    fading = [-math.log2(1 - 2**-shift) * 2**14 for shift in FADES]
    assert all(abs(a - b) < 1 for a, b in zip(FADING, fading, strict=True))
    for age in (0, 1, 5, 50):
        traces = [0] * len(STEPS)
        answer(traces, 1, age)
        wanted = [2**15 * 2**-step * (1 - 2**-fade) ** age for step, fade in zip(STEPS, FADES, strict=True)]
        assert traces == pytest.approx(wanted, abs=2)
        opposite = [0] * len(STEPS)
        answer(opposite, 0, age)
        assert opposite == [-x for x in traces]


def test_a_late_label_teaches_the_past_of_its_sample():
    """Its inputs are those that its sample had, not those of the sample that came meanwhile."""
    one, _ = twins()
    ticket = ask(one)
    asked = list(one.forecaster.heads.current)
    for level in (40, 250, 251):
        one.decide(level)
    assert list(one.forecaster.heads.current) != asked
    weights, traces = list(one.forecaster.heads.weights), list(one.forecaster.heads.traces)
    one.learn(ticket, 1)
    past = one.forecaster.heads
    assert [*past.x[:PAST], past.level - 128] == asked and past.since == 3
    assert list(past.weights) != weights and list(past.traces) != traces


def test_an_older_label_does_not_replace_a_newer_one():
    policy, _ = twins()
    late = ask(policy)
    policy.learn(ask(policy), 0)
    before, lessons = seen(policy), learned(policy)
    policy.learn(late, 1)
    assert seen(policy) == before
    assert all(a != b for a, b in zip(learned(policy), lessons))  # the heads and the forecasts still learn


def test_its_own_decisions_are_no_answers():
    """Years without an answer leave no trace of one."""
    policy, _ = twins()
    for n in range(300):
        policy.forecaster.heads.begin(120 + 15 * (n % 2))
    past = policy.forecaster.heads
    assert past.since == LONGEST or past.since >= 300
    assert all(abs(x) < 32 for x in past.traces) and all(abs(x - 16384) < 1024 for x in past.means)
    assert list(past.current[TRACE : TRACE + len(STEPS)]) == [0, 0, 0]


def test_a_sample_that_nobody_may_ask_about_is_forecast_with_its_own_score():
    policy, _ = twins()
    policy.decide(40)
    low, high = (policy.likely(level) for level in (3, 250))
    policy.forecaster.estimate(0)
    one = policy.forecaster.belief[0]
    policy.forecaster.estimate(15)
    assert (low, high) == (0, 1) or one != policy.forecaster.belief[0]
    assert policy.forecaster.heads.x[LOGIT] > 0


def test_a_snapshot_carries_the_past():
    policy, _ = twins()
    again = Ordered(beta=3000)
    costs = policy.cost_list()
    restored(again, saved(policy, costs), costs)
    assert seen(again) == seen(policy) and again.forecaster.heads.clock
    assert [play(p, chain(300, 30, 3)) for p in (policy, again)][0] == play(twins()[0], chain(300, 30, 3))
    assert saved(again, costs) == saved(policy, costs)


def test_it_continues_from_a_snapshot_of_a_policy_without_a_past():
    """What a node has learned before it reads its past: counts, pairs, draws, and costs that a command has set."""
    former, policy = Adaptive(beta=3000), Ordered(beta=3000)
    play(former, chain(3000, 30, 2))
    former.set_beta(4000)
    costs = Adaptive(beta=3000).cost_list()
    restored(policy, saved(former, costs), costs)
    assert policy.beta == 4000 and policy.lessons == former.lessons > 100
    assert list(policy.forecaster.labels[: len(former.forecaster.labels)]) == list(former.forecaster.labels)
    assert policy.forecaster.head_share() < ONE >> 1 and seen(policy) == seen(Ordered())
    stream = list(chain(3000, 30, 3))
    assert play(policy, stream)[0] < 0.8 * play(former, stream)[0]


def test_adaptive_continues_from_its_snapshot():
    """`ordered = false` after a time with a past: what the bins have learned remains, bit for bit."""
    former, _ = twins()
    former.set_beta(4000)
    policy, again = Adaptive(beta=3000), Ordered(beta=3000)
    restored(policy, saved(former, Adaptive(beta=3000).cost_list()), policy.cost_list())
    assert policy.beta == 4000 and policy.lessons == former.lessons > 100
    assert policy.forecaster.loss.tolist() == former.forecaster.loss[:BINS].tolist()
    restored(again, saved(policy, again.cost_list()), again.cost_list())
    for row, own in zip(former.array_rows(), policy.array_rows()):
        assert list(row[0])[own[1] : own[2]] == list(own[0])[own[1] : own[2]]
    assert (again.rng.x, again.lead, again.ticket) == (former.rng.x, former.lead, former.ticket)


def test_it_does_not_continue_from_a_snapshot_of_other_options():
    for other in (Adaptive(3), limited(miss_rate=900)):
        policy = Ordered()
        before = list(policy.state())
        with pytest.raises(Mismatch):
            restored(policy, saved(other, other.cost_list()), policy.cost_list())
        assert list(policy.state()) == before


def test_an_unknown_time_forgets_the_past_and_keeps_what_was_learned():
    policy, _ = twins()
    lessons = learned(policy)
    policy.pass_time(-1)
    assert seen(policy) == seen(Ordered()) and learned(policy) == lessons


def test_a_gap_counts_as_the_rounds_that_it_would_have_held():
    policy, _ = twins()
    for _ in range(100):
        policy.pass_time(10000)
    policy.learn(ask(policy), 1)
    past = policy.forecaster.heads
    traces, means, since = seen(policy)
    clock = past.clock
    policy.pass_time(80000)
    assert past.usual > 10000  # it counts four times the usual time
    assert past.traces.tolist() == pytest.approx(
        [x * (1 - 2**-fade) ** 7 for x, fade in zip(traces, FADES, strict=True)], abs=8
    )
    assert list(past.means) == means and past.since == since + 7 and past.clock == clock + 7


@pytest.mark.parametrize(("usual", "gap"), [(10000, 39000), (0, 900), (1, 999), (200, 799)])
def test_a_time_that_is_no_gap_changes_nothing(usual, gap):
    """Neither the jitter of a loop nor a sample that is somewhat late: a device decides as its replay does."""
    one, other = twins()
    one.pass_time(usual)
    one.pass_time(gap)
    assert seen(one) == seen(other)


def test_a_sample_after_a_long_gap_begins_without_a_past():
    policy, _ = twins()
    policy.pass_time(1000)
    policy.learn(ask(policy), 1)
    policy.pass_time(FORGOTTEN * 1100)
    assert seen(policy) == seen(Ordered())


def test_a_late_label_is_as_old_as_the_time_says():
    policy, _ = twins()
    policy.pass_time(1000)
    ticket = ask(policy)
    policy.pass_time(20000)
    policy.learn(ticket, 1)
    assert policy.forecaster.heads.since == 19


@pytest.mark.parametrize("other", ["features", "costs"])
def test_what_has_no_past_says_so(other):
    with pytest.raises(ValueError, match=f"ordered: not with {other}"):
        policies.kind("adaptive", ["ordered", other])


def test_h2t2_has_no_past():
    assert policies.kind("adaptive", ["ordered"]) is Ordered and policies.kind("adaptive") is Adaptive
    with pytest.raises(ValueError, match="policy h2t2 has no past"):
        policies.kind("h2t2", ["ordered"])
