"""Boards get the runtime without its constants and with fewer names: the same program."""

import ast
import os
import subprocess
import sys

import pytest
from support import ROOT

from h2t2 import modules
from h2t2.core.budget import Budget
from h2t2_tools.boards import folding, shortening

RUNTIME = sorted(path for path in (ROOT / "firmware/h2t2").rglob("*.py") if path.parent.name != "cpython")
SOURCE = b'''from . import defaults
from .numbers import ONE, times
from .policy import (
    OFFLOAD, Policy,
)

A, B = 2, ONE  # two
NAMES = ("A", "B")
TEXTS = ["A"]
HEADER = "<4sH"
SIZE = calcsize(HEADER) + len(TEXTS)
HEAD = calcsize(HEADER) + 1
C = -A << 1
LEVEL = 0
X = Y = 1


def f(x: "int" = defaults.BITS, *, A_=B):
    """A and B."""
    global LEVEL
    LEVEL = A
    from .policy import BETA
    return x + C, [OFFLOAD, BETA], times(f.A, NAMES + (B,)), X, HEAD
'''
FOLDED = b'''pass
from .numbers import times
from .policy import Policy



pass  # two
pass
TEXTS = ["A"]
pass
SIZE = calcsize('<4sH') + len(TEXTS)
pass
pass
LEVEL = 0
X = Y = 1


def f(x: "int" = 4, *, A_=32768):
    """A and B."""
    global LEVEL
    LEVEL = 2
    pass
    return x + (-4), [(-1), 2], times(f.A, ('A', 'B') + (32768,)), X, 7
'''


def board_path(path):
    return path.relative_to(ROOT / "firmware").as_posix()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folded")
    for path in RUNTIME:
        (folder / board_path(path)).parent.mkdir(parents=True, exist_ok=True)
        source = shortening.shortened(board_path(path), folding.folded(board_path(path), path.read_bytes()))
        (folder / board_path(path)).write_bytes(source)
    return folder


def test_values_stand_in_place_of_names_and_lines_stay():
    assert folding.folded("h2t2/core/new.py", SOURCE) == FOLDED
    assert folding.folded("new.py", SOURCE) == SOURCE


def test_what_an_f_string_names_stays():
    source = b'A = 1\nB = 2\nprint(f"{A}", B)\n'
    assert folding.folded("h2t2/new.py", source) == b'A = 1\npass\nprint(f"{A}", 2)\n'


def test_an_import_that_nobody_reads_goes():
    """As after the compiler has inlined what was imported, or struct.calcsize() has become a number."""
    source = b"from struct import calcsize, pack\nfrom .numbers import exp2\nprint(pack)\n"
    without = b"from struct import pack\npass\nprint(pack)\n"
    assert folding.without_unread("h2t2/core/new.py", source) == without
    assert folding.without_unread("new.py", source) == source


@pytest.mark.parametrize("path", folding.GIVEN)
def test_constructors_of_a_node_keep_no_defaults_of_arguments_that_it_gives(path, tree):
    """The tests of a node on emulated boards run them."""
    trees = [ast.parse(text) for text in ((ROOT / "firmware" / path).read_text(), (tree / path).read_text())]
    functions = [[node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] for tree in trees]
    assert any(any(function.args.kw_defaults) for function in functions[0])
    for plain, folded in zip(*functions):
        assert not any(folded.args.kw_defaults) and len(folded.args.defaults) == len(plain.args.defaults)


def test_every_name_that_a_folded_module_imports_exists(tree):
    names = {}
    for path in tree.rglob("*.py"):
        nodes = list(folding._executed(ast.parse(path.read_text())))
        names[path] = {name for node in nodes for name in folding._bound(node)}
        assert path.read_bytes().count(b"\n") == (ROOT / "firmware" / path.relative_to(tree)).read_bytes().count(b"\n")
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                assert not folding.CONSTANT.fullmatch(node.id) or node.id in names[path], (path, node.id)
    for path in names:
        modules = {}
        nodes = list(folding._executed(ast.parse(path.read_text())))
        for node in nodes:
            if not isinstance(node, ast.ImportFrom) or not node.level or (node.module or "").startswith("cpython"):
                continue
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                module = folder / f"{alias.name}.py"
                if module in names:
                    modules[alias.asname or alias.name] = module
                elif folder.with_suffix(".py") in names:
                    assert alias.name in names[folder.with_suffix(".py")], (path, alias.name)
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                assert node.attr in names[modules[node.value.id]], (path, node.attr)


def test_what_programs_import_stays(tree):
    for path, names in folding.IMPORTABLE.items():
        lines = (tree / path).read_text()
        assert all(f"{name} = " in lines for name in names)


def test_the_folded_core_makes_the_decisions_of_the_vectors(tree):
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    replay = [sys.executable, ROOT / "tests/portable/replay.py"]
    output = subprocess.run(replay, capture_output=True, text=True, check=True, env=environment).stdout
    assert output == (ROOT / "tests/vectors/core.jsonl").read_text()


def test_what_a_program_sets_is_no_constant():
    path = ROOT / "firmware/h2t2/link/ntp.py"
    assert b"\nPORT = 123\n" in folding.folded(board_path(path), path.read_bytes())


def test_a_constant_that_modules_share_stays_if_it_is_long():
    path = ROOT / "firmware/h2t2/core/curves.py"
    assert folding.folded(board_path(path), path.read_bytes()) == path.read_bytes()


PARAMETERS = b'''def f(self, number, act, text="", *, a=1):
    """Of a number."""
    return [number + a for b in (lambda value: value + number)(text)], self.number, act


class C:
    def __init__(self, number):
        self.number = number
'''


def test_parameters_without_a_default_are_letters():
    expected = PARAMETERS.replace(b"self, number, act", b"self, c, act").replace(b"[number + a", b"[c + a")
    expected = expected.replace(b"lambda value: value + number", b"lambda d: d + c")
    assert shortening.shortened("h2t2/new.py", PARAMETERS) == expected  # the runtime names act=
    assert shortening.shortened("new.py", PARAMETERS) == PARAMETERS


IMPORT = b"""from .node import Node


def f():
    from ..core.budget import (
        Budget as B, Other,
    )
    from ..missing import A
"""
LOAD = b"""from .node import Node


def f():
    B = load("core.budget.Budget"); Other = load("core.budget.Other")


    from ..missing import A
from ..modules import load"""


def test_a_program_may_name_what_it_passes():
    """device.learn(device.ticket, label=1), as docs/head.md writes it, works with compiled modules, too."""
    for path, method in (
        ("core/policy.py", b"def learn(self, ticket: int, label: int, beta"),
        ("link/link.py", b"def send(self, payload"),
    ):
        source = (ROOT / "firmware/h2t2" / path).read_bytes()
        assert method in source and method in shortening.shortened("h2t2/" + path, source)


def test_a_module_that_a_board_forgets_imports_by_a_text():
    assert shortening.shortened("h2t2/node/start.py", IMPORT) == LOAD
    assert shortening.shortened("h2t2/node/service.py", IMPORT) == IMPORT


def test_load_imports():
    assert modules.load("core.budget.Budget") is Budget
    with pytest.raises(ImportError):
        modules.load("core.nothing.Budget")
