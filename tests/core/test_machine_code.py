"""The policies' machine code on 32-bit ARM computes the plain code's integers."""

import ast
import subprocess
import sys

import pytest
from interpreters import need
from support import ROOT

from h2t2_tools.boards import flash, kinds, mpy_file
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.proof.bench import on_boards

CORE = sorted((ROOT / "firmware/h2t2").rglob("*.py"))
CODE = """
from array import array
from binascii import crc32
from h2t2.core import adaptive, forecaster, numbers
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.policy import OFFLOAD
from h2t2.core.rng import Rng
rng = Rng(3)
def below(n):
    return (rng.draw() << 15 | rng.draw()) % n
def either(n):
    return below(2 * n) - n
crc = 0
def add(*integers):
    global crc
    crc = crc32(repr(integers).encode(), crc)
def ints(kind, values):
    return array(kind, list(values))
for _ in range(60):
    add(numbers.exp2(below(1 << 29) >> below(20), below(9)))
    add(numbers.times(below(1 << 29), below(32769)))
    loss = ints("i", [0] * 4)
    numbers.divide(either(1 << 28) >> below(15), (1 << 14) + below((1 << 29) - (1 << 14)), loss, 2)
    add(list(loss), adaptive.logistic(either(1 << 28) >> below(20), below(9)))
print("numbers", crc)
for n in range(12):
    bits = 1 + below(4)
    size = 2 << bits
    labels = ints("H", [below(32000) >> below(15) for _ in range(4 * size)])
    events = ints("H", [below(n + 1) for n in labels])
    p = ints("i", [0] * 16)
    weight = ints("i", p)
    belief = ints("i", [0] * 4)
    loss = ints("i", [below(1 << 23) >> below(23) for _ in range(16)])
    k = below(1 << bits)
    forecaster.forecasts(labels, events, 1 + below(32766), p, bits, k)
    forecaster.weigh(weight, loss)
    forecaster.judge(loss, p, n & 1)
    forecaster.mean(labels, weight, p, belief, size, (size >> 1) + k)
    forecaster.count(labels, events, size, (size >> 1) + k, n & 1)
    costs = ints("i", [below(32769) for _ in range(5)])
    add(list(p), list(weight), list(loss), list(belief), list(labels), list(events))
    add(adaptive.offload_wish(belief, costs, below(32769) >> below(12)))
print("forecaster", crc)
for n in range(12):
    bits = 1 + below(4)
    policy = AdaptiveHead(1 + below(40), bits, window=2, seed=n)
    forecaster = policy.forecaster
    heads = forecaster.heads
    counts = list(zip([forecaster.labels] + forecaster.head_labels, [forecaster.events] + forecaster.head_events))
    for labels, events in counts:
        for i in range(len(labels)):
            labels[i] = below(32000) >> below(15)
            events[i] = below(labels[i] + 1)
        size = len(labels) // 4
        for i in range(size, (1 + n % 4) * size):  # as many memories are equal
            labels[i] = labels[i - size]
            events[i] = events[i - size]
    for i in range(len(forecaster.loss)):
        forecaster.loss[i] = below(1 << 23) >> below(23)
    forecaster.derive()
    for i in range(5):
        policy.effective[i] = below(32769)
    for i in range(9):
        sample = ints("h", [below(256)] + [below(256) - 128 for _ in range(policy.features)])
        if i & 1:
            policy.sample = sample
        action = policy.decide(sample)
        add(action, list(forecaster.forecast), list(forecaster.belief), list(heads.g))
        if action == OFFLOAD and i % 3 != 1:
            policy.learn(policy.ticket - i % 3 // 2, below(2))  # of this sample or of the one before
            add(list(heads.weights), list(heads.roots), list(heads.rows), list(heads.answers), heads.taught, heads.turn)
            add(list(forecaster.loss), list(forecaster.weight), forecaster.surprise)
            add([(list(labels), list(events)) for labels, events in counts])
    saving = policy.saving
    add(list(saving.fees), list(saving.events), list(saving.counts), list(saving.totals))
    forecaster.see(sample)
    forecaster.estimate(0)
    forecaster.recall(0)
    forecaster.learn(1, 1)
    add(list(heads.x), list(heads.g), list(forecaster.belief), list(forecaster.weight))
print("head", crc)
"""


def test_every_function_on_arm_computes_the_integers_of_the_plain_code(tmp_path):
    script = tmp_path / "compared.py"
    script.write_text(CODE + "assert numbers.MACHINE_CODE\n")
    on_arm = need(ARM32).run(script, CORE, ROOT / "firmware")
    script.write_text(CODE + "assert not numbers.MACHINE_CODE\n")
    here = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=280)
    assert on_arm.split() == here.stdout.split()


def test_words_of_64_bits_run_the_plain_code(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text("from h2t2.core.numbers import MACHINE_CODE\nprint(MACHINE_CODE)\n")
    assert need(UNIX).run(script, CORE, ROOT / "firmware").split() == ["False"]


@pytest.mark.parametrize(("head", "met"), [(190_000, True), (220_000, False)])
def test_a_goal_for_a_head_counts_what_it_adds(head, met):
    counts = {"H2T2": 60_001, "adaptive": 140_000, "head": head}
    rows = [{"board": "pico", "what": on_boards.LABELS[name], "count": count} for name, count in counts.items()]
    assert [goal["met"] for goal in on_boards.goals(rows)] == [False, True, met]
    assert on_boards.sentence(on_boards.goals(rows)[2]).endswith(f"{'met' if met else 'missed'} ({head - 140_000:,})")


def test_flash_counts_loaded_machine_code_as_heap():
    """Behind names, a text, a tuple with a float, and bytes. On the emulated Pico each function takes one block less."""
    source = b"import micropython\nT = ('a text of some length', (1, 2.5), b'12')\n" + b"".join(
        b"@micropython.viper\ndef %s(x: int) -> int:\n    return x%s\n" % (name, more)
        for name, more in ((b"first", b" + 1 << 3 ^ x"), (b"second", b""))
    )
    files = {f"a/{name}.mpy": kinds.compiled(f"a/{name}.py", source, "armv6m") for name in ("b", "c")}
    one = mpy_file.machine_code(files["a/b.mpy"])
    assert one % 16 == 0 and len(files["a/b.mpy"]) // 2 < one < len(files["a/b.mpy"])
    assert flash.machine_code(files, ["a.b"]) == one and flash.machine_code(files, ["a.b", "a.c", "a.d"]) == 2 * one
    assert mpy_file.machine_code(kinds.compiled("a/d.py", b"def f():\n    return lambda: 1\n", None)) == 0


def passed_pointers(function):
    """The calls that pass a viper pointer on as an object."""
    pointers = {each.arg for each in function.args.args if each.annotation and ast.unparse(each.annotation).startswith("ptr")}
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = {call: call.func.id for call in calls if isinstance(call.func, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and names.get(node.value, "").startswith("ptr"):
            pointers |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for call in calls:
        passed = {each.id for each in call.args if isinstance(each, ast.Name)}
        if pointers & passed and not names.get(call, "").startswith(("ptr", "int", "uint")):
            yield ast.unparse(call)


def test_no_pointer_is_passed_on():
    """A call makes an integer of it, which takes heap where an address is above 0x3fffffff: in QEMU 11, on an ESP32-P4."""
    source = "def f(a: ptr32, b):\n    c = ptr8(b)\n    d = ptr16(int(c) + 2)\n    g(b, a)\n    g(c)\n    g(d[0], len(b))"
    assert [*passed_pointers(ast.parse(source).body[0])] == ["g(b, a)", "g(c)"]
    for path in (ROOT / "firmware/h2t2").rglob("*_viper.py"):
        for function in ast.parse(path.read_text()).body:
            if isinstance(function, ast.FunctionDef):
                assert not [*passed_pointers(function)], (path, function.name)
