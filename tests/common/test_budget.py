"""A budget as people say it."""

import pytest
from streams import offloads

from h2t2.core.budget import Budget
from h2t2.link import wire
from h2t2_tools.common.budget_text import budget_arguments
from h2t2_tools.common.cost_table import CostTable
from h2t2_tools.common.errors import UserError

SIZE = wire.request_size([10, 10])
ENERGY = CostTable(millijoules=100, wake_mj=2, send_mj_per_kb=4, listen_mj_per_s=1)


@pytest.mark.parametrize(
    "text, a_day",
    [
        ("200/day", 200),
        ("1/day", 1),
        ("5 / hour", 120),
        ("2/min", 2880),
        ("50000/day", 50000),
        ("1kB/min", 144e4),
        ("3MB/day", 3e6),
    ],
)
def test_what_comes_in_on_a_day(text, a_day):
    """Never more than was said, and hardly less."""
    budget = Budget(**budget_arguments(text, SIZE, 2000))
    came = budget.amount * 86400000 / budget.period
    assert 0.998 * a_day <= came <= a_day
    budget.credit(86400000, 0)
    budget.credit(86400000, 0)
    assert budget.affords(128) and budget.limit * 86400000 // budget.span <= a_day


def test_a_share_is_of_the_samples():
    budget = Budget(**budget_arguments("10%", SIZE, 2000))
    assert 990 <= offloads(budget, 10000, 0, 128) <= 1000


def test_energy_is_that_of_the_table():
    """2 mJ to wake, 2 s of listening, 128 bytes of 4 mJ a KiB: 4.5 mJ an offload."""
    budget = Budget(**budget_arguments("900mJ/hour", SIZE, 2000, ENERGY))
    assert budget.cost(128) == pytest.approx(4.5 * 64, rel=0.01) and budget.amount * 3600000 / budget.period <= 900 * 64


@pytest.mark.parametrize(
    "text, why",
    [
        ("lots", "want a share"),
        ("200/week", "want a share"),
        ("0%", "want a share"),
        ("101%", "want a share"),
        ("1..2/day", "want a share"),
        ("-1/day", "want a share"),
        ("100B/day", "less than one offload"),
        ("2000mJ/day", "cost table"),
        ("9000000MB/min", "more than can be counted"),
    ],
)
def test_what_is_none_is_refused(text, why):
    with pytest.raises(UserError, match=why):
        budget_arguments(text, SIZE, 2000)
