"""Saves names of a compiled module: a board keeps each name that it has ever met, which takes some sixteen bytes of heap.

Parameters without a default become letters. Those of constructors stay, those that a call of the runtime names, and those of
the interfaces that a user's program calls or implements. In modules that a board soon forgets, private functions become
letters, and an import inside a function becomes a text, which counts only if the function runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from string import ascii_lowercase

from h2t2.node.run import ONLY_AT_START
from h2t2.node.start import ONLY_TO_OPEN

from ..common import places
from .folding import edited, line_starts, span

Function = ast.FunctionDef | ast.Lambda
INTERFACES = ("core/policy.py", "ldl/ldl.py", "link/link.py")  # whose methods a program may call by the parameters' names
PASSING = {
    *ONLY_AT_START,
    *ONLY_TO_OPEN,
    "ldl.bounds",
}  # modules that a board forgets; in others a text would take more than names


def shortened(path: str, source: bytes) -> bytes:
    """Return a module of the runtime with fewer names; one of another package as it is. Lines stay where they are.

    Args:
        path: Path on a board: h2t2/core/policy.py and so on.
        source: Source of the module.
    """
    if not path.startswith("h2t2/"):
        return source
    tree = ast.parse(source)
    starts = line_starts(source)
    last = b""  # line of the module
    edits = []  # (first byte, the byte behind the last, the text in their place)
    passing = _module(path) in PASSING
    private = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] == "_"] if passing else []
    functions = dict(zip(private, (f"_{letter}" for letter in ascii_lowercase)))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.FunctionDef):
            continue
        name = node.id if isinstance(node, ast.Name) else node.name
        if name in functions:
            start = starts[node.lineno - 1] + node.col_offset + 4 * isinstance(node, ast.FunctionDef)  # behind "def "
            edits.append((start, start + len(name), functions[name]))
    for function in _outermost(tree):
        letters = _letters(function)
        for node in ast.walk(function):
            name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""
            if name in letters:
                assert isinstance(node, ast.arg | ast.Name)
                start = starts[node.lineno - 1] + node.col_offset
                edits.append((start, start + len(name), letters[name]))
            statement = _load(path, node)
            if statement:
                assert isinstance(node, ast.ImportFrom)
                edits.append((*span(node, starts), statement))
                last = b"from ..modules import load"
    return edited(source, edits) + last


def _outermost(node: ast.AST) -> Iterator[Function]:
    """Yield the functions that no other function contains."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child
        else:
            yield from _outermost(child)


def _letters(function: Function) -> dict[str, str]:
    """Return letters for the parameters of a function and of those inside it, by their names."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.JoinedStr | ast.Nonlocal | ast.Global) for node in nodes):
        return {}
    used = {getattr(node, field) for node in nodes for field in ("id", "arg", "name", "asname") if hasattr(node, field)}
    names = [name for node in nodes if isinstance(node, Function) for name in _by_position(node) if len(name) > 1]
    return dict(zip(dict.fromkeys(names), (letter for letter in ascii_lowercase if letter not in used)))


def _by_position(function: Function) -> list[str]:
    """Return the parameters of a function that every call gives by position."""
    if isinstance(function, ast.FunctionDef) and function.name == "__init__":
        return []
    arguments = function.args
    names = [argument.arg for argument in arguments.args[: len(arguments.args) - len(arguments.defaults)]]
    return [name for name in names if name != "self" and name not in _keywords()]


@cache
def _keywords() -> frozenset[str]:
    """Return the names by which the runtime or a user's program may give an argument."""
    trees = {file: ast.parse(file.read_bytes()) for file in places.RUNTIME.rglob("*.py")}
    given = [node.arg for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg]
    interfaces = [node for path in INTERFACES for node in ast.walk(trees[places.RUNTIME / path])]
    methods = [node for node in interfaces if isinstance(node, ast.FunctionDef) and node.name[0] != "_"]
    names = [[argument.arg for argument in method.args.args] for method in methods]
    return frozenset([*given, *(name for arguments in names if arguments[:1] == ["self"] for name in arguments)])


def _module(path: str) -> str:
    return path.removeprefix("h2t2/").removesuffix(".py").replace("/", ".")


def _load(path: str, node: ast.AST) -> str:
    """Return the statement that takes the place of an import; "" if it stays."""
    module = _module(path)
    if module not in PASSING or not isinstance(node, ast.ImportFrom) or not node.level or not node.module:
        return ""
    names = [*module.split(".")[: -node.level], *node.module.split(".")]
    if not places.RUNTIME.joinpath(*names).with_suffix(".py").is_file():
        return ""
    return "; ".join(f'{alias.asname or alias.name} = load("{".".join(names)}.{alias.name}")' for alias in node.names)
