"""The expert tree against the dense matrix of the same losses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2t2.core import introspect
from h2t2.core.experts import ROOM, Experts
from h2t2.core.numbers import FINE, ONE


def dense(a, b, k):
    """(zero, one, offload) masses, normalised, of bin k for the losses a = A - B, b = B - C a bin, octaves."""
    n = len(a)
    lower = np.concatenate([[0.0], np.cumsum(a)[:-1]])
    upper = np.concatenate([[0.0], np.cumsum(b)[:-1]])
    exponent = lower[:, None] + upper[None, :]
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    w = np.exp2(-np.where(i <= j, exponent - exponent[i <= j].min(), np.inf))
    w /= w.sum()
    return w[i > k].sum(), w[j <= k].sum(), w[(i <= k) & (k < j)].sum()


def charge(experts, k, a, b):
    a, b = round(a * 2**28), round(b * 2**28)
    charge_words(experts, k, a >> 14, a & FINE, b >> 14, b & FINE)


def charge_words(experts, k, *loss):
    if experts.bound > ROOM:
        experts.coarsen()
    experts.charge(k, loss)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(0, 2**32), st.sampled_from([0.01, 1.0, 30.0, 400.0]))
def test_regions_match_the_dense_matrix(bits, seed, size):
    rng = np.random.default_rng(seed)
    n = 2**bits
    experts = Experts(bits)
    a, b = np.zeros(n), np.zeros(n)
    for _ in range(40):
        k = int(rng.integers(n))
        da, db = rng.normal(0, size, 2)
        charge(experts, k, da, db)
        a[k] += da
        b[k] += db
    for k in range(n):
        experts.regions(k)
        zero, one, offload = dense(a, b, k)
        got = (experts.negative, experts.positive, experts.offload)
        assert np.allclose(np.array(got) / ONE, (zero, one, offload), atol=1.1e-4)
        assert sum(got) == ONE
        if max(zero, one) > 1e-290 and abs(zero - one) > 1e-3 * max(zero, one):
            assert experts.local == (one > zero)


@pytest.mark.parametrize("bits", range(1, 13))
def test_a_new_tree_is_uniform(bits):
    experts = Experts(bits)
    n = 2**bits
    for k in {0, n // 3, n - 1}:
        experts.regions(k)
        count = n * (n + 1) / 2
        offload, one = (k + 1) * (n - 1 - k) / count, (k + 1) * (k + 2) / 2 / count
        assert abs(experts.offload / ONE - offload) < 1e-4
        assert abs(experts.positive / ONE - one) < 1e-4


def test_a_rebuild_changes_nothing():
    experts = Experts(6)
    rng = np.random.default_rng(5)
    for _ in range(2000):
        charge(experts, int(rng.integers(64)), *rng.normal(0, 3, 2))
    before = [list(sums)[2:] for sums in (experts.u, experts.v, experts.p)]  # nobody keeps the root's
    experts.rebuild(False, False)
    assert before == [list(sums)[2:] for sums in (experts.u, experts.v, experts.p)]


def test_halving_halves_every_loss():
    experts = Experts(3)
    charge(experts, 2, 5.5, -3.25)
    charge(experts, 6, -1.5, 2.75)
    before = [introspect.exponents(experts, i) for i in range(8)]
    experts.rebuild(True, True)
    for (a, b), i in zip(before, range(8)):
        for old, new in zip((a, b), introspect.exponents(experts, i)):
            assert abs(new - old / 2) <= 4  # Q28


def test_losses_beyond_the_room_take_a_coarser_unit_and_stay_what_they_are():
    experts = Experts(1)
    total = 0
    for n in range(2**10):
        charge_words(experts, 0, 2**26, n, -(2**26), 2**14 - n)
        total += (2**26 << 14) + n
        assert abs(experts.losses[1]) <= 2**28
        if experts.unit < 8:
            assert introspect.exponents(experts, 1) == (total, -(2**40) * (n + 1) + (2**14) * (n + 1) - total % 2**40)
    assert experts.unit == 8 and experts.losses[1] > 2**26
    experts.rebuild(False, True)
    assert experts.unit == 7


@pytest.mark.parametrize("unit", range(9))
def test_probabilities_in_every_unit(unit):
    """Small losses in a unit made coarse beforehand: what the coarseness alone costs."""
    experts = Experts(2)
    for _ in range(unit):
        experts.rebuild(True, False)
    rng = np.random.default_rng(unit)
    a, b = rng.normal(0, 1, (2, 4))
    for k in range(4):
        charge(experts, k, a[k], b[k])
    experts.regions(1)
    zero, one, offload = dense(a, b, 1)
    got = np.array([experts.negative, experts.positive, experts.offload]) / ONE
    assert np.abs(got - (zero, one, offload)).max() < 2.0 ** (unit - 13.3)


def test_below_the_cap_nothing_is_halved():
    """8000 octaves of A - B in every prefix, in charges that cancel, many times the room in all."""
    experts = Experts(2)
    charge_words(experts, 0, 2**26, 0, 0, 0)
    for _ in range(50):
        charge_words(experts, 1, 2**25, 0, 2**25, 0)
        charge_words(experts, 1, -(2**25), 0, -(2**25), 0)
    assert introspect.exponents(experts, 3) == (2**40, 0) and experts.unit == 0


@given(st.integers(1, 5), st.integers(0, 2**32))
def test_likely_is_the_heaviest_pair(bits, seed):
    rng = np.random.default_rng(seed)
    experts = Experts(bits)
    for k in range(2**bits):
        charge(experts, k, *rng.normal(0, 3, 2))
    exponents = [introspect.exponents(experts, i) for i in range(experts.n)]
    a = [x / 2**28 for x, _ in exponents]
    b = [x / 2**28 for _, x in exponents]
    i, j = introspect.likely(experts)
    assert i <= j
    assert a[i] + b[j] == pytest.approx(min(a[x] + b[y] for x in range(experts.n) for y in range(x, experts.n)))
    u, v = introspect.marginals(experts)
    assert np.allclose(np.array(u) / ONE, np.exp2(min(a) - np.array(a)), atol=1e-4) and max(u) == ONE
    assert np.allclose(np.array(v) / ONE, np.exp2(min(b) - np.array(b)), atol=1e-4) and max(v) == ONE
