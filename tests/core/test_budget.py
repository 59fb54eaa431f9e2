"""The token bucket: never overdrawn, its price, and what it is made from."""

import random

import pytest
from streams import offloads

from h2t2.core.budget import Budget
from h2t2.core.numbers import ONE


def budget_of(capacity, fixed, per_kb, amount=0, period=1, per_sample=0):
    return Budget(capacity, fixed=fixed, per_kb=per_kb, amount=amount, period=period, per_sample=per_sample)


@pytest.mark.parametrize(
    "given", [(50, 1, 0, 200, 86400000, 0), (64 * ONE, ONE, 0, 0, 1, 3277), (125000, 0, 1024, 500, 86400, 0)]
)
def test_it_is_never_overdrawn_in_200000_rounds(given):
    """Samples at any time, at once or after days, each wanting an offload: no more is spent than was there and came in."""
    rng = random.Random(4)
    budget = budget_of(*given)
    spent = came = 0
    for n in range(200000):
        ms = rng.choice((0, 1, 40, 3000, 100000 if n % 1000 else 10**8))
        came += ms
        budget.earn(ms, -1)
        size = rng.choice((40, 600, 9000))
        assert 0 <= budget.level <= budget.capacity
        if budget.affords(size):
            spent += budget.cost(size)
            budget.spend(size)
        assert spent * budget.period <= (budget.capacity + (n + 1) * budget.per_sample) * budget.period + came * budget.amount


def test_what_comes_in_is_spent():
    """200 a day, a sample every 10 s for 10 days, all of them wanted."""
    budget = Budget(50, fixed=1, per_kb=0, amount=200, period=86400000)
    assert 1999 <= offloads(budget, 86400, 10000, 100) <= 2000


def test_a_sample_earns_its_share_of_the_period_before():
    """300 tokens a period, 90 samples in the first whole one: 10 tokens for 3 samples of the next."""
    budget = Budget(1000, fixed=1, per_kb=0, amount=1, period=1000, limit=300, span=300000)
    budget.remembers = True
    for _ in range(5):
        budget.earn(1000, 7)
    assert (budget.level, budget.before) == (4, 0)  # a period that began before this start: by time
    for _ in range(90):
        budget.earn(1000, 8)
    budget.level = 0
    levels = []
    for _ in range(4):
        budget.earn(1000, 9)
        levels.append(budget.level)
    assert budget.before == 90 and levels == [3, 6, 10, 13]


def test_a_limit_that_is_spent_needs_no_mark():
    budget = Budget(10, fixed=1, per_kb=0, amount=1, limit=1)
    assert not budget.affords(40)
    budget.earn(1, 1)
    budget.earn(1, 1)
    assert budget.affords(40) and not budget.is_due()
    budget.spend(40)
    assert not budget.affords(40) and not budget.is_due()


def test_the_price_rises_as_the_bucket_empties():
    for capacity in (1, 7, 50, 16384, 64 * ONE, 2**29 - 1):
        budget, prices = Budget(capacity, fixed=1, per_kb=0), []
        for n in range(33):
            budget.level = capacity * (32 - n) // 32
            prices.append(budget.price())
        assert prices[0] == 0 and prices[-1] == 32766 and prices == sorted(prices)
    budget = Budget(64 * ONE, fixed=1, per_kb=0)
    budget.level = 32 * ONE
    assert budget.price() == ONE // 4


def test_bytes_are_counted_up():
    budget = Budget(1000, fixed=0, per_kb=1024, amount=1)
    assert [budget.cost(size) for size in (0, 1, 32, 33, 64, 1000)] == [0, 32, 32, 64, 64, 1024]
    assert not budget.affords(2**20 + 1) and not budget.affords(1000)


@pytest.mark.parametrize(
    "given, why",
    [
        ((0, 1, 0), "capacity"),
        ((2**29, 1, 0), "capacity"),
        ((10, 0, 0), "no room"),
        ((10, 11, 0), "no room"),
        ((10, 1, 0, 1024), "amount"),
        ((10, 1, 0, 1, 0), "period"),
        ((10, 1, 0, 1, 1, -1), "per_sample"),
    ],
)
def test_bad_arguments_are_named(given, why):
    with pytest.raises(ValueError, match=why):
        budget_of(*given)
