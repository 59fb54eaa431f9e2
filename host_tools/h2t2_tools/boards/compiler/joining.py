"""Puts the statements of inlined functions in the places of their calls.

Several calls of one function in one block share its statements in a loop.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Container, Iterator, Sequence
from functools import partial
from typing import Any

from .program import Function
from .syntax import assign, constant, name, operation, replaced, rewrite_blocks

SMALL = 12  # operations of a function that is always inlined


class Argument(ast.Assign):
    """The assignment of a value to a parameter of an inlined function.

    Attributes:
        settled: Whether it needs none, because the body can have the value.
    """

    settled = False

    @property
    def parameter(self) -> str:
        return self.targets[0].id  # type: ignore[attr-defined, no-any-return]


class Inlined(ast.stmt):
    """The place of an inlined call.

    Attributes:
        arguments: Values of its parameters.
        body: Its statements, which assign the result.
        function: The function.
    """

    _fields = ("arguments", "body")
    arguments: list[Argument]
    body: list[ast.stmt]
    function: Function


# Joining: each Inlined becomes statements. Several calls of one function in one block share its statements in a loop.


def joined(block: list[ast.stmt], depth: int = 0) -> list[ast.stmt]:
    """Return a block with the statements of the functions that it inlines. depth: number of loops over calls around it."""
    for run in _shared(block):
        return joined([*block[: run[0]], *_rolled(block, run, depth), *block[run[-1] + 1 :]], depth)
    out: list[ast.stmt] = []
    for statement in block:
        if isinstance(statement, Inlined):
            out += joined(_expanded(statement), depth)
        else:
            rewrite_blocks(statement, partial(joined, depth=depth + getattr(statement, "rolled", False)))
            out.append(statement)
    return out


def _shared(block: list[ast.stmt]) -> Iterator[list[int]]:
    """Yield the places of calls that share a loop, the largest function first."""
    places: dict[Function, list[int]] = {}
    for n, statement in enumerate(block):
        if isinstance(statement, Inlined) and statement.function.size > SMALL:
            places.setdefault(statement.function, []).append(n)
    for _, run in sorted(places.items(), key=lambda entry: -entry[0].size):
        if len(run) > 1 and not any(map(_leaves, block[run[0] : run[-1]])):
            yield run


def _leaves(statement: ast.stmt) -> bool:
    """Return whether a statement may leave the block, so that it cannot stand in a loop of its own."""
    if isinstance(statement, ast.While):
        return any(isinstance(each, ast.Return) for each in ast.walk(statement))
    if isinstance(statement, Inlined | ast.If):
        return any(map(_leaves, [*statement.body, *getattr(statement, "orelse", [])]))
    return isinstance(statement, ast.Break | ast.Continue | ast.Return)


def _rolled(block: list[ast.stmt], places: list[int], depth: int) -> list[ast.stmt]:
    """Return a loop over calls of a function and the statements between them, in which there may be further such loops."""
    calls = [call for place in places if isinstance(call := block[place], Inlined)]
    settled = {}
    for first, *others in zip(*(call.arguments for call in calls)):
        if first.settled and all(each.settled and ast.dump(each.value) == ast.dump(first.value) for each in others):
            settled[first.parameter] = first.value
    turn = f"turn_{calls[0].function.name.strip('_')}{depth}"
    chain: list[ast.stmt] = [ast.Break()]
    for n in range(len(calls) - 1, 0, -1):
        test = ast.Compare(name(turn), [ast.Eq()], [ast.Constant(n - 1)])
        between = [*block[places[n - 1] + 1 : places[n]], *_setup(calls[n], settled)]
        chain = [ast.If(test, copy.deepcopy(between), chain)]
    turns = ast.AugAssign(ast.Name(turn, ast.Store()), ast.Add(), ast.Constant(1))
    loop = ast.While(ast.Constant(1), [*_with_values(calls[0].body, settled), *chain, turns], [])
    loop.rolled = True  # type: ignore[attr-defined]
    return [*_setup(calls[0], settled), assign(turn, ast.Constant(0)), loop]


def _setup(call: Inlined, settled: Container[str]) -> list[ast.stmt]:
    return [assign(each.parameter, each.value) for each in call.arguments if each.parameter not in settled]


def _expanded(call: Inlined) -> list[ast.stmt]:
    settled = {each.parameter: each.value for each in call.arguments if each.settled}
    return [*_setup(call, settled), *_with_values(call.body, settled)]


def _with_values(body: Sequence[ast.stmt], values: dict[str, ast.expr]) -> list[ast.stmt]:
    """Return statements that read values in place of names."""

    def with_values(node: Any) -> Any:
        match node:
            case ast.Name(text, ast.Load()) if text in values:
                return copy.deepcopy(values[text])
            case ast.BinOp(left, operator, right):
                return operation(replaced(left, with_values), operator, replaced(right, with_values))
            case ast.AugAssign(_, ast.Add() | ast.Sub() | ast.LShift() | ast.RShift(), value):
                node.value = replaced(value, with_values)
                return [] if constant(node.value) == 0 else node

    return [replaced(copy.deepcopy(each), with_values) for each in body]
