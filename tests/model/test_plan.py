"""The plan of a model for a board: multipliers and memory."""

from fractions import Fraction

import numpy as np
import pytest
from bundles import TEST_MODELS
from hypothesis import given
from hypothesis import strategies as st
from random_models import Maker

from h2t2_tools.common.errors import UserError
from h2t2_tools.model import plan, tflite
from h2t2_tools.model.operators.tflite_fixed_point import multiplier


@given(st.floats(1e-12, 1000.0))
def test_multiplier_is_the_nearest_of_31_bits(real):
    m, exponent = multiplier(real)
    if m:
        assert 2**30 <= m < 2**31
        assert abs(Fraction(m) * Fraction(2) ** (exponent - 31) - Fraction(real)) <= Fraction(2) ** (exponent - 32)


def test_the_memory_plan_never_lets_living_tensors_touch():
    for path in TEST_MODELS:
        planned = plan.plan(tflite.load(path))
        alive = {planned.graph.inputs[0]}
        for n, step in enumerate(planned.steps):
            reads = set(step.reads)
            alive = {t for t in alive if any(t in s.reads for s in planned.steps[n:])} | reads
            spans = [(planned.offsets[t], planned.offsets[t] + planned.graph.tensors[t].size, t) for t in alive - {step.p[1]}]
            start = planned.offsets[step.p[1]]
            end = start + planned.graph.tensors[step.p[1]].size
            for low, high, tensor in spans:
                shares = (
                    planned.offsets[tensor] == start
                    and planned.graph.tensors[tensor].size == end - start
                    and tensor not in reads
                )
                assert high <= start or end <= low or shares, (path.stem, step.kernel)
            assert end <= planned.arena
            alive.add(step.p[1])


def test_every_reason_is_told_at_once(tmp_path):
    """An operator that is unknown stops all others from being looked at; of those that are known each says what it lacks."""
    make = Maker(1, (4, 5, 2))
    apart = make.tensor((4,), None, 0, np.array([0, 2, 1, 3], np.int32), "int32")
    turned = make.operator("TRANSPOSE", (make.first, apart), make.tensor((1, 5, 4, 2), 9.0, 1))  # another quantisation
    axes = make.numbers(1, 3)
    y = make.operator("SUM", (turned, axes), make.tensor((1, 1, 4, 1), 1.0), keep_dims=1)
    path = make.write(tmp_path, y)
    with pytest.raises(UserError) as raised:
        plan.plan(tflite.load(path))
    assert str(raised.value).split("; ") == [
        f"{path}: operator 0, TRANSPOSE: only of activations with the output's quantisation",
        "operator 1, SUM: only over axes that lie together",
    ]


def test_a_variable_that_nothing_begins_is_refused_by_name(tmp_path):
    make = Maker(1, (4, 5, 2))
    y = make.remembered(make.first)
    make.initial_values.clear()
    path = make.write(tmp_path, y)
    with pytest.raises(
        UserError, match="READ_VARIABLE: no constants of int8 begin its variable.*ASSIGN_VARIABLE: no constants"
    ):
        plan.plan(tflite.load(path))
