"""A user's own app.py: what it measures becomes int8, what was decided reaches it, and what is wrong with either is said."""

import json
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import running
from support import ROOT, need

from h2t2 import units
from h2t2.cpython.quantise import quantised
from h2t2.ldl.ldl import Ldl
from h2t2.link import wire
from h2t2.node.app import App
from h2t2.node.measured import Measured
from h2t2.node.sensing import Sensing
from h2t2.node.service import state
from h2t2_tools.boards.emulators.catalogue import UNIX


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


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    "value, why", [(NAN, "missing"), (None, "missing"), (INFINITY, "not finite"), (-INFINITY, "not finite"), ("a", "no number")]
)
def test_what_is_no_finite_number_is_refused_by_its_place_in_the_sample(value, why):
    with pytest.raises(ValueError, match=f"number 1 of a sample is {why}"):
        measured_by([1.0, 1.0], [0.0, 0.0], 1.0, 0)([1.0, value])
    with pytest.raises(ValueError, match=f"number 3 of a sample is {why}"):
        measured_by([1.0, 1.0], [0.0, 0.0], 1.0, 0, [0, 3])([1.0, 2, 3, value])


def test_none_is_a_missing_number_as_nan_is():
    """None stands in JSON, in a driver's answer and in a list of Python; it was "unsupported operand type(s)"."""
    measured = Measured(None, **units.measured([1.0, 1.0], [0.0, 0.0], 1.0, 0), missing=[7.0, None])
    assert measured([None, 3]).tolist() == [7, 3] == measured([NAN, 3]).tolist()
    with pytest.raises(ValueError, match="number 1 of a sample is missing"):
        measured([3, None])


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
    assert vars(seen[1]) == {
        "label": 1,
        "name": "1",
        "source": "remote",
        "score": 243 / 256,
        "tag": [5],
        "late": False,
        "reason": "",
    }
    app.node.reason = "no heap"
    app.act(app.sense()[2], -1, 0, 2)
    assert (seen[2].source, seen[2].score, seen[2].tag, seen[2].reason) == ("fallback", -1, [-3.4], "no heap")


class Half(Ldl):
    """A local model that is never sure."""

    def run(self, x):
        return 0


def decided(program, *samples, **more):
    """(decisions, lines of the log, the service) of a program that returns these samples, by a policy that asks about all."""
    decisions, values = [], iter(samples)
    app = App(SimpleNamespace(sense=lambda: next(values), act=decisions.append, **program), config(**more))
    service, node, _, log = running(sensing=Sensing(app.sense), dtype=app.dtype)
    node.actuate, node.ldl, app.node = app.act, Half(), node
    service.run()
    return decisions, log, service


@pytest.mark.parametrize(
    "sample, why",
    [
        ([None], "number 0 of a sample is missing"), ([NAN], "number 0 of a sample is missing"),
        ([INFINITY], "number 0 of a sample is not finite"), (["a"], "number 0 of a sample is no number"),
        ([1, 2], "a sample of 2 numbers; the model reads 1"), ("late", "a sample of 4 numbers; the model reads 1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [wire.INT8, wire.FLOAT32])
def test_a_sample_with_a_missing_number_falls_back_with_the_reason(sample, why, dtype):
    """It counted as an exception of sense(): the sample had no decision, and the node measured more rarely."""
    (bad, good), log, service = decided({}, sample, [5], remote_dtype=dtype)
    assert (bad.source, bad.score, bad.tag, bad.reason) == ("fallback", -1, sample, why)
    assert (good.source, good.score, good.tag, good.reason) == ("remote", 0.5, [5], "")
    assert log == [f"sensor: ValueError: {why}"] and state(service)["sensor_errors"] == 1


ON_A_BOARD = """
import json
from h2t2.node.app import App
class Program:
    values = [[None], [float("nan")], [float("inf")], ["a"], [1, 2], [5]]
    def sense(self): return self.values.pop(0)
    def act(self, decision): pass
ends = {"columns": None, "multipliers": [1 << 14], "offsets": [0], "shifts": [14]}
app = App(Program(), {"measured": {"local": ends, "remote": ends}, "deadline_ms": 1000})
samples = [app.sense() for _ in range(6)]
print(json.dumps([str(sample[0]) if isinstance(sample[0], Exception) else list(sample[0]) for sample in samples]))
"""


def test_micropython_names_the_number_that_is_missing(tmp_path):
    need(UNIX)
    (tmp_path / "script.py").write_text(ON_A_BOARD)
    *refused, taken = json.loads(UNIX.run(tmp_path / "script.py", [], ROOT / "firmware"))
    assert taken == [5] and refused == [
        "number 0 of a sample is missing", "number 0 of a sample is missing", "number 0 of a sample is not finite",
        "number 0 of a sample is no number", "a sample of 2 numbers; the model reads 1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sent", [lambda measured: [None], lambda measured: [NAN], lambda measured: 1 / 0, lambda measured: None]
)
@pytest.mark.parametrize("dtype", [wire.INT8, wire.FLOAT32])
def test_a_sample_whose_offload_has_a_missing_number_is_decided_without_asking(sent, dtype):
    (decision,), (line,), service = decided({"remote": sent}, [5], remote_dtype=dtype)
    assert (decision.source, decision.score, decision.reason) == ("fallback", 0.5, "") and not service.node.link.sent
    assert line.startswith("request: ") and state(service)["sensor_errors"] == service.node.unasked == 1


def test_a_float_that_is_missing_travels_where_the_pair_knows_missing_numbers():
    ends = {"columns": None, "multipliers": [1 << 14], "offsets": [0], "shifts": [14], "missing": [3]}
    app = App(
        SimpleNamespace(sense=lambda: [None], act=print),
        config(measured={"local": ends, "remote": ends}, remote_dtype=wire.FLOAT32),
    )
    local, sent, _ = app.sense()
    assert local.tolist() == [3] and sent == struct.pack("<f", NAN)


def test_a_window_with_a_missing_measurement_falls_back_and_begins_anew():
    spec = {"size": 2, "hop": 2, "channels": 1, "features": ["mean"]}
    measured = {"local": config()["measured"]["local"], "remote": config()["measured"]["remote"], "window": spec}
    values = [[1.0, None], [4.0, 6.0]]
    app = App(SimpleNamespace(sense=lambda: values.pop(0), act=print), config(measured=measured))
    first, second = app.sense(), app.sense()
    assert "a measurement of the window is missing" in str(first[0]) and app.gaps() == 1
    assert second[0].tolist() == [5]


@pytest.mark.parametrize("sent, expected", [(b"jpeg", b"jpeg"), (bytearray(b"ab"), bytearray(b"ab")), ([9], b"\x09")])
def test_what_an_offload_sends_may_be_its_own(sent, expected):
    app = App(SimpleNamespace(sense=lambda: [1], act=print, remote=lambda measured: sent), config())
    assert app.sense()[1] == expected


def test_what_is_no_app_is_refused():
    with pytest.raises(ValueError, match=r"no function act\(\)"):
        App(SimpleNamespace(sense=print), config())
    with pytest.raises(ValueError, match="how numbers become int8"):
        App(SimpleNamespace(sense=print, act=print), {"arguments": {"bits": 4}})
