"""Pieces of syntax: what the passes of the compiler build expressions and statements of, look for, and replace."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache
from typing import Any

from .program import Module, Type

OPPOSITE = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def assign(target: str | ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(target, ast.Store()) if isinstance(target, str) else target], value, lineno=0)


def call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(name(function), [*arguments], [])


def constant(node: ast.expr) -> int | None:
    """Return the value of a constant integer, which may have a sign; None for any other expression."""
    match node:
        case ast.Constant(int() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as value)):
            return -value
    return None


def negated(node: ast.expr) -> ast.expr:
    value = constant(node)
    return ast.BinOp(ast.Constant(0), ast.Sub(), node) if value is None else ast.Constant(-value)


def operation(left: ast.expr, operator: ast.operator, right: ast.expr) -> ast.expr:
    """Return an operation; one of constants has its value, and division by a power of two is a shift."""
    if constant(left) is not None and constant(right) is not None:
        return ast.Constant(eval(ast.unparse(ast.BinOp(left, operator, right))))
    if constant(left) is not None and isinstance(operator, ast.Add | ast.Mult):
        left, right = right, left
    value = constant(right)
    if value == 0 and isinstance(operator, ast.Add | ast.Sub | ast.LShift | ast.RShift | ast.BitOr | ast.BitXor):
        return left
    if value == 0 and isinstance(operator, ast.Mult):
        return right
    if value == 1 and isinstance(operator, ast.Mult | ast.FloorDiv):
        return left
    if value is not None and value > 0 and not value & value - 1:
        if isinstance(operator, ast.FloorDiv):
            return ast.BinOp(left, ast.RShift(), ast.Constant(value.bit_length() - 1))
        if isinstance(operator, ast.Mod):
            return ast.BinOp(left, ast.BitAnd(), ast.Constant(value - 1))
    return ast.BinOp(left, operator, right)


def is_simple(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Constant)


def range_of(limits: list[ast.expr]) -> tuple[ast.expr, ast.expr, ast.expr]:
    """Return start, stop and step of a range with these arguments."""
    start, stop = (limits[0], limits[1]) if len(limits) > 1 else (ast.Constant(0), limits[0])
    return start, stop, limits[2] if len(limits) > 2 else ast.Constant(1)


def stored(statements: Sequence[ast.AST]) -> set[str]:
    """Return the names that statements assign."""
    return names(*statements, context=ast.Store)


def read(statements: Sequence[ast.AST]) -> set[str]:
    """Return the names that statements read."""
    return names(*statements, context=ast.Load)


def names(*nodes: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """Return the names in nodes."""
    every = (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in every if isinstance(each.ctx, context)}


def fresh(types: dict[str, Type], base: str, kind: Type, taken: Set[str] = frozenset()) -> str:
    """Return a new local name of that type, none of those that are taken."""
    number = 1
    while (text := f"{base}{number}") in types or text in taken:
        number += 1
    types[text] = kind
    return text


class _Replaced(ast.NodeTransformer):
    def __init__(self, replacement: Callable[[Any], Any]) -> None:
        self.visit = lambda node: self.generic_visit(node) if (new := replacement(node)) is None else new  # type: ignore[method-assign]


def replaced(node: Any, replacement: Callable[[Any], Any]) -> Any:
    """Return a node with replacement(node), or a list, in the place of each node inside for which that is not None."""
    return _Replaced(replacement).visit(node)


def weighted(node: ast.AST, weight: int = 1) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes inside a node, with the number of times that they run: a loop eight times."""
    for child in ast.iter_child_nodes(node):
        inner = weight * 8 if isinstance(child, ast.While) else weight
        yield child, inner
        yield from weighted(child, inner)


def rewrite_blocks(statement: ast.stmt, rewrite: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Rewrite the blocks inside a statement."""
    for field in ("body", "orelse"):
        if getattr(statement, field, None):
            setattr(statement, field, rewrite(getattr(statement, field)))


def opposite(condition: ast.expr) -> ast.expr:
    """Return the negation of a condition."""
    match condition:
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Compare(left, [operator], [right]) if type(operator) in OPPOSITE:
            return ast.Compare(left, [OPPOSITE[type(operator)]()], [right])
        case ast.BoolOp(operator, values):
            return ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), [opposite(each) for each in values])
    return ast.UnaryOp(ast.Not(), condition)


def kind_of(node: ast.expr, types: dict[str, Type]) -> Type:
    """Return the type of an expression of the result, which names nothing of a module's."""
    return _nowhere().type_of(node, types)


@cache
def _nowhere() -> Module:
    return Module("", b"")
