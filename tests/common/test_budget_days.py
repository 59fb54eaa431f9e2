"""A budget in amounts: no device spends more than its amount in a calendar day, whatever its day looks like."""

import random

import numpy as np
import pytest

from h2t2.core.adaptive import Adaptive
from h2t2.core.budget import Budget
from h2t2.node.spent import Spent
from h2t2.node.store import Store
from h2t2.units import policy as arguments_of
from h2t2_tools.common.budget_text import budget_arguments
from h2t2_tools.common.jit import njit_nogil
from h2t2_tools.replay.simulation.numba_policies import freeze

DAY = 86400000
HOUR = 3600000
DAYS = 3
KINDS = ("all day", "seven hours", "bursts", "restarts", "clock set late", "5 of 100")
FILES = (True, False)


class Memory(Store):
    """A store in memory that outlives the starts of a device. A power cut may end any write."""

    def __init__(self, rng):
        self.content, self.rng = None, rng

    def load(self):
        return self.content

    def writing(self, size, chunks):
        yield
        if self.rng.random() < 0.9:
            self.content = b"".join(chunks)
        else:
            raise OSError("the power failed")


def moments(kind, rng, per_day):
    """Return when the samples of a device come, and after which of them it starts anew."""
    hours = {"seven hours": (8.4, 15.4), "bursts": (0, 24)}.get(kind, (0, 24))
    times = []
    for day in range(DAYS):
        if kind == "bursts":
            starts = [rng.uniform(0, 24) for _ in range(4)]
            within = [rng.choice(starts) * HOUR + rng.randrange(60000) for _ in range(per_day)]
        else:
            within = [rng.uniform(*hours) * HOUR for _ in range(per_day)]
        times += [int(day * DAY + min(at, DAY - 1)) for at in sorted(within)]
    share = {"restarts": rng.choice((0.02, 0.1, 0.5)), "clock set late": 0.01}.get(kind, 0.001)
    return times, {n for n in range(len(times)) if rng.random() < share}


def played(kind, seed, has_file):
    """Return what a device that asks whenever it may has asked on each calendar day, and how much it may."""
    rng = random.Random(f"{kind} {seed} {has_file}")
    amount, per_day = (5, 100) if kind == "5 of 100" else (rng.choice((20, 200)), 150)
    memory = Memory(rng) if has_file else None
    times, restarts = moments(kind, rng, per_day)
    asked = [0] * DAYS
    budget, clock_from, last = None, 0, 0
    for n, at in enumerate(times):
        if budget is None or n in restarts:
            budget = Budget(**budget_arguments(f"{amount}/day", 100, 2000))
            spent = Spent(budget, memory) if memory else None
            assert budget.level == 0 or budget.used  # never full at an unknown start
            last = at
            clock_from = at + (rng.choice((0, 0.1, 3, 11)) * HOUR if kind == "clock set late" else 0)
        budget.earn(at - last, at // DAY if at >= clock_from else -1)
        last = at
        if spent and budget.is_due():
            try:
                list(spent.saving())
            except OSError:
                budget = None
                continue
        while budget.affords(100) and rng.random() < 0.9:
            budget.spend(100)
            asked[at // DAY] += 1
    return asked, amount


@pytest.mark.parametrize("kind", KINDS)
def test_no_device_asks_more_than_its_amount_in_a_calendar_day(kind):
    """200 devices: 17 with a file and 17 without one of each kind."""
    shares = {has_file: [] for has_file in FILES}
    for seed in range(17):
        for has_file in FILES:
            asked, amount = played(kind, seed, has_file)
            assert max(asked) <= amount, (seed, has_file, asked)
            shares[has_file].append(asked[-1] / amount)
    with_file, without = (sum(shares[has_file]) / 17 for has_file in FILES)
    print(f"{kind}: asked of the amount on the last day: {with_file:.2f} with a file, {without:.2f} without")
    assert with_file > 0.5 and without > 0.15


WAYS = "full", "even", "shipped"
SHARP = 1 / (1 + np.exp(-14 * ((np.arange(16) + 0.5) / 16 - 0.5)))  # P(event) in each bin
HARD = np.full(16, 0.45)  # no score tells anything; each answer saves as much
ALL_DAY = (0, 24)


@njit_nogil
def lived(policy, budget, samples, beta, costs, outcome):
    """Play samples (bin, label, ms) with a budget. outcome: becomes the cost and the samples that bypassed the policy."""
    last = 0
    for k, label, at in samples:
        budget.earn(at - last, at // 86400000)
        last = at
        if budget.is_due():
            budget.mark = budget.next_mark()
        if budget.affords(0):
            policy.set_charge(min(32768, beta + budget.price()))
            action = policy.decide(k)
        else:
            action = policy.likely(k)
            outcome[1] += 1
        if action < 0:
            outcome[0] += beta / 32768
            budget.spend(0)
            policy.learn(policy.ticket, label, -1)
        elif action != label:
            outcome[0] += costs[label]


class Even(Budget):
    """The budget as it is, without income by the samples of the day before."""

    def begin_period(self, turn):
        Budget.begin_period(self, turn)
        self.before = 0


def device(way, amount):
    """Return the shipped budget, the one with even income, or a bucket that starts full and knows no calendar days."""
    entries = budget_arguments(f"{amount}/day", 100, 2000)
    if way == "full":
        budget = Budget(**{**entries, "capacity": amount // 4, "limit": 0})
        budget.level = budget.capacity
    else:
        budget = (Even if way == "even" else Budget)(**entries)
        budget.remembers = True  # with a file that is always there
    return budget


def compared(name, *, events, per_day, amount, hours, beta, runs):
    """Play so many devices for six days in each way. Return {way: (cost, bypassed)}, means over their samples."""
    outcomes = {way: [] for way in WAYS}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        at = np.sort(rng.uniform(*hours, (6, per_day)), 1) * HOUR + np.arange(6)[:, None] * DAY
        k = rng.integers(0, 16, at.size)
        label = rng.random(at.size) < events[k]
        samples = np.stack([k, label, at.ravel().astype(np.int64)], 1)
        for way in WAYS:
            outcome = np.zeros(2)
            policy = Adaptive(**arguments_of(beta=beta, delta_fp=0.7, delta_fn=1.0, bits=4), seed=seed)
            lived(freeze(policy), freeze(device(way, amount)), samples, policy.beta, np.array([0.7, 1.0]), outcome)
            outcomes[way].append(outcome / at.size)
    means = {way: np.mean(outcomes[way], 0) for way in WAYS}
    for way in WAYS:
        more = np.subtract(outcomes[way], outcomes["even"])[:, 0]
        error = more.std(ddof=1) / runs**0.5
        cost, bypassed = means[way]
        print(f"{name}, {way}: cost {cost:.4f} ({more.mean():+.4f} ± {error:.4f} over even), bypassed {bypassed:.1%}")
    return means


@pytest.mark.evidence
@pytest.mark.parametrize(
    "name, per_day, amount, hours",
    [("all day", 1000, 100, ALL_DAY), ("seven hours", 1000, 100, (8.4, 15.4)), ("5 of 100", 100, 5, ALL_DAY)],
)
def test_fewer_samples_bypass_the_policy_than_with_a_bucket_that_starts_full(name, per_day, amount, hours):
    means = compared(name, events=SHARP, per_day=per_day, amount=amount, hours=hours, beta=0.2, runs=20)
    (cost, bypassed), (cost_full, bypassed_full) = means["shipped"], means["full"]
    assert cost < cost_full + (0.003 if hours == ALL_DAY else 0) and bypassed < max(0.05, bypassed_full / 2)


@pytest.mark.evidence
@pytest.mark.parametrize("events", [SHARP, HARD], ids=["sharp", "hard"])
@pytest.mark.parametrize("amount, beta", [(100, 0.2), (200, 0.2), (200, 0.05)])
def test_income_by_samples_costs_a_device_that_works_all_day_at_most_a_thousandth(events, amount, beta):
    name = f"{'hard' if events is HARD else 'sharp'}, {amount} a day, beta {beta}"
    means = compared(name, events=events, per_day=1000, amount=amount, hours=ALL_DAY, beta=beta, runs=400)
    assert means["shipped"][0] < means["even"][0] + 0.001
