"""Folds the constants of the runtime's modules into the code of a board, which keeps neither their names nor entries.

A constant is a name in capitals that its module binds once, at its top level, to an integer, a text, bytes or a tuple of them.
MicroPython would keep a name, and an entry in the dictionary of each module that defines or imports it. A long text that
several modules read stays where it is. Lines stay where they are, too.
"""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import accumulate
from struct import calcsize
from typing import Any

from ..common import places

SMALL = 1 << 30  # smaller integers take no heap on a board of 32 bits
SHORT = 10  # characters of a text that a board keeps once, however many modules contain it
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
# modules whose constants stay: modules.text() reads them, or programs of a board, with a policy alone or a link of their own
IMPORTABLE = {
    "h2t2/core/policy.py": {"OFFLOAD"},
    "h2t2/core/numbers.py": {"ONE"},
    "h2t2/link/datagrams.py": {"ADDRESS", "AT_ONCE", "SIZE", "VIA"},
    "h2t2/link/frames.py": {"ANSWER", "COMMAND", "REPLY", "REQUEST", "STATE"},
    "h2t2/link/wire.py": {"OK", "NOBODY", "INT8", "UINT8", "FLOAT32", "RAW"},
    "h2t2/link/statuses.py": {"STATUS"},
    "h2t2/ldl/steps.py": {"NAMES"},
    "h2t2/node/remarks.py": {"TEXTS"},
    "h2t2/node/run.py": {"ONLY_AT_START"},
    "h2t2/node/service.py": {"SOURCES"},
    "h2t2/node/start.py": {"ONLY_TO_OPEN"},
}
# names whose modules read them at each use, because a board's program may set them, or that are compared by identity
SETTABLE = {"h2t2/link/names.py": {"PORT"}, "h2t2/link/ntp.py": {"PORT"}, "h2t2/node/sensing.py": {"PARTIAL"}}
# modules whose constructors get all their named arguments of start.py: a board keeps no defaults of these
GIVEN = ("h2t2/node/keeper.py", "h2t2/node/sensing.py", "h2t2/node/service.py")
# values that differ on other machines
ON_BOARDS = {path: {"IS_BOARD": 1} for path in ("h2t2/modules.py", "h2t2/core/policy.py")}
Value = int | str | bytes | tuple[Any, ...]
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip


def folded(path: str, source: bytes) -> bytes:
    """Return a module without its constants and those that it imports; a module of another package as it is.

    Args:
        path: Path on a board: h2t2/core/policy.py and so on.
        source: Source of the module.
    """
    return _Module(path, source).folded() if path.startswith("h2t2/") else source


def without_unread(path: str, source: bytes) -> bytes:
    """Return a module of the runtime without the names that it imports at its top level and nobody reads.

    Args:
        path: As of folded().
        source: Source of the module without constants, whose functions the compiler may have inlined.
    """
    if not path.startswith("h2t2/"):
        return source
    tree = ast.parse(source)
    nodes = [inner for node in _executed(tree) for inner in (ast.walk(node) if isinstance(node, ast.JoinedStr) else [node])]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    read |= {name for other, name in _read_elsewhere() if other == path}
    edits = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            aliases = [alias for alias in statement.names if (alias.asname or alias.name) in read]
            if len(aliases) < len(statement.names):
                edits.append((*span(statement, line_starts(source)), _import(statement, aliases)))
    return edited(source, edits)


def _import(statement: ast.ImportFrom, names: list[ast.alias]) -> str:
    """Return the source of an import of some of a statement's names."""
    joined = ", ".join(ast.unparse(alias) for alias in names)
    return f"from {'.' * statement.level}{statement.module or ''} import {joined}" if names else "pass"


def runtime_paths() -> list[str]:
    """Return the paths on a board of the runtime's modules, but not of those for CPython only."""
    paths = [file.relative_to(places.RUNTIME.parent).as_posix() for file in places.RUNTIME.rglob("*.py")]
    return [path for path in paths if not path.startswith("h2t2/cpython/")]


def imported_path(path: str, node: ast.ImportFrom) -> str:
    """Return the path, without .py, of the module or folder that an import in the module at `path` names."""
    return "/".join([*path.split("/")[: -node.level], *(node.module or "").split(".")]).rstrip("/")


@cache
def _of_runtime(path: str) -> _Module | None:
    """Return a module of this installation's runtime; None if there is none."""
    file = places.RUNTIME.parent / path
    return _Module(path, file.read_bytes()) if file.is_file() else None


@cache
def _read_elsewhere() -> frozenset[tuple[str, str]]:
    """Return the names that a module of a board reads of another: the other's path and the name."""
    return frozenset(pair for module in map(_of_runtime, runtime_paths()) if module for pair in module.read())


class _Module:
    """A module of the runtime."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.tree = ast.parse(source)
        self.nodes = list(_executed(self.tree))
        self.bound = Counter(name for node in self.nodes for name in _bound(node))

    @cached_property
    def origins(self) -> dict[str, tuple[_Module, str]]:
        """By the names here: the module that each import names, and its constant, "" for the module itself."""
        origins = {}
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.level:
                path = imported_path(self.path, node)
                for alias in node.names:
                    submodule = _of_runtime(f"{path}/{alias.name}.py")
                    origin = submodule or _of_runtime(f"{path}.py")
                    if origin and self.bound[alias.asname or alias.name] == 1:
                        origins[alias.asname or alias.name] = origin, "" if submodule else alias.name
        return origins

    def read(self) -> Iterator[tuple[str, str]]:
        """Yield the names that it reads of other modules: the other's path and the name."""
        for module, name in self.origins.values():
            if name:
                yield module.path, name
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                origin, constant = self.origins.get(node.value.id, (None, ""))
                if origin and not constant:
                    yield origin.path, node.attr

    @cached_property
    def defined(self) -> dict[str, Value]:
        """Its own constants."""
        values: dict[str, Value] = {}
        for statement in self.tree.body:
            for name, expression in _assigned(statement):
                value = ON_BOARDS.get(self.path, {}).get(name) or self._value(expression, values)
                is_constant = CONSTANT.fullmatch(name) and self.bound[name] == 1 and name not in SETTABLE.get(self.path, set())
                if is_constant and value is not None and self._saves_heap(name, value):
                    values[name] = value
        return values

    def _saves_heap(self, name: str, value: Value) -> bool:
        """Return whether a board needs less heap with a value in place of its name."""
        if isinstance(value, int):
            return abs(value) < SMALL
        return isinstance(value, str) and len(value) <= SHORT or (self.path, name) not in _read_elsewhere()

    def _value(self, node: ast.AST, own: dict[str, Value]) -> Value | None:
        """Return the value of an expression of literals and constants; None for any other. own: constants of this module."""
        match node:
            case ast.Constant(int() | str() | bytes() as value) if not isinstance(value, bool):
                return value
            case ast.Tuple(elements):
                values = [self._value(element, own) for element in elements]
                return None if None in values else tuple(values)
            case ast.Call(ast.Name("calcsize"), [argument]):
                layout = self._value(argument, own)
                return calcsize(layout) if isinstance(layout, str | bytes) else None
            case ast.UnaryOp(ast.USub(), operand):
                positive = self._value(operand, own)
                return -positive if isinstance(positive, int) else None
            case ast.BinOp(left, kind, right) if type(kind) in OPERATORS:
                a, b = self._value(left, own), self._value(right, own)
                return None if a is None or b is None else OPERATORS[type(kind)](a, b)
            case ast.Name() | ast.Attribute():
                return self._constant(node, own)
        return None

    def _constant(self, node: ast.AST, own: dict[str, Value]) -> Value | None:
        """Return the value of a constant that a name stands for; None for anything else."""
        match node:
            case ast.Name(name, ast.Load()) if CONSTANT.fullmatch(name):
                module, constant = self.origins.get(name, (None, ""))
                return module.defined.get(constant) if module else own.get(name)
            case ast.Attribute(ast.Name(name), attribute, ast.Load()) if CONSTANT.fullmatch(attribute):
                module, constant = self.origins.get(name, (None, ""))
                return module.defined.get(attribute) if module and not constant else None
        return None

    def folded(self) -> bytes:
        """Return its source with the values of all constants in place of their names."""
        starts = line_starts(self.source)
        return edited(self.source, [(*span(node, starts), text) for node, text in self._replacements(self.tree)])

    def _replacements(self, node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
        """Yield the nodes that change, in their order, each with its new source."""
        for child in _children(node):
            value = self._constant(child, self.defined)
            if value is not None:
                assert isinstance(child, ast.expr)
                yield child, f"({value})" if isinstance(value, int) and value < 0 else repr(value)
            elif isinstance(child, ast.arguments) and self.path in GIVEN:
                yield from [(_behind(name, value), "") for name, value in zip(child.kwonlyargs, child.kw_defaults) if value]
                yield from self._replacements(ast.Tuple(child.defaults))
            elif isinstance(child, ast.ImportFrom) and any(map(self._is_folded, child.names)):
                yield child, _import(child, [alias for alias in child.names if not self._is_folded(alias)])
            elif isinstance(child, ast.stmt) and {name for name, _ in _assigned(child)} & {*self.defined}:
                gone = {*self.defined} - IMPORTABLE.get(self.path, set())
                entries = [(name, value) for name, value in _assigned(child) if name not in gone]
                yield child, "; ".join(f"{name} = {ast.unparse(value)}" for name, value in entries) or "pass"
            else:
                yield from self._replacements(child)

    @cached_property
    def _loads(self) -> Counter[str]:
        """How often each name is read, except for the constant of a module that it names."""
        loads = Counter(node.id for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        attributes = [node for node in self.nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
        return loads - Counter(node.value.id for node in attributes if self._constant(node, {}) is not None)  # type: ignore[attr-defined]

    def _is_folded(self, alias: ast.alias) -> bool:
        """Return whether nothing of an import is left: a constant, or a module that was imported for its constants."""
        local_name = alias.asname or alias.name
        module, name = self.origins.get(local_name, (None, ""))
        constants = module.defined if module else {}
        return name in constants if name else bool(constants) and not self._loads[local_name]


def _behind(argument: ast.arg, default: ast.expr) -> ast.expr:
    """Return a node in the place of a parameter's default, from the end of its name or annotation on."""
    node = ast.copy_location(ast.Constant(0), default)
    node.lineno, node.col_offset = argument.end_lineno or 0, argument.end_col_offset or 0
    return node


def line_starts(source: bytes) -> list[int]:
    """Return the number of the first byte of each line."""
    return [0, *accumulate(map(len, source.splitlines(keepends=True)))]


def span(node: ast.expr | ast.stmt, starts: list[int]) -> tuple[int, int]:
    """Return the first byte of a node, and the one behind its last. starts: of line_starts()."""
    assert node.end_lineno and node.end_col_offset
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def edited(source: bytes, edits: list[tuple[int, int, str]]) -> bytes:
    """Return a source with texts in place of bytes: (first byte, the byte behind the last, text). Lines stay where they are."""
    for start, end, text in sorted(edits, reverse=True):
        source = source[:start] + text.encode() + b"\n" * source.count(b"\n", start, end) + source[end:]
    return source


def _children(node: ast.AST) -> list[ast.AST]:
    """Return what a board executes of a node's children, in the order of the source: no annotations, no `if 0`."""
    match node:
        case ast.If(ast.Constant(0)):
            return [*node.orelse]
        case ast.arg() | ast.JoinedStr():
            return []
        case ast.FunctionDef():
            return [*node.decorator_list, node.args, *node.body]
        case ast.AnnAssign():
            return [node.target, *([node.value] if node.value else [])]
    return sorted(ast.iter_child_nodes(node), key=lambda child: (getattr(child, "lineno", 0), getattr(child, "col_offset", 0)))


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    for child in _children(node):
        yield child
        yield from _executed(child)


def _assigned(statement: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return the names that a statement assigns expressions to, one each: A = 1, or A, B = 1, 2."""
    match statement:
        case ast.Assign([ast.Name(name)], value):
            return [(name, value)]
        case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
            return [(name.id, value) for name, value in zip(names, values) if isinstance(name, ast.Name)]
    return []


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a node binds; those of a global statement, and of an f-string, whose places are unknown, twice."""
    match node:
        case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name) | ast.FunctionDef(name) | ast.ClassDef(name):
            return [name]
        case ast.ExceptHandler(name=str(name)):
            return [name]
        case ast.Import(names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
        case ast.Global(names):
            return 2 * names
        case ast.JoinedStr():
            return 2 * [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return []
