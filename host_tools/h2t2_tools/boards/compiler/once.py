"""Computes and looks up once what a function would compute or look up several times."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from functools import partial

from .loops import LOOP_WEIGHT, weighted
from .program import ARRAYS, BOOL, INT, OBJECT, Class, Row, Type, changes
from .syntax import Rewriter, assign, call, fresh, item_at, kind_of, name, names, replaced, rewrite_blocks, stored, substituted


class Hoist(Rewriter):
    """Looks up once, before its first use, what a function reads several times and no step changes."""

    def __init__(self, tables: set[str], types: dict[str, Type]) -> None:
        super().__init__(types)
        self.tables = tables

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        while True:
            counts = self.count(*body)
            for path in sorted(path for path in counts if counts[path] > 1):
                changed = self.hoisted(body, path)
                if changed is not None:
                    body = changed
                    break
            else:
                return body

    def count(self, *nodes: ast.AST) -> Counter[str]:
        """Count the paths in nodes, by how often they run."""
        counts: Counter[str] = Counter()
        for node, weight in weighted(ast.Module([*nodes], [])):  # type: ignore[list-item]
            counts[self.path(node)] += weight
        del counts[""]
        return counts

    def path(self, node: ast.AST) -> str:
        """Return the text of what could be looked up once; "": nothing."""
        match node:
            case ast.Attribute(ast.Name(text), attribute, ast.Load()):
                owner, kind = self.types.get(text), kind_of(node, self.types)
                settled = isinstance(owner, Class) and kind != OBJECT and not changes(owner, attribute)
                return ast.unparse(node) if settled else ""
            case ast.Subscript(ast.Name(text), _, ast.Load()) if text in self.tables:
                return text
            case ast.Call(ast.Name("len"), [ast.Name(text)]):
                kind = self.types.get(text, OBJECT)
                return ast.unparse(node) if kind in ARRAYS or isinstance(kind, Row) else ""
        return ""

    def hoisted(self, block: list[ast.stmt], path: str) -> list[ast.stmt] | None:
        """Return a block that looks a path up in the innermost block with all its uses; None if that is not worth it."""
        counts = [self.count(statement)[path] for statement in block]
        if sum(counts) < 2:
            return None
        users = [n for n, count in enumerate(counts) if count]
        root = path.removeprefix("len(").split(".")[0].rstrip(")")
        first, user = users[0], block[users[0]]
        if root in stored(block[first : users[-1] + 1]):
            return block if len(users) == 1 and self.inside(user, path) else None
        if len(users) == 1 and isinstance(user, ast.If) and not self.count(user.test)[path] and self.inside(user, path):
            return block
        text, value = self.replacement(path)

        def looked_up(node: ast.AST) -> ast.expr | None:
            if self.path(node) != path:
                return None
            if isinstance(node, ast.Subscript):
                return ast.Subscript(name(text), replaced(node.slice, looked_up), node.ctx)
            return name(text)

        return [*block[:first], assign(text, value), *(replaced(statement, looked_up) for statement in block[first:])]

    def inside(self, statement: ast.stmt, path: str) -> bool:
        """Look a path up in the blocks inside a statement; return whether that is worth it anywhere."""
        looked_up = []

        def hoisted(block: list[ast.stmt]) -> list[ast.stmt]:
            looked_up.append(self.hoisted(block, path))
            return looked_up[-1] or block

        rewrite_blocks(statement, hoisted)
        return any(looked_up)

    def replacement(self, path: str) -> tuple[str, ast.expr]:
        """Return the name for a path, and the path as an expression."""
        value = _parsed(path)
        text = path.lower() if path in self.tables else path.replace(".", "_").replace("len(", "len_").rstrip(")")
        while text in self.types:
            text += "_"
        if isinstance(value, ast.Call):
            value.result = INT  # type: ignore[attr-defined]
        self.types[text] = kind_of(value, self.types)
        return text, value


class Invariants(Rewriter):
    """Computes once, before a loop, what is the same in every turn."""

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, ast.While) and not getattr(statement, "rolled", False):
                changing_here = stored([statement])
                for _, value in sorted(self.invariants(statement, changing_here).items()):
                    text = fresh(self.types, "x", INT)
                    out.append(assign(text, value))
                    statement = substituted(statement, value, name(text))
            rewrite_blocks(statement, self.block)
            out.append(statement)
        return out

    def invariants(self, node: ast.AST, changing_here: set[str]) -> dict[str, ast.expr]:
        """Return the largest expressions inside a loop that do not change, each once, by their dumps."""
        if isinstance(node, ast.BinOp) and self.is_settled(node, changing_here):
            return {ast.dump(node): node}
        inside = [self.invariants(each, changing_here) for each in ast.iter_child_nodes(node)]
        return {key: value for expressions in inside for key, value in expressions.items()}

    def is_settled(self, node: ast.AST, changing_here: set[str]) -> bool:
        match node:
            case ast.BinOp(left, operator, right) if not isinstance(operator, ast.FloorDiv | ast.Mod):
                return self.is_settled(left, changing_here) and self.is_settled(right, changing_here)
            case ast.Name(text):
                return text not in changing_here and self.types.get(text) in (INT, BOOL)
        return isinstance(node, ast.Constant)


class Attributes(Rewriter):
    """Keeps the integer of an attribute in a variable, as long as no call and no other assignment may change it."""

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        start = 0
        while start < len(body):
            statement = body[start]
            path = self.stored_path(statement)
            if path and self.uses(body[start + 1 :], path):
                assert isinstance(statement, ast.Assign)
                text = fresh(self.types, path.split(".")[1], INT)
                body[start : start + 1] = [assign(text, statement.value), assign(statement.targets[0], name(text))]
                start += 2
                body[start:] = self.replaced(body[start:], path, text)
                continue
            reads = [each for operand in self.first(statement) for each in ast.walk(operand) if self.is_path(each)]
            for path in sorted({*map(ast.unparse, reads)}):
                if self.uses(body[start:], path) > 1:
                    text = fresh(self.types, path.split(".")[1], INT)
                    body[start:] = [assign(text, _parsed(path)), *self.replaced(body[start:], path, text)]
                    start += 1
            start += 1
        for statement in body:
            rewrite_blocks(statement, self.block)
        return body

    def stored_path(self, statement: ast.stmt) -> str:
        """Return the attribute that a statement without calls assigns an integer to."""
        match statement:
            case ast.Assign([ast.Attribute(ast.Name()) as target], value):
                return ast.unparse(target) if kind_of(target, self.types) == INT and not _calls(value) else ""
        return ""

    def first(self, node: ast.AST) -> list[ast.AST]:
        """Return the parts of a statement that are computed first; none if they contain a call."""
        match node:
            case ast.While():
                return []
            case ast.If(test):
                operands: list[ast.AST] = [test]
            case ast.Assign(targets, value):
                operands = [value, *targets]
            case _:
                operands = [node]
        return [] if any(map(_calls, operands)) else operands

    def is_path(self, node: ast.AST) -> bool:
        match node:
            case ast.Attribute(ast.Name(text), _, ast.Load()):
                return text in self.types and kind_of(node, self.types) == INT
        return False

    def ends(self, statement: ast.stmt, path: str) -> bool:
        """Return whether a statement may change an attribute, or the object that has it."""
        root, attribute = path.split(".")
        attributes = [each for each in ast.walk(statement) if isinstance(each, ast.Attribute) and each.attr == attribute]
        stores = any(isinstance(each.ctx, ast.Store) for each in attributes)
        return stores or _calls(statement) or root in stored([statement])

    def region(self, body: list[ast.stmt], path: str) -> Iterator[tuple[int, ast.stmt, list[ast.AST]]]:
        """Yield statements with their places and what they compute before an attribute may change, up to where it may."""
        for n, statement in enumerate(body):
            ends = self.ends(statement, path)
            yield n, statement, self.first(statement) if ends else [statement]
            if ends:
                return

    def uses(self, body: list[ast.stmt], path: str) -> int:
        """Return how often statements read an attribute before it may change."""
        total = 0
        for _, statement, nodes in self.region(body, path):
            reads = [each for node in nodes for each in ast.walk(node) if self.is_path(each) and ast.unparse(each) == path]
            total += len(reads) * (LOOP_WEIGHT if isinstance(statement, ast.While) else 1)
        return total

    def replaced(self, body: list[ast.stmt], path: str, text: str) -> list[ast.stmt]:
        """Return statements that read a variable in place of an attribute, as far as that is the same."""
        for n, statement, nodes in self.region(body, path):
            if isinstance(statement, ast.If) and statement not in nodes and nodes:
                statement.test = substituted(statement.test, _parsed(path), name(text))
            elif nodes:
                body[n] = substituted(statement, _parsed(path), name(text))
        return body


def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _calls(node: ast.AST) -> bool:
    """Return whether a node calls a function that may change attributes."""
    builtins = ("len", "ptr8", "offset", "advance")
    functions = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    return any(not (isinstance(each, ast.Name) and each.id in builtins) for each in functions)


class Offsets(Rewriter):
    """Lets several items near one index be read with one pointer: a[i], a[i + 1] ... of a pointer to a[i]."""

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        for statement in body:
            rewrite_blocks(statement, self.block)
        start = 0
        while start < len(body):
            item = self.repeated(body, start)
            if item:
                array, index, end = item
                pointer = fresh(self.types, f"{array}_item", self.types[array])
                at_pointer = partial(self.at_pointer, array, index, pointer)
                start_of_items = assign(pointer, call("offset", name(array), copy.deepcopy(index)))
                body[start:end] = [start_of_items, *(replaced(each, at_pointer) for each in body[start:end])]
            start += 1
        return body

    def item(self, node: ast.AST) -> tuple[str, ast.expr, int] | None:
        """Return array, index and a constant of an item a[index + constant]; None for any other node."""
        item = item_at(node, self.types)
        if not item or isinstance(node.slice, ast.Constant):  # type: ignore[attr-defined]
            return None
        array, index, distance = item if 0 <= item[2] < 8 else (item[0], node.slice, 0)  # type: ignore[attr-defined]
        plain = ast.Name | ast.BinOp | ast.Constant | ast.operator | ast.expr_context
        return (array, index, distance) if all(isinstance(each, plain) for each in ast.walk(index)) else None

    def distance(self, node: ast.AST, array: str, index: ast.expr) -> int | None:
        """Return the constant of an item of an array near an index; None for any other node."""
        item = self.item(node)
        return item[2] if item and item[0] == array and ast.dump(item[1]) == ast.dump(index) else None

    def at_pointer(self, array: str, index: ast.expr, pointer: str, node: ast.AST) -> ast.AST | None:
        """Return an item of an array near an index as one of a pointer; None for any other node."""
        distance = self.distance(node, array, index)
        return None if distance is None else ast.Subscript(name(pointer), ast.Constant(distance), node.ctx)  # type: ignore[attr-defined]

    def repeated(self, body: list[ast.stmt], start: int) -> tuple[str, ast.expr, int] | None:
        """Return array and index of items of a statement that are worth a pointer, and up to which statement it serves them."""
        for node in ast.walk(body[start]) if not isinstance(body[start], ast.While | ast.If) else ():
            item = self.item(node)
            if item:
                array, index, _ = item
                end = start
                while end < len(body) and not {array, *names(index)} & stored([body[end]]):
                    end += 1
                nodes = [each for statement in body[start:end] for each in ast.walk(statement)]
                distances = [distance for each in nodes if (distance := self.distance(each, array, index)) is not None]
                if len(distances) > 2 or len(distances) > 1 and any(distances) and not all(distances):
                    return array, index, end
        return None
