"""The same core files on every MicroPython: integers equal to CPython's."""

import json
from pathlib import Path

import pytest
from conftest import ROOT
from portable.replay import RUNS, replay

from h2t2_tools.emulators import ARM32, UNIX, WASM

CORE = [ROOT / "firmware/h2t2" / f"{name}.py" for name in ("__init__", "fixed", "rng", "experts", "tickets", "policy")]


@pytest.mark.parametrize("emulator", [UNIX, ARM32, WASM], ids=lambda e: e.name)
def test_seeded_runs_give_the_same_integers(emulator):
    reason = emulator.missing()
    if reason:
        pytest.skip(reason)
    out = emulator.run(Path(__file__).parent / "portable/replay.py", CORE, ROOT / "firmware")
    assert [json.loads(line) for line in out.splitlines()] == [replay(run) for run in RUNS]
