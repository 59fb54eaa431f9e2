"""The kernels' arithmetic: gemmlowp's two roundings, products within small ints, softmax without wide integers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreters import in_machine_code
from support import need

from h2t2.ldl import kernels, log_softmax, softmax
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.model.operators.tflite_fixed_point import doubling_high, multiplier, rounding_shift


@given(st.integers(-(2**29) + 1, 2**29 - 1), st.floats(1e-9, 1.0, exclude_max=True))
def test_requantise_is_gemmlowps_two_roundings(x, real):
    m, exponent = multiplier(real)
    left, right = max(0, exponent), max(0, -exponent)
    if abs(x) << left >= 2**29:
        return
    limbs = (m >> 20, m >> 10 & 1023, m & 1023)
    ab = (x << left) * m
    high = (ab + 2**30) >> 31 if ab >= 0 else -((-ab + 2**30 - 1) >> 31)
    half = (abs(high) + (1 << right - 1)) >> right if right else abs(high)
    assert kernels.requantise(x, 0, limbs, (left, right)) == (half if high >= 0 else -half)


def test_products_stay_within_small_ints():
    """requantise() at its limits: the largest accumulator, multipliers of all ones and of one bit."""
    seen = []

    class Watched(int):
        pass

    def watch(value):
        seen.append(abs(int(value)))
        return Watched(value)

    for name in ("add", "sub", "mul", "lshift", "rshift", "and", "or"):
        plain = getattr(int, f"__{name}__")
        setattr(Watched, f"__{name}__", lambda a, b, plain=plain: watch(plain(int(a), int(b))))
        setattr(Watched, f"__r{name}__", lambda a, b, plain=plain: watch(plain(int(b), int(a))))
    for x in (2**29 - 1, -(2**29) + 1, 2**29 - 32768):
        for limbs in ((2047, 1023, 1023), (1024, 0, 0), (2047, 0, 1023)):
            for shifts in ((0, 0), (0, 30), (0, 5)):
                kernels.requantise(Watched(x), 0, tuple(map(Watched, limbs)), tuple(map(Watched, shifts)))
    assert max(seen) < 2**30 and len(seen) > 100


@given(st.integers(2, 12), st.data())  # 1: a sum of 2,048 exponentials and more; 2,047 classes is what a bundle may have
def test_softmax_without_wide_integers_is_gemmlowps(bits, data):
    """reciprocal() and share() against the same steps in wide integers."""
    low = 1 << 31 - bits
    total = data.draw(st.one_of(st.integers(low, 2 * low - 1), st.sampled_from([low, low + 1, 2 * low - 1])))
    half = total << bits - 1
    r = 1515870810 + doubling_high(half, -1010580540)
    for _ in range(3):
        r += doubling_high(r, 536870912 - doubling_high(half, r)) << 2
    assert softmax.reciprocal(total, bits) == (r if r < 2**30 else -1)
    e = data.draw(st.integers(0, 2**31 - 1))
    for each in (r, 2**30):
        wide = rounding_shift(doubling_high(min(2 * each, 2**31 - 1), e), 35 - bits)
        assert softmax.share(each if each < 2**30 else -1, e >> 1, e & 1, 35 - bits) == wide


@given(st.integers(2**19, 2047 * 2**19))
def test_the_logarithm_stays_within_small_ints(total):
    """Every function that it calls is given, and gives, numbers below 2^30; and it is a logarithm."""
    wide = []

    def watched(function):
        def call(*numbers):
            wide.extend(n for n in (*numbers, function(*numbers)) if abs(n) >= 2**30)
            return function(*numbers)

        return call

    names = ("doubling_high", "_wide_high", "_both_wide_high", "_sum", "product_high", "product_low", "reciprocal_of")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(log_softmax, name, watched(getattr(log_softmax, name)))
        log = log_softmax.logarithm(total)
    assert not [n for n in wide if n != 2**30] and abs(log / 2**26 - math.log(total / 2**19)) < 1e-6


@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda emulator: emulator.name)
def test_the_reciprocal_in_machine_code_is_the_same(emulator, tmp_path):
    """Of 6,000 fractions, with every number of leading zeros, and of 0, whose reciprocal is no small int."""
    (tmp_path / "same.py").write_text(RECIPROCALS)
    here = []
    exec(RECIPROCALS, {"print": here.append})
    runtime = in_machine_code(need(emulator), tmp_path)
    assert emulator.run(tmp_path / "same.py", [], runtime).split() == [str(crc) for crc in here]


RECIPROCALS = """
from binascii import crc32
from h2t2.core.numbers import Rng
from h2t2.ldl.fixed_point import reciprocal_of
rng = Rng(3)
crc = 0
for n in range(6000):
    fraction = ((rng.draw() << 15 | rng.draw()) >> n % 31)
    crc = crc32(b"%d" % reciprocal_of(fraction), crc) & 0xFFFFFFFF
print(crc)
"""
