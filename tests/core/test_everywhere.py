"""The core on every interpreter: the vector file, and a step that allocates nothing."""

import json
import os
import sys

import pytest
from command_line import ran
from interpreters import in_machine_code
from support import ROOT, need

from h2t2_lab import pythons
from h2t2_lab.emulators.built import WASM
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX

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
    run = ran([path, str(REPLAY)], env=env)
    assert [json.loads(line) for line in run.stdout.splitlines()] == expected()


LOCKED = """
import gc, micropython, uctypes
from h2t2.core.policy import OFFLOAD
from h2t2.core.{module} import {policy}
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
locked({policy}({arguments}), {inputs})
print(uctypes.addressof(bytearray(1)) & -(1 << 30))
"""
POLICIES = (  # module, policy, arguments, inputs of its steps
    ("h2t2", "H2T2", 'feedback="explored", exploration="epsilon"', "[0, 1, 2, 3]"),
    ("h2t2", "H2T2", "half_life=20", "[0, 1, 2, 3]"),
    ("h2t2", "H2T2", "bits=8, rdl_fp=900", "[0, 1, 2, 3]"),
    ("adaptive", "Adaptive", "rdl_fp=900", "[1, 9, 15]"),
    ("ordered", "Ordered", "rdl_fp=900", "[20, 150, 250]"),
    ("policies", "make", "'adaptive', dict(rdl_fp=900, miss_rate=300)", "[1, 9, 15]"),
    ("policies", "make", "'adaptive', dict(rdl_fp=900, miss_rate=300, confidence=30000)", "[1, 9, 15]"),
    ("policies", "make", "'adaptive', dict(ordered=True, miss_rate=300, confidence=30000)", "[20, 150, 250]"),
    ("policies", "make", "'adaptive', dict(features=1, miss_rate=300, confidence=30000)", "[[20, -9], [250, 127], [130, 0]]"),
    ("policies", "make", "'adaptive', dict(costs=costs, miss_rate=300, confidence=30000, normal=1)", "scores"),
    ("adaptive_head", "AdaptiveHead", "3", "[[20, -9, 100, 5], [250, 127, 30, -128], [130, 0, 7, 60]]"),
    ("adaptive_classes", "AdaptiveClasses", "costs", "scores"),
    (
        "adaptive_class_head", "AdaptiveClassHead", "2, costs, bits=3",  # smaller tables leave its modules more of the heap
        "[scores[0] + [-9, 100], scores[1] + [127, -128], scores[2] + [0, 7]]",
    ),
    (
        "adaptive_classes", "AdaptiveClasses",
        "costs, confusion=[[30000, 2768, 0], [0, 32768, 0], [0, 0, 32768], [35791, -3023, 0], [0, 32768, 0], [0, 0, 32768]]",
        "scores",
    ),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda e: e.name)
@pytest.mark.parametrize(("module", "policy", "arguments", "inputs"), POLICIES, ids=lambda value: str(value)[:30])
def test_a_step_allocates_nothing(emulator, compiled, tmp_path, module, policy, arguments, inputs):
    """decide, learn, lose and a halving of each policy with the heap locked, 300 rounds; in bytecode and in machine code.

    One of the two heaps on ARM lies above 2^30 (with QEMU 7 the small one, with QEMU 10 the other), as on an ESP32-C6: there an
    address is no small integer. The C library takes heaps below 128 KB from elsewhere than larger ones, so the small one holds
    the modules of one policy, not of all.
    """
    script = tmp_path / "locked.py"
    script.write_text(LOCKED.format(module=module, policy=policy, arguments=arguments, inputs=inputs))
    heaps = (0, 127 << 10) if emulator is ARM32 else (0,)
    runtime = in_machine_code(need(emulator), tmp_path) if compiled else ROOT / "firmware"
    addresses = [int(need(emulator).run(script, [], runtime, heap=heap)) for heap in heaps]
    assert any(addresses)
