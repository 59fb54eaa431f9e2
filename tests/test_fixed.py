"""Fixed-point primitives against exact arithmetic: each with its stated tolerance."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2 import fixed
from h2t2.experts import Experts
from h2t2.rng import Rng

SMALL = 2**30
fractions = st.integers(0, fixed.FRAC)
mantissas = st.integers(2**14, 2**15 - 1)


def test_the_table_is_correctly_rounded():
    assert list(fixed.EXP2) == [round(2 ** (15 - i / 128)) for i in range(128)]


def value(m, e):
    return Fraction(m, 2**14) / Fraction(2) ** e


@given(mantissas, st.integers(-60, 60), mantissas, fractions, st.integers(-60, 60))
def test_joining_a_block_float_is_rounded_once(m, e, x, lo, f):
    """U of a slot joined by U of another: the power of two within 1.1 units of Q15, the sum to nearest."""
    experts = Experts(1)
    experts.m[0:3], experts.e[0:3] = [m, 0, 0], [e, 0, 0]
    experts.m[3:6], experts.e[3:6] = [x, 16384, 16384], [f, 0, 0]
    experts._join(0, 3, 1, 0, lo, 0, 0)
    got = experts.m[0], experts.e[0]
    term = value(x, f) * Fraction(2 ** -(lo / 2**28))
    exact = value(m, e) + term
    assert 2**14 <= got[0] < 2**15
    assert abs(value(*got) - exact) <= exact * Fraction(1, 2**15) + exact * Fraction(1, 2**26) + term * Fraction(11, 10 * 2**14)


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
