"""The vector file replayed on every interpreter at hand: integers equal to the host's that made it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import ROOT, paper

from h2t2.core.experts import CAP, ROOM
from h2t2.core.h2t2 import OFFLOAD
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.tflite import TFLiteModel
from h2t2_tools.boards.emulators import ARM32, MICROBIT, UNIX, WASM
from h2t2_tools.boards.microbit.emulated import Microbit
from h2t2_tools.common import pairs
from h2t2_tools.model import bundle
from h2t2_tools.proof.validate import samples

VECTORS = ROOT / "tests/vectors/core.jsonl"
REPLAY = ROOT / "tests/portable/replay.py"
CORE = sorted((ROOT / "firmware/h2t2").rglob("*.py"))


def expected():
    return [json.loads(line) for line in VECTORS.read_text().splitlines()]


def need(emulator):
    reason = emulator.missing()
    if reason:
        pytest.skip(reason)
    return emulator


@pytest.mark.parametrize("emulator", [UNIX, ARM32, WASM], ids=lambda e: e.name)
def test_vectors_on_micropython(emulator):
    out = need(emulator).run(REPLAY, CORE, ROOT / "firmware")
    assert [json.loads(line) for line in out.splitlines()] == expected()


def pythons():
    """CPython 3.10 to 3.13, as far as this machine has them: on the PATH or in pyenv."""
    found = {}
    for minor in (10, 11, 12, 13):
        name = f"python3.{minor}"
        homes = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))
        path = str(homes[-1]) if homes else shutil.which(name)
        found[name] = path
    return found


@pytest.mark.parametrize("name, path", pythons().items())
def test_vectors_on_cpython(name, path):
    if path is None:
        pytest.skip(f"no {name} on this machine")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "firmware")}
    run = subprocess.run([path, str(REPLAY)], capture_output=True, text=True, env=env, timeout=120)
    assert run.returncode == 0, run.stderr
    assert [json.loads(line) for line in run.stdout.splitlines()] == expected()


@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda e: e.name)
def test_a_step_allocates_nothing(emulator, tmp_path):
    """decide, learn, lose and a halving of every policy with the heap locked, 300 rounds each."""
    script = tmp_path / "locked.py"
    script.write_text(
        """
import gc, micropython
from h2t2.core.h2t2 import H2T2, OFFLOAD
from h2t2.core.calibrating import Calibrating
from h2t2.core.pairwise import Pairwise
costs = [[0, 9000, 20000], [32768, 0, 15000], [7000, 11000, 0]]
scores = [[16384, 0, 0], [5000, 5000, 6384], [0, 9000, 7384]]
def locked(policy, inputs):
    policy.decide(inputs[0])
    n = action = 0
    gc.collect()
    micropython.heap_lock()
    while n < 300:
        action = policy.decide(inputs[n % len(inputs)])
        if action == OFFLOAD:
            if n % 5:
                policy.learn(policy.ticket, n & 1, 7000)
            else:
                policy.lose(policy.ticket)
        n += 1
    micropython.heap_unlock()
for options in ({"feedback": "explored", "exploration": "epsilon"}, {"half_life": 20}, {"bits": 8, "rdl_fp": 900}):
    locked(H2T2(**options), [0, 1, 2, 3])
locked(Calibrating(half_life=20), [1, 9, 15])
locked(Pairwise(costs, feedback="all"), scores)
print("none")
"""
    )
    assert need(emulator).run(script, [], ROOT / "firmware") == "none\n"


@pytest.mark.parametrize(
    "options, unit", [({}, 0), ({"feedback": "all", "exploration": "anytime"}, 0), ({"half_life": 20}, 0), ({}, 2)]
)
def test_the_core_on_the_emulated_microbit(options, unit):
    """A 16 KB Cortex-M0 running MicroPython 1.9.2, every step with the heap locked: each action equal to the host's.

    unit: that many times coarser losses, and the next doubling due in the first round: the deepest calls there are.
    """
    need(MICROBIT)
    made = paper(window=1, **options)
    for _ in range(unit):
        made.experts.rebuild(True, False)
        made.experts.losses[1] = CAP + 1
        made.experts.losses[3] = -CAP
        made.experts.spent = ROOM + 1
    bins, labels = (column.tolist() for column in samples(4, 60, 2))
    actions = []
    with Microbit() as board:
        board.prepare()
        names = board.load(ROOT / "firmware/h2t2", made)
        decide, learn, ticket = (names[name] for name in ("decide", "learn", "ticket"))
        for k, label in zip(bins, labels):
            actions.append(int(board.run(f"L();a=p.{decide}({k});U();print(a)")))
            if actions[-1] == OFFLOAD:
                assert board.run(f"L();t=p.{learn}(p.{ticket},{label},-1);U();print(t)") == "True\n"
    here = []
    for k, label in zip(bins, labels):
        here.append(made.decide(k))
        if here[-1] == OFFLOAD:
            made.learn(made.ticket, label)
    assert actions == here and len(set(here)) > 1
    assert made.experts.unit == unit + (unit > 0)


def test_a_classifier_and_its_policy_on_the_emulated_microbit():
    """The breast-cancer LDL and the core in 16 KB: bins of real samples, actions and what is learned as on the host."""
    need(MICROBIT)
    pair = pairs.load("breast_cancer")
    host = Int8Model(bundle.from_tflite(pair.ldl))
    pi = TFLiteModel(str(pair.ldl))
    made = paper(window=1, beta=6554)
    inputs = [pi.quantise(pair.view(x, "ldl")).ravel().tolist() for x in pair.x[:25]]
    seen = []
    with Microbit() as board:
        board.prepare()
        names = board.load(ROOT / "firmware/h2t2", made, host)
        decide, learn, ticket, ldl = (names[name] for name in ("decide", "learn", "ticket", "ldl"))
        for x, label in zip(inputs, pair.y.tolist()):
            k = int(board.run(f"k={ldl}({tuple(x)});print(k)"))
            seen.append((k, int(board.run(f"L();a=p.{decide}(k);U();print(a)"))))
            if seen[-1][1] == OFFLOAD:
                board.run(f"L();p.{learn}(p.{ticket},{label},-1);U()")
    here = []
    for x, label in zip(inputs, pair.y.tolist()):
        k = host.bin(host.run(x))
        here.append((k, made.decide(k)))
        if here[-1][1] == OFFLOAD:
            made.learn(made.ticket, label)
    assert seen == here and len({k for k, _ in here}) > 4 and len({a for _, a in here}) > 1
