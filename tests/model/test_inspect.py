"""`h2t2 inspect` and `h2t2 inspect --bundle`; damaged models."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import Maker
from support import ROOT

from h2t2_tools.checks import oracle
from h2t2_tools.cli.main import main
from h2t2_tools.common import places
from h2t2_tools.common.errors import UserError
from h2t2_tools.model import bundle


def refused(folder):
    """A model with an operator that no board runs."""
    make = Maker(1, (4,))
    path = folder / "floor.tflite"
    path.write_bytes(make.bytes(make.operator("FLOOR", (make.first,), make.tensor((1, 4), 0.1))))
    return path


def test_inspect_says_what_is_there_and_what_is_missing(tmp_path, capsys):
    assert main(["inspect", str(places.models() / "digits/ldl.tflite"), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["parameters"] == 86 and report["board"]["arena_bytes"] == 96 and not report["problems"]
    assert report["multiply_accumulates"] == 16 * 2 * 9 + 64 and report["policy"] == ["yes: 2 class scores in [0, 1]"]
    assert main(["inspect", str(refused(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "FLOOR" in out and "feeds the policy: no" in out


def test_bundle_and_check_on_the_command_line(tmp_path, capsys):
    model = str(places.models() / "breast_cancer/ldl.tflite")
    out = tmp_path / "m.h2m"
    assert main(["inspect", model, "--bundle", str(out), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["board"]["bundle_bytes"] == len(out.read_bytes())
    assert main(["inspect", str(refused(tmp_path)), "--bundle", str(out)]) == 2
    assert "FLOOR" in capsys.readouterr().err
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 5), np.float32))
    assert main(["ldl-check", model, "--inputs", str(tmp_path / "x.npz")]) == 2
    assert "float32" in capsys.readouterr().err
    if oracle.name() == "tflite_runtime":
        np.savez(tmp_path / "x.npz", x=np.zeros((2, 5), np.int8))
        assert main(["ldl-check", model, "--inputs", str(tmp_path / "x.npz"), "--json", "-"]) == 0
        assert json.loads(capsys.readouterr().out)["differ"] == 0


@settings(max_examples=60)
@given(st.data())
def test_damaged_models_are_refused_without_a_crash(data):
    good = (ROOT / "tests/material/joined.tflite").read_bytes()
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    path = ROOT / ".pytest_cache/damaged.tflite"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bytes(bad))
    try:
        bundle.from_tflite(path)
    except UserError as error:
        assert str(path) in str(error)
