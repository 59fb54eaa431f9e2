"""A user's own app.py: what it measures becomes int8, what was decided reaches it, and what is wrong with either is said."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2 import units
from h2t2.cpython.quantise import quantised
from h2t2.node.app import App
from h2t2.node.measured import Measured


def measured_by(factor, offset, scale, zero_point, columns=None):
    return Measured(columns, **units.measured(factor, offset, scale, zero_point))


@given(
    st.lists(st.tuples(st.floats(-900, 900), st.floats(1e-4, 1e4), st.floats(-9, 9)), min_size=1, max_size=6),
    st.floats(0.001, 0.5), st.integers(-128, 127),
)  # fmt: skip
def test_floats_and_integers_are_quantised_as_on_a_host(rows, scale, zero_point):
    """Within one of what NumPy makes of them, and that only where it lies between two."""
    x, factor, offset = (np.array(column) for column in zip(*rows))
    measured = measured_by(factor.tolist(), offset.tolist(), scale, zero_point)
    for values in (x.tolist(), [int(v) for v in x]):
        real = np.array(values) * factor + offset
        exact = real / scale + zero_point
        got = np.array(measured(values))
        near = np.abs(exact - np.clip(exact, -128, 127)) > 0
        off = np.abs(got - np.clip(exact, -128, 127))
        assert (near | (off <= 0.5 + 1e-4 * (1 + np.abs(exact)))).all()
        assert np.abs(got.astype(int) - quantised(real, scale, zero_point).astype(int)).max() <= 1 + 1e-4 * np.abs(exact).max()


def test_columns_are_picked_and_an_array_is_taken():
    measured = measured_by([1.0, 2.0], [0.0, 1.0], 1.0, 0, [2, 0])
    assert measured([7, 99, -3]).tolist() == [-3, 15] == measured(np.array([[7, 99, -3]])).tolist()
    with pytest.raises(ValueError, match="a sample of 2 numbers"):
        measured([1, 2])
    with pytest.raises(ValueError, match="a sample of 3 numbers; the model reads 2"):
        measured_by([1.0, 2.0], [0.0, 1.0], 1.0, 0)([1, 2, 3])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="number 1 of a sample is not finite"):
        measured_by([1.0, 1.0], [0.0, 0.0], 1.0, 0)([1.0, value])


def test_what_lies_far_outside_is_counted():
    measured = measured_by([1.0], [0.0], 1.0, 0)
    assert [measured([x])[0] for x in (140, -150, 1e30, -1e30, 10**15)] == [127, -128, 127, -128, 127]
    assert measured.saturated == 3
    measured([127])
    assert measured.saturated == 3


def config(**more):
    ends = {"columns": None, "multipliers": [1 << 14], "offsets": [0], "shifts": [14]}
    return {"measured": {"local": ends, "remote": ends}, "arguments": {"bits": 4}, "deadline_ms": 1000, **more}


def test_it_measures_and_acts():
    seen, values = [], [None, [5], [-3.4]]
    program = SimpleNamespace(
        sense=lambda: values.pop(0), act=seen.append, setup=lambda given: seen.append(given["deadline_ms"])
    )
    app = App(program, config())
    assert seen == [1000] and app.sense() is None
    local, sent, tag = app.sense()
    assert local.tolist() == [5] and sent == b"\x05"
    app.node = SimpleNamespace(level=243)
    app.act(tag, 15, 1, 1)
    assert vars(seen[1]) == {"label": 1, "name": "1", "source": "remote", "score": 243 / 256, "tag": [5], "late": False}
    app.act(app.sense()[2], -1, 0, 2)
    assert (seen[2].source, seen[2].score, seen[2].tag) == ("fallback", -1, [-3.4])


@pytest.mark.parametrize("sent, expected", [(b"jpeg", b"jpeg"), (bytearray(b"ab"), bytearray(b"ab")), ([9], b"\x09")])
def test_what_an_offload_sends_may_be_its_own(sent, expected):
    app = App(SimpleNamespace(sense=lambda: [1], act=print, remote=lambda measured: sent), config())
    assert app.sense()[1] == expected


def test_what_is_no_app_is_refused():
    with pytest.raises(ValueError, match=r"no function act\(\)"):
        App(SimpleNamespace(sense=print), config())
    with pytest.raises(ValueError, match="how numbers become int8"):
        App(SimpleNamespace(sense=print, act=print), {"arguments": {"bits": 4}})
