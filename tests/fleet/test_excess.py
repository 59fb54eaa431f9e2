"""Which device wastes money, and why: what it costs above the best simple choice, and the alarms that say so."""

import json
import random

import pytest
from states import Clock, say, state

from h2t2.core.numbers import ONE
from h2t2.core.ordered import OFFLOAD, Ordered
from h2t2_tools.fleet.dashboard import fleet_rows
from h2t2_tools.fleet.monitoring import fleet_report
from h2t2_tools.fleet.monitoring.excess import of_states
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.monitoring.unit import Unit, amount, rounded
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet

BETA = 0.3


class Simulated:
    """A device whose local decisions cost so much on average in each of four bins, and which asks with these probabilities."""

    def __init__(self, costs, asks, answered=1.0, seed=1):
        self.fleet, self.rng = Fleet(Clock()), random.Random(seed)
        self.costs, self.asks, self.answer_share = costs, asks, answered
        self.counts = {name: [0] * 4 for name in ("scores", "answered", "local_cost")}
        self.offloads = 0
        self.spent = self.truth = 0.0  # what it really paid, and what the best simple choice would have cost

    def lives(self, samples, **entries):
        for n in range(samples):
            k = self.rng.randrange(4)
            wrong = self.rng.random() < self.costs[k]
            self.counts["scores"][k] += 1
            if self.rng.random() < self.asks[k]:
                self.offloads += 1
                if self.rng.random() < self.answer_share:
                    self.counts["answered"][k] += 1
                    self.counts["local_cost"][k] += 1000 * wrong
            if n % 100 == 99:
                self.fleet._clock.time += 10
                self.publish(**entries)
        return self.describe()

    def publish(self, **entries):
        counts = {name: list(values) for name, values in self.counts.items()}
        decided = sum(counts["scores"])
        beta = round(BETA * ONE)
        told = {"samples": decided, "offloads": self.offloads, "replies": sum(counts["answered"]), "paid": self.offloads * beta}
        say(self.fleet, **{**told, **counts, "events": counts["answered"], "beta": beta, **entries})

    def describe(self):
        return fleet_report.of_device(self.fleet.devices["kitchen"], self.fleet._clock.time, self.fleet.listening)


def kinds(device):
    return {alarm["kind"]: alarm["text"] for alarm in device["alarms"]}


def test_a_device_that_asks_right_saves():
    device = Simulated([0, 0.6, 0.6, 0], [0.05, 1, 1, 0.05]).lives(3000)
    excess = device["excess"]
    assert excess["a_sample"] == pytest.approx(-0.13, abs=4 * excess["error"] + 0.01) and excess["learned"]
    assert "dearer" not in kinds(device)


@pytest.mark.parametrize(
    "costs, asks, answered, best, excess, reason",
    [
        ([0.1] * 4, [1] * 4, 1, "never", 0.2, "it asks about 100% of its samples; an answer costs 0.30 and saves 0.1"),
        ([0.1] * 4, [0.9] * 4, 0.3, "never", 0.243, "of its questions cost 0.30 each and get no answer in time"),
        ([0.8] * 4, [0.2] * 4, 1, "always", 0.4, "of its samples alone, which costs 0."),
    ],
)
def test_a_device_that_wastes_says_why(costs, asks, answered, best, excess, reason):
    device = Simulated(costs, asks, answered).lives(5000)
    assert device["excess"]["best"] == best
    assert device["excess"]["a_sample"] == pytest.approx(excess, abs=4 * device["excess"]["error"])
    assert reason in kinds(device)["dearer"] and f"more than with asking {best}" in kinds(device)["dearer"]
    assert "\n" not in kinds(device)["dearer"]
    assert ("dearer" in kinds(Simulated(costs, asks, answered).lives(5000, link="silent"))) == (answered == 1)  # one outage


def test_no_alarm_while_it_learns_or_where_its_user_limits_misses():
    asks = [0.1] * 4, [1] * 4
    assert "dearer" not in kinds(Simulated(*asks).lives(200))
    assert "dearer" in kinds(Simulated(*asks).lives(2000))
    assert "dearer" not in kinds(Simulated(*asks).lives(2000, miss_rate=600))


def test_no_alarm_where_the_answers_of_a_moment_ago_make_the_decisions_alone_cheap():
    """States that last 100 samples, and scores that say nothing: it costs less than half of asking always, and of never."""
    rng, policy, label = random.Random(1), Ordered(beta=round(BETA * ONE) // 3), 0
    device, cost = Simulated([0] * 4, [0] * 4), 0.0
    for n in range(4000):
        label = 1 - label if rng.random() < 0.01 else label
        level = rng.randrange(256)
        action, k = policy.decide(level), level >> 6
        device.counts["scores"][k] += 1
        if action == OFFLOAD:
            device.offloads += 1
            device.counts["answered"][k] += 1
            device.counts["local_cost"][k] += policy.mistake_cost(policy.local, label) * 1000 >> 15
            policy.learn(policy.ticket, label)
        cost += policy.beta / ONE if action == OFFLOAD else policy.mistake_cost(action, label) / ONE
        if n % 100 == 99:
            device.fleet._clock.time += 10
            device.publish(**policy.report(), beta=policy.beta, paid=device.offloads * policy.beta)
    told = device.describe()
    assert cost / 4000 < 0.05 and told["excess"]["best"] == "never" and told["excess"]["a_sample"] > 0  # as counters say
    assert "dearer" not in kinds(told)


def test_the_error_is_that_of_many_runs():
    """Two of a hundred honest runs leave four standard errors at most; the alarm needs as many."""
    outside = 0
    for seed in range(40):
        excess = Simulated([0.02, 0.3, 0.5, 0.1], [0.3, 0.6, 0.6, 0.3], seed=seed).lives(2000)["excess"]
        truth = 0.45 * BETA - 0.25 * (0.3 * 0.02 + 0.6 * 0.3 + 0.6 * 0.5 + 0.3 * 0.1)  # asking never is best
        outside += abs(excess["a_sample"] - truth) > 4 * excess["error"]
    assert outside <= 1


def test_what_is_recent_forgets_old_waste():
    device = Simulated([0, 0.6, 0.6, 0], [1] * 4)
    assert device.lives(3000)["excess"]["a_sample"] == pytest.approx(0, abs=0.03)
    device.asks = [0.05, 1, 1, 0.05]
    assert device.lives(3000)["excess"]["a_sample"] < -0.1


def test_a_spent_budget_explains_its_fallbacks():
    device = Simulated([0.1] * 4, [0.5] * 4)
    device.lives(100)
    described = device.lives(100, unaffordable=60)
    assert set(kinds(described)) == {"budget spent"}
    assert "its budget is empty, so it decides 60% of its samples alone" in kinds(described)["budget spent"]


def test_rows_hold_numbers_and_sentences():
    device = Simulated([0.1] * 4, [1] * 4).lives(2000)
    row = fleet_rows.of_device(device, device["heard"], Unit.parse("0.05 EUR"))
    assert row["never"] == pytest.approx(0.05 * device["saved"]["never"]["amount"], rel=0.1) and row["never"] < 0
    assert 0 < row["never_interval"] < -row["never"]
    assert all(isinstance(row[name], float) for name in ("cost", "always", "never", "asked", "per_s"))
    assert fleet_rows.kinds_of(row) == {"dearer"} and json.dumps(row)
    assert fleet_rows.matches(row, "KITCH", set()) and fleet_rows.matches(row, "", {"dearer", "drift"})
    assert not fleet_rows.matches(row, "hall", set()) and not fleet_rows.matches(row, "", {"drift"})


def test_units_and_amounts():
    assert Unit.parse("0.05 EUR") == Unit(0.05, "EUR") and Unit.parse("3 litres a").name == "litres a"
    for text in ("EUR", "0 EUR", "-1 EUR", "1", "nan EUR", "1e400 EUR", "1 " + 17 * "x"):
        with pytest.raises(ValueError, match="want a number above 0 and a unit"):
            Unit.parse(text)
    assert rounded(12345.678, 234.5) == (12350, 230) and rounded(0.01234, 0.00056) == (0.01234, 0.00056)
    assert rounded(3.3, 0.0) == (3.3, 0.0) and amount(20736.2) == "20,736"


def test_where_both_simple_choices_cost_the_same_asking_never_is_the_better():
    told = state(scores=[64], answered=[64], events=[0], local_cost=[16000], beta=8192, offloads=64, replies=64, paid=64 * 8192)
    excess = of_states(None, parse_state(json.dumps(told).encode()))
    assert (excess.best, excess.best_cost, excess.a_sample) == ("never", 0.25, 0.0)
