"""Fixed-point primitives against exact arithmetic: each with its stated tolerance."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2 import fixed
from h2t2.rng import Rng

SMALL = 2**30
fractions = st.integers(0, fixed.FRAC)
mantissas = st.integers(2**14, 2**15 - 1)


def value(m, e):
    return Fraction(m, 2**14) / Fraction(2) ** e


@given(st.just(0) | mantissas, st.integers(-60, 60), mantissas, fractions, st.integers(-60, 60))
def test_add(m, e, x, lo, f):
    """The power of two within 1.1 units of Q15, the sum rounded to nearest."""
    ms, es = [m], [e]
    fixed.add(ms, es, 0, x, lo, f)
    assert 2**14 <= ms[0] < 2**15
    term = value(x, f) * Fraction(2 ** -(lo / 2**28))
    exact = value(m, e) + term
    allowed = exact * (Fraction(1, 2**15) + Fraction(1, 2**26)) + term * Fraction(11, 10 * 2**14)
    assert abs(value(ms[0], es[0]) - exact) <= allowed


@given(mantissas, st.integers(0, 127))
def test_the_table_is_correctly_rounded(x, i):
    ms, es = [0], [0]
    fixed.add(ms, es, 0, 16384, i << 21, 0)
    assert value(ms[0], es[0]) == Fraction(round(2 ** (15 - i / 128)), 2**15)


@given(st.integers(2**15, SMALL - 1), st.data())
def test_ratio(b, data):
    a = data.draw(st.integers(0, b))
    got = fixed.ratio(a, b)
    assert 0 <= got <= fixed.ONE
    assert abs(got - a / b * 2**15) <= 0.5 + 2**15 * 2**8 / b


@given(st.integers(-(2**29) + 1, 2**29 - 1), st.integers(0, fixed.ONE), st.integers(1, fixed.ONE), st.integers(0, 15))
def test_scale(x, num, den, shift):
    fixed.scale(x, num, den, shift)
    hi, lo = fixed.loss
    assert 0 <= lo <= fixed.FRAC
    exact = Fraction(x * num, den * 2**26) * 2**shift
    assert abs(hi + Fraction(lo, 2**28) - exact) <= Fraction(2**shift, 2**28)


def test_rng_is_as183():
    """The three generators of Wichmann and Hill (1982), from a state set by hand."""
    rng = Rng(0)
    rng.x, rng.y, rng.z = 1, 2, 3
    draw = rng.draw()
    assert (rng.x, rng.y, rng.z) == (171, 344, 510)
    assert abs(draw / 2**15 - (171 / 30269 + 344 / 30307 + 510 / 30323) % 1) < 3 / 2**15


@pytest.mark.parametrize("seed", [-1, 2**28])
def test_rng_refuses_a_seed_out_of_range(seed):
    with pytest.raises(ValueError, match="seed"):
        Rng(seed)
