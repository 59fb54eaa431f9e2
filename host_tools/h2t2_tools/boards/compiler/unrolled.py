"""Rewrites what kernels do with bytes: loops over arrays with pointers that move, and numbers of a bundle byte by byte."""

from __future__ import annotations

import ast
import copy
from functools import partial

from .program import ARRAYS, INT, PACKED, Type
from .syntax import assign, call, constant, fresh, name, names, operation, replaced, rewrite_blocks, stored

TOGETHER = 8  # turns of a loop that become one, where each is one statement that adds to a sum


def unpacked(body: list[ast.stmt], types: dict[str, Type]) -> list[ast.stmt]:
    """Put numbers of a bundle together from their bytes, the lowest first. types: of the function's names, which change."""
    sizes = {text: PACKED[kind] for text, kind in types.items() if kind in PACKED}
    types |= dict.fromkeys(sizes, "UInt8s")

    def number(node: ast.AST) -> ast.expr | None:
        match node:
            case ast.Subscript(ast.Name(text) as array, index) if text in sizes:
                size, first = sizes[text], _scaled(replaced(index, number), sizes[text])
            case _:
                return None
        octets: list[ast.expr] = []
        for n in range(size):
            octets.append(ast.Subscript(array, _plus(copy.deepcopy(first), n), ast.Load()))
        value = octets.pop()
        if size == PACKED["PackedInt32s"]:  # with its sign, also where a word has 64 bits
            value = ast.BinOp(ast.BinOp(value, ast.BitXor(), ast.Constant(128)), ast.Sub(), ast.Constant(128))
        value = ast.BinOp(value, ast.LShift(), ast.Constant(8 * size - 8))
        for n in range(size - 2, -1, -1):
            shifted = operation(octets[n], ast.LShift(), ast.Constant(8 * n))
            value = ast.BinOp(value, ast.BitOr(), shifted)
        return value

    return [replaced(statement, number) for statement in body]


def _scaled(index: ast.expr, size: int) -> ast.expr:
    """Return the place of the first byte of an item; a constant that is added to its index stays outside."""
    match index:
        case ast.BinOp(left, ast.Add(), ast.Constant(int() as value)):
            return operation(_scaled(left, size), ast.Add(), ast.Constant(value * size))
        case ast.BinOp(left, ast.Mult(), ast.Constant(int() as value)):
            return ast.BinOp(left, ast.Mult(), ast.Constant(value * size))
    return operation(index, ast.Mult(), ast.Constant(size))


def _plus(index: ast.expr, distance: int) -> ast.expr:
    """Return an index plus a constant."""
    match index:
        case ast.BinOp(left, ast.Add(), ast.Constant(int() as value)):
            return operation(left, ast.Add(), ast.Constant(value + distance))
    return operation(index, ast.Add(), ast.Constant(distance))


class Moving:
    """Lets pointers move along arrays in the innermost loops over a range; in a loop in a loop a turn adds several products.

    Attributes:
        types: Of the function's local names; they get those of new ones.
    """

    def __init__(self, types: dict[str, Type]) -> None:
        self.types = types

    def block(self, body: list[ast.stmt], in_loop: bool = False) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            rewrite_blocks(statement, partial(self.block, in_loop=in_loop or isinstance(statement, ast.While)))
            moved = self.moved(statement, out[-1], in_loop) if out and isinstance(statement, ast.While) else []
            out = [*out[:-1], *moved] if moved else [*out, statement]
        return out

    def moved(self, loop: ast.While, before: ast.stmt, in_loop: bool) -> list[ast.stmt]:
        """Return statements in place of a loop and of the assignment before it; none if its counter is more than an index."""
        counter = getattr(loop, "counter", "")
        match before, loop.test:
            case ast.Assign([ast.Name(text)], start), ast.Compare(_, [ast.Lt()], [stop]) if counter and text == counter:
                body = loop.body[:-1]
            case _:
                return []
        nodes = [node for statement in body for node in ast.walk(statement)]
        if any(isinstance(each, ast.While | ast.Break | ast.Continue | ast.Return) for each in nodes):
            return []
        changing = stored([loop])
        items = [item for node in nodes if (item := self.item(node, counter)) and not names(*item[:2]) & changing]
        if not items or len(items) != sum(isinstance(each, ast.Name) and each.id == counter for each in nodes):
            return []
        pointers: dict[str, str] = {}
        starts: list[ast.stmt] = []
        for array, base, _ in items:
            key = ast.dump(operation(array, ast.Add(), base))
            if key not in pointers:
                pointers[key] = fresh(self.types, array.id, self.types[array.id])
                starts.append(assign(pointers[key], call("offset", array, operation(copy.deepcopy(base), ast.Add(), start))))
        turns_left = fresh(self.types, "left", INT)
        turns = partial(self.turns, body, counter, pointers, turns_left)
        together = [turns(TOGETHER)] if in_loop and len(body) == 1 and _is_sum(body[0]) else []
        return [assign(turns_left, operation(copy.deepcopy(stop), ast.Sub(), start)), *starts, *together, turns(1)]

    def turns(self, body: list[ast.stmt], counter: str, pointers: dict[str, str], turns_left: str, together: int) -> ast.While:
        """Return the loop with so many turns in one."""

        def at_pointer(turn: int, node: ast.AST) -> ast.AST | None:
            """An item at the counter as one of a pointer."""
            item = self.item(node, counter)
            if not item:
                return None
            array, base, distance = item
            pointer = pointers[ast.dump(operation(array, ast.Add(), base))]
            return ast.Subscript(name(pointer), ast.Constant(turn + distance), node.ctx)  # type: ignore[attr-defined]

        statements: list[ast.stmt] = []
        for turn in range(together):
            statements += [replaced(copy.deepcopy(each), partial(at_pointer, turn)) for each in body]
        statements += [assign(pointer, call("offset", name(pointer), ast.Constant(together))) for pointer in pointers.values()]
        statements.append(ast.AugAssign(ast.Name(turns_left, ast.Store()), ast.Sub(), ast.Constant(together)))
        return ast.While(ast.Compare(name(turns_left), [ast.Gt()], [ast.Constant(together - 1)]), statements, [])

    def item(self, node: ast.AST, counter: str) -> tuple[ast.Name, ast.expr, int] | None:
        """Return array, base and constant of array[base + counter + constant]; None for any other item."""
        match node:
            case ast.Subscript(ast.Name(text) as array, index) if self.types.get(text) in ARRAYS:
                terms = _terms(index)
            case _:
                return None
        further = [each for each in terms if not (isinstance(each, ast.Name) and each.id == counter)]
        if len(further) != len(terms) - 1 or counter in names(*further):
            return None
        base: ast.expr = ast.Constant(0)
        for each in further:
            if constant(each) is None:
                base = operation(base, ast.Add(), each)
        return array, base, sum(constant(each) or 0 for each in further)


def _is_sum(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add) and isinstance(statement.target, ast.Name)


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return the terms of a sum."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            return [*_terms(left), *_terms(right)]
    return [node]
