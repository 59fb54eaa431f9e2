"""The rules that the micro:bit's build demands of the runtime: the sources keep them, and breaking one is noticed."""

import shutil

import pytest
import random_models

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.microbit import shrink
from h2t2_tools.boards.microbit.rules import violations
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.places import RUNTIME
from h2t2_tools.model import bundle

# what is broken: (file, text in it, what it becomes)
BROKEN = {
    "a name of another's": ("core/tickets.py", "self.window = window\n", "self.window = self.unit = window\n"),
    "a used method of another's": ("core/rng.py", "    def draw(", "    def charge(self):\n        pass\n\n    def draw("),
    "a bare raise": ("core/tickets.py", "        self.lost += 1\n        return", "        raise KeyError\n        return"),
    "two values at once": ("core/experts.py", "        a = b = 0  # losses", "        a, b = 0, 0  # losses"),
    "a constant in small letters": ("core/tickets.py", "FIELDS = 5", "FIELDS = 5\nfive = 5"),
    "an import in a function": ("ldl/kernels.py", "    for i in range(count):", "    import gc\n    for i in range(count):"),
    "too many locals": ("ldl/kernels.py", "    bias, limbs, shifts = k\n", "".join(f"    v{n} = 0\n" for n in range(50))),
}


def test_the_runtime_keeps_the_rules():
    assert violations(RUNTIME) == []


@pytest.mark.parametrize("rule", BROKEN)
def test_breaking_a_rule_is_noticed(rule, tmp_path):
    path, old, new = BROKEN[rule]
    shutil.copytree(RUNTIME, tmp_path / "h2t2")
    source = (tmp_path / "h2t2" / path).read_text()
    assert old in source
    (tmp_path / "h2t2" / path).write_text(source.replace(old, new))
    assert violations(tmp_path / "h2t2")


def test_an_operator_that_its_build_has_not_is_said(tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    make = random_models.Maker(1, (4, 4, 2))
    y = make.operator(
        "TRANSPOSE", (make.first, make.numbers(0, 2, 1, 3)), make.tensor((1, 4, 4, 2), make.scale(0), make.zero(0))
    )
    (tmp_path / "made.tflite").write_bytes(make.bytes(y))
    model = Int8Model(bundle.from_tflite(tmp_path / "made.tflite"), 0)
    with pytest.raises(UserError, match="no room for view"):
        shrink.ldl_pieces(RUNTIME, model, set())


@pytest.mark.parametrize("kind", random_models.STEPLESS)
def test_a_model_without_a_step_is_source_as_well(kind, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    (tmp_path / "made.tflite").write_bytes(random_models.stepless(kind))
    model = Int8Model(bundle.from_tflite(tmp_path / "made.tflite"), 2)
    sources, run, _ = shrink.ldl_pieces(RUNTIME, model, set())
    names = {}
    for source in sources:
        exec(source, names)
    for x in ([-128, 0, 127, 5, 6, 7], [1, 2, 3, 4, 5, 6]):
        assert names[run](x) == model.bin(x[2])
