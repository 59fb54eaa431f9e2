"""The core on every interpreter: the vector file, and a step that allocates nothing."""

import json
import os
import subprocess
import sys

import pytest
from interpreters import need
from support import ROOT

from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX, WASM
from h2t2_tools.common import pythons

VECTORS = ROOT / "tests/vectors/core.jsonl"


REPLAY = ROOT / "tests/portable/replay.py"


CORE = sorted((ROOT / "firmware/h2t2").rglob("*.py"))


def expected():
    return [json.loads(line) for line in VECTORS.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "emulator", [UNIX, *(pytest.param(board, marks=pytest.mark.whole) for board in (ARM32, WASM))], ids=lambda e: e.name
)
def test_vectors_on_micropython(emulator):
    out = need(emulator).run(REPLAY, CORE, ROOT / "firmware")
    assert [json.loads(line) for line in out.splitlines()] == expected()


@pytest.mark.whole
@pytest.mark.parametrize("minor", pythons.MINORS)
def test_vectors_on_cpython(minor):
    path = sys.executable if minor == sys.version_info[1] else pythons.other_versions().get(f"3.{minor}")
    if path is None:
        pytest.skip(f"no python3.{minor} on this machine")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "firmware")}
    run = subprocess.run([path, str(REPLAY)], capture_output=True, text=True, env=env, timeout=280)
    assert run.returncode == 0, run.stderr
    assert [json.loads(line) for line in run.stdout.splitlines()] == expected()


@pytest.mark.slow
@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda e: e.name)
def test_a_step_allocates_nothing(emulator, tmp_path):
    """decide, learn, lose and a halving of every policy with the heap locked, 300 rounds each.

    One of the two heaps on ARM lies above 2^30 (with QEMU 7 the small one, with QEMU 10 the other), as on an ESP32-C6: there an
    address is no small integer.
    """
    script = tmp_path / "locked.py"
    script.write_text(
        """
import gc, micropython, uctypes
from h2t2.core.h2t2 import H2T2
from h2t2.core.policy import OFFLOAD
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.miss_guarantee import MissGuaranteed
from h2t2.core.miss_rate import MissLimited
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
locked(Adaptive(rdl_fp=900), [1, 9, 15])
locked(MissLimited(rdl_fp=900, miss_rate=300), [1, 9, 15])
locked(MissGuaranteed(rdl_fp=900, miss_rate=300, confidence=30000), [1, 9, 15])
locked(AdaptiveHead(3), [[20, -9, 100, 5], [250, 127, 30, -128], [130, 0, 7, 60]])
locked(AdaptiveClasses(costs), scores)
locked(AdaptiveClassHead(2, costs), [scores[0] + [-9, 100], scores[1] + [127, -128], scores[2] + [0, 7]])
locked(AdaptiveClasses(costs, label_costs=[[-900, 10000, 21000], [40000, -3000, 16000], [7000, 12000, -1]]), scores)
print(uctypes.addressof(bytearray(1)) & -(1 << 30))
"""
    )
    heaps = (0, 124 << 10) if emulator is ARM32 else (0,)
    addresses = [int(need(emulator).run(script, [], ROOT / "firmware", heap=heap)) for heap in heaps]
    assert any(addresses)
