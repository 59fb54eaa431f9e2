"""Untrusted bytes: every fuzzing target on bytes at random and on good inputs with a few of their bytes changed."""

from functools import lru_cache

import pytest
import targets  # noqa: E402
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import ROOT

seeds = lru_cache(targets.seeds)


EDITS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from("=+-"), st.binary(min_size=1, max_size=5)), max_size=4
)


def edited(data, edits):
    """Bytes put in place of others, put in, or taken out, each at a share of the length."""
    made = bytearray(data)
    for share, how, new in edits:
        at = int(share * (len(made) + 1))
        made[at : at + (0 if how == "+" else len(new))] = b"" if how == "-" else new
    return bytes(made)


@pytest.mark.parametrize("name", targets.TARGETS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_bytes_at_random(name, data):
    targets.TARGETS[name](data.draw(st.binary(max_size=400)))


@pytest.mark.slow
@pytest.mark.parametrize("name", targets.TARGETS)
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_good_inputs_with_changes(name, data):
    seed = data.draw(st.sampled_from(seeds(name)))
    targets.TARGETS[name](edited(seed, data.draw(EDITS)))


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_good_inputs_are_accepted(name):
    """A target that refused everything would find nothing."""
    assert all(targets.TARGETS[name](seed) for seed in seeds(name)) and seeds(name)


@pytest.mark.parametrize("path", sorted((ROOT / "tests/fuzz/found").iterdir()), ids=lambda path: path.name)
def test_what_fuzzing_found_stays_mended(path):
    """Inputs that once ended in an error nobody documents; TARGET-what each."""
    targets.TARGETS[path.name.split("-")[0]](path.read_bytes())
