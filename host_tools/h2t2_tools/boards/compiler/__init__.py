"""The compiler of the runtime for boards: it writes the functions of a step for MicroPython's viper emitter.

Nobody writes machine code by hand: the plain functions of the core are the source. docs/numbers.md says which ones can be
compiled. `program` reads the types, `simplify` and `joining` rewrite a function in simpler
statements, and `machine_code` writes it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from ..folding import edited, line_starts, span, without_unread
from .machine_code import written
from .program import CORE, KERNELS, Function, Module, called_in_a_step, modules
from .simplify import Unsupported, global_name, is_contained, simplified

WIDE = "x64"  # the processor whose words have 64 bits


@dataclass(frozen=True)
class Compiled:
    """A module for a processor.

    Attributes:
        source: Its source, with functions for the viper emitter.
        functions: Names of these functions, those of a class with its name.
        inlined: Names of the functions that they contain.
        refused: Functions of a step that stay bytecode: name -> line and reason.
    """

    source: bytes
    functions: tuple[str, ...] = ()
    inlined: frozenset[str] = frozenset()
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)


def compiled(path: str, source: bytes, processor: str | None) -> Compiled:
    """Compile the functions of a module that a step calls, and leave out those that nothing calls any more.

    No module keeps a name that it imports and does not read.

    Args:
        path: Path on a board: h2t2/core/policy.py and so on.
        source: Source of the module, its constants folded.
        processor: As mpy-cross names it; None: it stays bytecode.
    """
    if not processor or not is_compiled(path):
        return Compiled(without_unread(path, source))
    module = _machine_code(path, source, processor == WIDE)
    return replace(module, source=without_unread(path, _without_unused(module, processor == WIDE)))


def complaints(path: str, module: Compiled) -> list[str]:
    """Return file, line and reason of each function of a step that stays bytecode. path: of the module."""
    return [f"{path}:{line}: {name}: {reason}" for name, (line, reason) in module.refused.items()]


def is_compiled(path: str) -> bool:
    """Return whether a module of the runtime has functions that become machine code. path: on a board."""
    return path.startswith(CORE) or path in KERNELS


@lru_cache(maxsize=512)
def _machine_code(path: str, source: bytes, wide: bool) -> Compiled:
    module = modules().get(path)
    if module is None or module.source != source:
        module = Module(path, source)
    starts = line_starts(source)
    edits = []
    imports: set[tuple[str, str]] = set()
    names = []
    inlined: set[str] = set()
    methods = {method for method in _called_by_name() if method.module is module}
    refused = {}
    for function in _of_a_step(module):
        full_name = f"{function.owner.name}.{function.name}" if function.owner else function.name
        try:
            simple = simplified(function)
            text = written(function, simple, wide)
        except Unsupported as error:
            refused[full_name] = error.line, error.reason
            continue
        names.append(full_name)
        imports |= simple.imports
        inlined |= {each.name for each in simple.inlined}
        methods |= {method for method in simple.called if method.module is module}
        edits.append((*span(function.node, starts), textwrap.indent(text, " " * function.node.col_offset).lstrip()))
    lines = []
    for home in sorted({home for home, _ in imports}):
        imported = sorted(name for module_path, name in imports if module_path == home)
        lines.append(f"from {_relative(path, home)} import {', '.join(imported)}\n")
    own = [f"\n{text} = {text.replace('_', '.', 1)}" for text in sorted(map(global_name, methods))]
    written_source = "".join(lines).encode() + edited(source, edits) + "".join(own).encode()
    return Compiled(written_source, tuple(names), frozenset(inlined), refused)


def _without_unused(module: Compiled, wide: bool) -> bytes:
    """Return a module without the functions that are inlined wherever they were called."""
    unused = _unused(wide)
    tree, starts = ast.parse(module.source), line_starts(module.source)
    edits = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in unused:
            start, end = span(node, starts)
            edits.append((min([start, *(span(each, starts)[0] - 1 for each in node.decorator_list)]), end, "pass"))
    return edited(module.source, edits)


@cache
def _unused(wide: bool) -> frozenset[str]:
    """Return the names of inlined functions that no module of the runtime refers to any more, except in imports."""
    files = [(path, module.source) for path, module in modules().items()]
    runtime = [_machine_code(*file, wide) if is_compiled(file[0]) else Compiled(file[1]) for file in files]
    inlined = frozenset(name for module in runtime for name in module.inlined)
    trees = [ast.parse(module.source) for module in runtime]
    unused: frozenset[str] = frozenset()
    while (unread := inlined.difference(*(_referred(tree, unused) for tree in trees))) != unused:
        unused = unread
    return unused


def _referred(node: ast.AST, unused: Set[str]) -> Iterator[str]:
    """Yield the names that a node refers to, except for functions that are unused."""
    if isinstance(node, ast.FunctionDef) and node.name in unused:
        return
    if isinstance(node, ast.Name | ast.Attribute):
        yield node.id if isinstance(node, ast.Name) else node.attr
    for child in ast.iter_child_nodes(node):
        yield from _referred(child, unused)


def _of_a_step(module: Module) -> list[Function]:
    """Return the functions of a module that become machine code."""
    functions = [*module.functions.values(), *(each for owner in module.classes.values() for each in owner.methods.values())]
    if module.path in KERNELS:
        return functions
    return [function for function in functions if function.name in called_in_a_step() and not is_contained(function)]


@cache
def _called_by_name() -> frozenset[Function]:
    """Return the methods that machine code calls by a global name."""
    called: set[Function] = set()
    for module in modules().values():
        for function in _of_a_step(module) if is_compiled(module.path) else []:
            with suppress(Unsupported):
                called |= simplified(function).called
    return frozenset(called)


def _relative(path: str, other: str) -> str:
    """Return how a module names another one in an import."""
    folder, theirs = path.split("/")[:-1], other.removesuffix(".py").split("/")
    if folder == theirs[:-1]:
        return f".{theirs[-1]}"
    return f"..{'.'.join(theirs[1:])}"
