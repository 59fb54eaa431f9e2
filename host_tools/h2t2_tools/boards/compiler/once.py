"""Looks up once what a function would look up several times."""

from __future__ import annotations

import ast
from collections import Counter

from .program import ARRAYS, INT, OBJECT, Class, Row, Type, changes
from .syntax import assign, kind_of, name, replaced, rewrite_blocks, stored, weighted


class Hoist:
    """Looks up once, before its first use, what a function reads several times and no step changes.

    Attributes:
        types: Of the function's local names; they get those of new ones.
        tables: Names of the arrays of modules that it reads.
    """

    def __init__(self, types: dict[str, Type], tables: set[str]) -> None:
        self.types = types
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


def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body
