"""What an offload costs by time and bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.link.cost import LinkCost
from h2t2_tools.common import cost_table
from h2t2_tools.common.errors import UserError

RATES = st.integers(0, 32768000)


@given(st.integers(0, 32768), RATES, RATES, st.integers(-(2**29), 2**29), st.integers(0, 2**20))
def test_the_cost_is_small_integers_in_range_and_right(fixed, per_s, per_kb, ms, size):
    one = LinkCost(fixed, per_s, per_kb, 100)
    beta = one.beta_of(ms, size)
    assert fixed <= beta <= 32768 and 0 <= one.expected <= 32768
    exact = fixed + per_s * max(0, ms) / 1000 + per_kb * (size >> 5) / 32
    assert beta == 32768 if exact >= 32770 else abs(beta - exact) <= 2
    assert per_s * one.longest < 2**30 and per_kb * one.largest < 2**30


def test_cost_tables(tmp_path):
    path = tmp_path / "cost.toml"
    path.write_text("seconds = 4\nkilobytes = 64\nmillijoules = 500\nwake_mj = 20\nsend_mj_per_kb = 5\nlisten_mj_per_s = 80\n")
    # per second 1/4 + 80/500, per KiB 1/64 + 5/500, fixed 20/500
    assert list(cost_table.read(path).arguments().values()) == [
        round(v * 32768) for v in (0.04, 0.25 + 0.16, 1 / 64 + 0.01, 0.3)
    ]
    for text, word in (("", "scale"), ("seconds = 0", "seconds"), ("colour = 1", "colour"), ("seconds = ", "not TOML")):
        path.write_text(text)
        with pytest.raises(UserError, match=word):
            cost_table.read(path)
    path.write_text("seconds = 0.0001\n")
    with pytest.raises(ValueError, match="second"):
        cost_table.read(path).arguments()
