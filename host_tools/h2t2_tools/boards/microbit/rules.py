"""What the micro:bit's build demands of the runtime's sources (h2t2/core/__init__.py says it), held against them."""

from __future__ import annotations

import ast
from pathlib import Path

from .shrink import CORE, LOCALS, reached

# the classes that become one object, by what they are to each other: a policy is one object with its base
OWNERS = {"Policy": "policy", "H2T2": "policy", "Experts": "experts", "Tickets": "tickets", "Rng": "generator"}
SAME = {"lose", "local"}  # of policy and tickets, of policy and experts: the policy hands on what the other has


def violations(folder: Path) -> list[str]:
    """Every place where the sources in the runtime's folder break a rule, in words."""
    trees = {name: ast.parse((folder / f"core/{name}.py").read_text()) for name in CORE}
    kernels = ast.parse((folder / "ldl/kernels.py").read_text())
    used = reached([part for tree in trees.values() for part in tree.body])
    found = _clashes([*trees.values()], used)
    for name, tree in {**trees, "kernels": kernels}.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for function in functions:
            if name == "kernels" or function.name in used:
                found += [f"{name}.{function.name}: {what}" for what in _of_function(function)]
        found += [f"{name}: {what}" for what in _of_module(tree)]
    return found


def _clashes(trees: list[ast.Module], used: set[str]) -> list[str]:
    owner: dict[str, str] = {}
    found = []
    for part in (part for tree in trees for part in tree.body if isinstance(part, ast.ClassDef)):
        names = {method.name for method in part.body if isinstance(method, ast.FunctionDef) and method.name in used}
        for node in ast.walk(part):
            own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
            if own and isinstance(node.ctx, ast.Store):  # type: ignore[attr-defined]
                names.add(node.attr)  # type: ignore[attr-defined]
        for name in sorted(names - SAME):
            mine = OWNERS.get(part.name, part.name)
            if owner.setdefault(name, mine) != mine:
                found.append(f"{part.name}.{name}: the {owner[name]} has one of this name, and they become one object")
    return found


def _of_function(function: ast.FunctionDef) -> list[str]:
    found = []
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    count = len(stored | {argument.arg for argument in function.args.args})
    if count > len(LOCALS):
        found.append(f"{count} arguments and locals, {len(LOCALS)} ROM words for them")
    checks = {id(part) for node in ast.walk(function) if isinstance(node, ast.If) for part in node.body}
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and id(node) not in checks:
            found.append("raises outside an `if` that only refuses: that stays in the build")
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            found.append(f"line {node.lineno} assigns two values at once: a tuple on the heap")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append("imports something")
    return found


def _of_module(tree: ast.Module) -> list[str]:
    found = []
    for part in tree.body:
        constant = isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, int)
        if constant and not ast.unparse(part.targets[0]).isupper():  # type: ignore[attr-defined]
            found.append(f"{ast.unparse(part)}: a constant that is not in capitals stays a variable")
    return found
