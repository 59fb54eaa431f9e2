"""The machine code that the compiler makes of the policies computes the plain code's integers."""

import ast
import os
import subprocess
import sys

import pytest
from interpreters import in_machine_code
from support import ROOT, need

from h2t2_lab.bench import compiled, on_boards
from h2t2_lab.boards import drive
from h2t2_lab.emulators import built
from h2t2_tools.boards import compiler, cross, mpy_file, node_heap
from h2t2_tools.boards.compiler.program import modules
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX

CODE = """
from array import array
from binascii import crc32
from h2t2.core import adaptive, forecaster, numbers
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.policy import OFFLOAD
from h2t2.core.numbers import Rng
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
    weight = ints("i", [0] * 16)
    loss = ints("i", [below(1 << 23) >> below(23) for _ in range(16)])
    forecaster.weigh(weight, loss, 16, 16)
    add(list(weight))
    policy = adaptive.Adaptive(bits, seed=n, rdl_fp=n * 100)
    counts = policy.forecaster
    for i in range(len(labels)):
        counts.labels[i] = labels[i]
        counts.events[i] = events[i]
    for i in range(16):
        counts.loss[i] = loss[i]
    counts.derive()
    for i in range(20):
        for i in range(7):
            policy.effective[i] = below(32769)
        add(policy.decide(below(1 << bits)), policy.wish, policy.guess, policy.lead, list(counts.belief))
        if policy.ticket:
            policy.learn(policy.ticket, below(2), below(32769))
            add(policy.lead, list(counts.loss), list(counts.weight), list(counts.labels), list(counts.events))
print("forecaster", crc)
for n in range(12):
    bits = 1 + below(4)
    policy = AdaptiveHead(1 + below(40), bits, window=2, seed=n)
    forecaster = policy.forecaster
    heads = forecaster.heads
    labels, events = forecaster.labels, forecaster.events
    size = 2 << bits
    for i in range(4 * size):
        labels[i] = below(32000) >> below(15)
        events[i] = below(labels[i] + 1)
        if n % 2 and i >= size:  # all memories are equal
            labels[i] = labels[i - size]
            events[i] = events[i - size]
    for i in range(len(forecaster.loss)):
        forecaster.loss[i] = below(1 << 23) >> below(23)
    forecaster.derive()
    forecaster.equal = n % 2 > 0
    for i in range(7):
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
            add(list(labels), list(events))
    add(list(policy.saving))
    forecaster.see(sample)
    forecaster.estimate(0)
    forecaster.recall(0)
    forecaster.learn(1, 1)
    add(list(heads.x), list(heads.g), list(forecaster.belief), list(forecaster.weight))
print("head", crc)
"""


@pytest.fixture(scope="module")
def plain_output(tmp_path_factory):
    script = tmp_path_factory.mktemp("plain") / "compared.py"
    script.write_text(CODE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "firmware")}
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=280, env=environment)
    return run.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("board", [ARM32, UNIX], ids=lambda board: board.name)
def test_compiled_functions_compute_the_integers_of_the_plain_code(board, plain_output, tmp_path):
    script = tmp_path / "compared.py"
    script.write_text(CODE)
    assert need(board).run(script, [], in_machine_code(board, tmp_path)).split() == plain_output


@pytest.mark.whole
@pytest.mark.parametrize(
    "board", [built.XTENSA, built.XTENSA_NEXT, catalogue.PICO, built.CORTEX_M3, built.RV32], ids=lambda board: board.name
)
def test_compiled_functions_compute_the_same_on_emulated_boards(board, plain_output):
    without_floats = isinstance(board, built.Xtensa)  # its build has no name `float`, which checked_integer() asks for
    prefix = "from h2t2.core import policy\npolicy.float = str\n" if without_floats else ""
    assert drive.run(need(board), prefix + CODE, {}, 280).split() == plain_output


@pytest.mark.parametrize("processor", ["armv6m", "armv7emsp", "xtensawin", "rv32imc"])
def test_the_functions_of_a_step_become_machine_code(processor):
    """All but the interface that gives a parameter a default. Rare functions stay bytecode."""
    refused = {}
    names = set()
    for path, module in modules().items():
        result = compiler.compiled(path, module.source, processor)
        names.update(f"{path.split('/')[-1][:-3]}.{name}" for name in result.functions)
        refused.update(result.refused)
    assert {reason for _, reason in refused.values()} == {"a parameter with a default"}
    assert {name.split(".")[-1] for name in refused} == {"learn"}
    assert {"h2t2.H2T2.decide", "adaptive_classes.AdaptiveClasses.decide", "class_heads.ClassHeads.learn"} <= names
    assert {"policy.Tickets.open", "numbers.Rng.draw"} <= names
    assert {"miss_rate.MissRate.check", "miss_guarantee.MissGuarantee.check"} <= names
    assert {"budget.Budget.earn", "budget.Budget.affords", "budget.Budget.price", "budget.Budget.spend"} <= names
    assert {"spectrum.transform", "spectrum.measure"} <= names
    assert not {"coarsen", "rebuild", "forget"} & {name.split(".")[-1] for name in names}


def test_arrays_are_passed_as_they_are_annotated():
    """A function compiled for words of 16 bits would read an array of 32 bits wrongly."""
    source = b"""from array import array
def decide(a: "UInt16s") -> int:
    return a[0]
def learn(b: "Int32s") -> int:
    return decide(b)
"""
    with pytest.raises(TypeError, match="core/x.py:5: a of decide is UInt16s, not Int32s"):
        compiler.compiled("h2t2/core/x.py", source, "armv6m")


@pytest.mark.parametrize(("head", "met"), [(190_000, True), (220_000, False)])
def test_a_goal_for_a_head_counts_what_it_adds(head, met):
    counts = {"H2T2": 60_001, "adaptive": 140_000, "head": head}
    rows = [{"board": "pico", "what": on_boards.LABELS[name], "count": count} for name, count in counts.items()]
    assert [goal.met for goal in on_boards.goals(rows)] == [False, True, met]
    assert str(on_boards.goals(rows)[2]).endswith(f"{'met' if met else 'missed'} ({head - 140_000:,})")


def test_flash_counts_loaded_machine_code_as_heap():
    """Behind names, a text, a tuple with a float, and bytes. On the emulated Pico each function takes one block less."""
    source = b"import micropython\nT = ('a text of some length', (1, 2.5), b'12')\n" + b"".join(
        b"@micropython.viper\ndef %s(x: int) -> int:\n    return x%s\n" % (name, more)
        for name, more in ((b"first", b" + 1 << 3 ^ x"), (b"second", b""))
    )
    files = {f"a/{name}.mpy": cross.compiled(f"a/{name}.py", source, "armv6m") for name in ("b", "c")}
    one = mpy_file.machine_code(files["a/b.mpy"])
    assert one % 16 == 0 and len(files["a/b.mpy"]) // 2 < one < len(files["a/b.mpy"])
    assert node_heap.machine_code(files, ["a.b"]) == one and node_heap.machine_code(files, ["a.b", "a.c", "a.d"]) == 2 * one
    assert mpy_file.machine_code(cross.compiled("a/d.py", b"def f():\n    return lambda: 1\n", None)) == 0


def test_the_machine_code_of_each_function_is_counted():
    """In classes, and beside code that has none."""
    first = "    @micropython.viper\n    def first(self, x: int) -> int:\n        return x\n"
    second = "@micropython.viper\ndef second(x: int) -> int:\n    return x << 3 ^ x\n"
    source = f"import micropython\nclass A:\n{first}B = [n for n in (1, 2)]\n{second}def third(x):\n    return lambda: x\n"
    sizes, alone = (
        compiled.function_sizes(cross.compiled("a/b.py", text.encode(), "armv6m"), ast.parse(text))
        for text in (source, f"import micropython\n{second}")
    )
    assert [*sizes] == ["A.first", "second", "third"] and 0 < sizes["A.first"] != sizes["second"] > sizes["third"] == 0
    assert sizes["second"] == alone["second"]


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
    sources = [path.read_bytes() for path in (ROOT / "firmware/h2t2").rglob("*_viper.py")]
    sources += [compiler.compiled(path, module.source, "rv32imc").source for path, module in modules().items()]
    functions = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    assert not [(function.name, *passed_pointers(function)) for function in functions if [*passed_pointers(function)]]
