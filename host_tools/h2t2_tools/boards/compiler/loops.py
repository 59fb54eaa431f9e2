"""Makes the loops of a simplified function cheaper: pointers that move with an index."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .program import INT, Type, statements
from .syntax import Rewriter, assign, call, fresh, item_at, name, operation, read, replaced, stored

LOOP_WEIGHT = 8  # how often a loop runs
UPDATE = 6  # cycles of x += 1, and of the same with a pointer
# cycles of an item at a pointer less than of one at an index, and from the index of an item to its first byte
SAVED: dict[Type, int] = {"Int32s": 6, "Int16s": 4, "UInt16s": 4, "UInt8s": 3}
SHIFTS: dict[Type, int] = {"Int32s": 2, "Int16s": 1, "UInt16s": 1, "UInt8s": 0}


@dataclass
class Live:
    """Names that may be read after a place: at the end of its block, after `break` and after `continue`."""

    end: set[str]
    after_break: set[str]
    again: set[str]


def before(block: list[ast.stmt], live: Live) -> set[str]:
    """Return the names that may be read before they are assigned, in a block or after it."""
    names = live.end
    for statement in reversed(block):
        names = _before(statement, Live(names, live.after_break, live.again))
    return names


def _before(node: ast.stmt, live: Live) -> set[str]:
    match node:
        case ast.Assign([ast.Name(text)], value):
            return live.end - {text} | read([value])
        case ast.AugAssign(ast.Name(text), _, value):
            return live.end | {text} | read([value])
        case ast.If(test, body, orelse):
            return read([test]) | before(body, live) | before(orelse, live)
        case ast.While(test, body):
            again, longer = set[str](), live.end | read([test])
            while again != longer:
                again = longer
                longer = again | before(body, Live(again, live.end, again))
            return again
        case ast.Return() | ast.Raise():
            return read([node])
        case ast.Break():
            return live.after_break
        case ast.Continue():
            return live.again
    return live.end | read([node])


class Loops(Rewriter):
    """Lets pointers move with the counters of loops."""

    def block(self, body: list[ast.stmt], live: Live | None = None) -> list[ast.stmt]:
        live = live or Live(set(), set(), set())
        out: list[ast.stmt] = []
        for n, statement in enumerate(body):
            if isinstance(statement, ast.While):
                after = before(body[n + 1 :], live)
                again = _before(statement, Live(after, set(), set()))
                for counter in sorted(self.counters(statement)):
                    out += self.walked(statement, counter, after)
                statement.body = self.block(statement.body, Live(again, after, again))
            elif isinstance(statement, ast.If):
                inner = Live(before(body[n + 1 :], live), live.after_break, live.again)
                statement.body, statement.orelse = self.block(statement.body, inner), self.block(statement.orelse, inner)
            out.append(statement)
        return out

    def counters(self, loop: ast.While) -> set[str]:
        """Return the names that change in a loop, and only by steps that are the same in every turn."""
        changing = stored([loop])
        steps = Counter(increase[0] for each in statements(loop.body) if (increase := step(each, changing)))
        stores = [each.id for each in ast.walk(loop) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        return {text for text in steps if steps[text] == stores.count(text) and self.types.get(text) == INT}

    def walked(self, loop: ast.While, counter: str, after: set[str]) -> list[ast.stmt]:
        """Let pointers move with a counter where that is cheaper; return their assignments before the loop."""
        changing = stored([loop])
        gains: Counter[str] = Counter()
        lowest: Counter[str] = Counter()
        items = reads = updates = 0
        for node, weight in weighted(loop):
            array, distance = self.item(node, counter)
            if array and array not in changing:
                items += 1
                gains[array] += weight * SAVED[self.types[array]]
                lowest[array] = min(lowest[array], distance)
            updates += weight * ((step(node, changing) or "-")[0] == counter)
            reads += isinstance(node, ast.Name) and node.id == counter and isinstance(node.ctx, ast.Load)
        gains.subtract(dict.fromkeys(gains, updates * UPDATE))
        unneeded = counter not in after and reads == items and sum(gains.values()) + updates * UPDATE > 0
        arrays = [array for array in sorted(gains) if unneeded or gains[array] > 0]
        pointers = {array: fresh(self.types, f"{array}_{counter}_", self.types[array]) for array in arrays}

        def with_pointers(node: ast.AST) -> ast.AST | list[ast.stmt] | None:
            """The item of a pointer; the counter's step with those of the pointers."""
            array, distance = self.item(node, counter)
            if array in pointers:
                return ast.Subscript(name(pointers[array]), ast.Constant(distance - lowest[array]), node.ctx)  # type: ignore[attr-defined]
            increase = step(node, changing)
            if not increase or increase[0] != counter:
                return None
            moves = [] if unneeded else [node]
            for array, pointer in pointers.items():
                shift = ast.Constant(1 << SHIFTS[self.types[array]])
                moves.append(assign(pointer, call("advance", name(pointer), operation(increase[1], ast.Mult(), shift))))
            return moves  # type: ignore[return-value]

        if pointers:
            replaced(loop, with_pointers)
        return [
            assign(pointer, call("offset", name(array), operation(name(counter), ast.Add(), ast.Constant(lowest[array]))))
            for array, pointer in pointers.items()
        ]

    def item(self, node: ast.AST, counter: str) -> tuple[str, int]:
        """Return the array of an item at a counter, and the constant that is added to it; "" for any other node."""
        match item_at(node, self.types):
            case array, ast.Name(text), distance if text == counter:
                return array, distance
        return "", 0


def step(node: ast.AST, changing: set[str]) -> tuple[str, ast.expr] | None:
    """Return the name that a statement increases, and by which value that does not change; None for other statements."""
    match node:
        case ast.AugAssign(ast.Name(text), ast.Add() | ast.Sub() as operator, ast.Constant(int() as value)):
            return text, ast.Constant(value if isinstance(operator, ast.Add) else -value)
        case ast.AugAssign(ast.Name(text), ast.Add(), ast.Name(width) as value) if width not in changing:
            return text, value
    return None


def weighted(node: ast.AST, weight: int = 1) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes inside a node, with the number of times that they run."""
    for child in ast.iter_child_nodes(node):
        inner = weight * LOOP_WEIGHT if isinstance(child, ast.While) else weight
        yield child, inner
        yield from weighted(child, inner)
