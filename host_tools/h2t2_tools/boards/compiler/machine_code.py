"""Writes a simplified function as a function of MicroPython's viper emitter.

An array becomes a pointer where its items are read, and stays an object where it is passed on: a pointer that is passed on
becomes an integer, which takes heap above 0x3fffffff. What a step does not change (an array, a size) is looked up once.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from functools import partial

from .once import Hoist
from .program import ARRAYS, BOOL, INT, Function, Row, Type, statements
from .simplify import Simple, Unsupported
from .syntax import assign, call, is_simple, kind_of, name, names, operation, read, replaced, stored, weighted
from .unrolled import Moving, unpacked

SHIFTS: dict[Type, int] = {"Int32s": 2, "Int16s": 1, "UInt16s": 1, "UInt8s": 0}  # from an index to a distance in bytes
REGISTERS = 2  # the first local variables of a function are in registers
COMMUTATIVE = ast.Add | ast.Mult | ast.BitAnd | ast.BitOr | ast.BitXor
MIRRORED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


def written(function: Function, simple: Simple, wide: bool = False) -> str:
    """Return the source of a function for the viper emitter.

    Args:
        function: The function.
        simple: The same in simple statements.
        wide: The processor's words have 64 bits.

    Raises:
        Unsupported: An expression has no type that the emitter knows.
    """
    return _Writer(function, simple, wide).text()


class _Writer:
    def __init__(self, function: Function, simple: Simple, wide: bool) -> None:
        self.function = function
        self.types = dict.fromkeys(stored(simple.body), INT) | simple.types
        self.tables = simple.tables
        self.wide = wide
        self.body = unpacked(copy.deepcopy(simple.body), self.types)
        self.body = Hoist(self.types, self.tables).block(Moving(self.types).block(self.body))
        self.pointers: set[str] = set()  # arrays whose items are read
        self.objects: set[str] = set()  # arrays that are passed on

    def text(self) -> str:
        for statement in self.body:
            self.look(statement)
        definition = copy.deepcopy(self.function.node)
        definition.decorator_list = [ast.Attribute(name("micropython"), "viper", ast.Load())]
        definition.returns = name(str(self.function.result)) if self.function.result in (INT, BOOL) else None
        first: list[ast.stmt] = []
        for argument in definition.args.args:
            kind = self.types[argument.arg]
            argument.annotation = None
            if kind in (INT, BOOL):
                argument.annotation = name(INT)
            elif kind in ARRAYS and argument.arg in self.pointers & self.objects:
                first.append(assign(self.pointer_name(argument.arg), call(ARRAYS[kind], name(argument.arg))))
            elif kind in ARRAYS and argument.arg in self.pointers:
                argument.annotation = name(ARRAYS[kind])
        definition.body = self.in_registers(definition, [*first, *self.block(self.body)])
        return ast.unparse(ast.fix_missing_locations(definition))

    # arrays

    def pointer_name(self, text: str) -> str:
        """Return the name of the pointer to an array."""
        return f"{text}_at" if text in self.objects or text in self.tables else text

    def look(self, node: ast.AST) -> None:
        """Find which arrays are read and which are passed on."""
        match node:
            case ast.Call(ast.Name("offset"), [ast.Name(text), index]) | ast.Subscript(ast.Name(text), index) if (
                self.types.get(text) in ARRAYS
            ):
                self.pointers.add(text)
                self.look(index)
            case ast.Name(text, ast.Load()) if self.types.get(text) in ARRAYS:
                self.objects.add(text)
            case _:
                for child in ast.iter_child_nodes(node):
                    self.look(child)

    # statements

    def statement(self, node: ast.stmt) -> Iterator[ast.stmt]:
        match node:
            case ast.Assign([ast.Name(text)], ast.Call(ast.Name("offset"), [ast.Name(array), index])):
                kind = self.types[array]
                distance = operation(self.number(index), ast.LShift(), ast.Constant(SHIFTS[kind]))
                start = call(INT, name(self.pointer_name(array)))
                yield assign(text, call(ARRAYS[kind], operation(start, ast.Add(), distance)))
            case ast.Assign([ast.Name(text)], value) if self.types[text] in ARRAYS:
                new = self.expression(value)
                if text in self.objects:
                    yield assign(text, new)
                    new = name(text)
                if text in self.pointers:
                    yield assign(self.pointer_name(text), call(ARRAYS[self.types[text]], new))
            case ast.Assign([ast.Name(text)], value):
                yield assign(text, self.number(value) if self.types[text] == INT else self.expression(value))
            case ast.Assign([ast.Attribute() as target], value):
                kind = kind_of(target, self.types)
                new = self.number(value)
                place = ast.Attribute(self.expression(target.value), target.attr, ast.Store())
                yield assign(place, call(BOOL, new) if kind == BOOL else new)
            case ast.Assign([ast.Subscript() as target], value):
                yield assign(self.item(target, ast.Store()), self.number(value))
            case ast.AugAssign(ast.Name(text) as target, operator, value):
                if isinstance(operator, COMMUTATIVE) and not is_simple(value):
                    yield assign(text, ast.BinOp(self.number(value), operator, name(text)))
                else:
                    yield ast.AugAssign(target, operator, self.number(value))
            case ast.If(test, body, orelse):
                yield ast.If(self.condition(test), self.block(body) or [ast.Pass()], self.block(orelse))
            case ast.While(test, body):
                yield ast.While(self.condition(test), self.block(body), [])
            case ast.Return(ast.expr() as value) if self.function.result == BOOL:
                yield ast.Return(call(BOOL, self.number(value)))
            case ast.Return(ast.expr() as value):
                yield ast.Return(self.number(value) if self.function.result == INT else self.expression(value))
            case ast.Expr(value):
                match self.expression(value):
                    case ast.Call(ast.Name("int"), [statement]) | statement:
                        yield ast.Expr(statement)
            case ast.Raise(ast.Call(kind, [ast.BinOp(text, operator, values)])):
                every = values.elts if isinstance(values, ast.Tuple) else [values]
                message = ast.BinOp(text, operator, ast.Tuple([*map(self.expression, every)], ast.Load()))
                yield ast.Raise(ast.Call(kind, [message], []), None)
            case _:
                yield node

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [each for statement in body for each in self.statement(statement)]

    # expressions

    def condition(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.UnaryOp(operator, operand):
                return ast.UnaryOp(operator, self.condition(operand))
            case ast.BoolOp(operator, values):
                return ast.BoolOp(operator, [self.condition(each) for each in values])
            case ast.Compare(left, [ast.Is() | ast.IsNot()] as operators, [right]):
                return ast.Compare(self.expression(left), operators, [self.expression(right)])
            case ast.Compare(left, [operator], [right]):
                if isinstance(left, ast.Name) and not is_simple(right):
                    left, operator, right = right, MIRRORED.get(type(operator), type(operator))(), left
                return ast.Compare(self.number(left), [operator], [self.number(right)])
        return self.number(node)

    def number(self, node: ast.expr) -> ast.expr:
        """Return an expression whose value is an integer."""
        if not self.is_number(node):
            raise Unsupported(self.function.node, f"{ast.unparse(node)} has no type")
        return self.expression(node)

    def is_number(self, node: ast.expr) -> bool:
        return kind_of(node, self.types) in (INT, BOOL)

    def expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.BinOp(left, operator, right):
                if isinstance(operator, COMMUTATIVE) and is_simple(left) and not isinstance(right, ast.Constant):
                    left, right = right, left  # the emitter keeps the first operand in memory while it computes the second
                first, second = self.number(left), self.number(right)
                if isinstance(first, ast.Subscript) and not isinstance(second, ast.Name | ast.Constant):
                    first = ast.BinOp(first, ast.BitOr(), ast.Constant(0))  # else the emitter moves it to the stack and back
                return ast.BinOp(first, operator, second)
            case ast.Subscript():
                return self.item(node, ast.Load())
            case ast.Attribute(value, text):
                loaded = ast.Attribute(self.expression(value), text, ast.Load())
                return call(INT, loaded) if self.is_number(node) else loaded
            case ast.Call(function, arguments):
                if isinstance(function, ast.Attribute):
                    function = ast.Attribute(self.expression(function.value), function.attr, ast.Load())
                result = ast.Call(function, [*map(self.expression, arguments)], [])
                return call(INT, result) if self.is_number(node) else result
        return node

    def item(self, node: ast.Subscript, context: ast.expr_context) -> ast.expr:
        """Return an item of an array or of a list."""
        kind = kind_of(node.value, self.types)
        is_read = isinstance(context, ast.Load)
        index = self.number(node.slice)
        if isinstance(kind, Row):
            loaded = ast.Subscript(self.expression(node.value), index, context)
            return call(INT, loaded) if is_read and kind.item in (INT, BOOL) else loaded
        if kind not in ARRAYS:
            raise Unsupported(self.function.node, f"{ast.unparse(node.value)} has no type")
        match node.value:
            case ast.Name(text) if text not in self.tables:
                array: ast.expr = name(self.pointer_name(text))
            case ast.Call(ast.Name("ptr8")):
                array = node.value
            case _:
                array = call(ARRAYS[kind], self.expression(node.value))
        loaded = ast.Subscript(array, index, context)
        if is_read and self.wide and kind == "Int32s":
            return ast.BinOp(ast.BinOp(loaded, ast.LShift(), ast.Constant(32)), ast.RShift(), ast.Constant(32))
        if is_read and kind == "Int16s":
            return ast.BinOp(ast.BinOp(loaded, ast.BitXor(), ast.Constant(1 << 15)), ast.Sub(), ast.Constant(1 << 15))
        return loaded

    # registers

    def in_registers(self, definition: ast.FunctionDef, body: list[ast.stmt]) -> list[ast.stmt]:
        """Let the most used integers and pointers be the first variables. Those that never live together share one."""
        uses: Counter[str] = Counter()
        for node, weight in weighted(ast.Module(body, [])):
            if isinstance(node, ast.Name):
                uses[node.id] += weight
        arguments = definition.args.args
        kinds = self.kinds(uses)
        spans = _spans(body)
        spans |= {each.arg: (-1, spans[each.arg][1]) for each in arguments if each.arg in spans}
        first: list[ast.stmt] = []
        for argument in [*arguments, *[None] * REGISTERS][:REGISTERS]:
            if argument:
                kind = self.types[argument.arg]
                if not argument.annotation and kind in ARRAYS and argument.arg not in self.objects | self.pointers:
                    argument.annotation = name(ARRAYS[kind])  # nothing uses it: its register is free
                if not isinstance(argument.annotation, ast.Name):
                    continue
                kinds[argument.arg] = argument.annotation.id
            together = _apart({text: spans[text] for text in kinds if text in spans}, uses)
            if not together:
                continue
            register = argument.arg if argument and argument.arg in together else together[0]
            kind = kinds[argument.arg if argument else register]
            if not argument:
                first.append(assign(register, _cast(ast.Constant(0), INT, kind)))
            elif register != argument.arg:
                if uses[argument.arg]:
                    first.append(assign(argument.arg, _cast(name(register), kinds[register], kind)))
                del kinds[argument.arg]
                argument.arg = register
            shared = partial(_shared, register, kind, {text: kinds[text] for text in together})
            body = [replaced(each, shared) for each in body]
            kinds = {text: kinds[text] for text in kinds if text not in together}
        return [*first, *body]

    def kinds(self, uses: Counter[str]) -> dict[str, str]:
        """Return the integers and pointers that are no parameters, with their types as viper names them."""
        kinds = {text: INT for text, kind in self.types.items() if kind in (INT, BOOL)}
        kinds |= {self.pointer_name(text): ARRAYS[self.types[text]] for text in self.pointers - self.tables}
        return {text: kinds[text] for text in kinds if text in uses and text not in self.function.parameters}


def _apart(spans: dict[str, tuple[int, int]], uses: Counter[str]) -> list[str]:
    """Return the most used variables of which no two live at the same time."""
    chosen: list[str] = []
    for text in sorted(spans, key=lambda text: (-uses[text], text)):
        start, end = spans[text]
        if all(end < spans[each][0] or spans[each][1] < start for each in chosen):
            chosen.append(text)
    return chosen


def _cast(value: ast.expr, kind: str, target: str) -> ast.expr:
    """Return a value of one of viper's types as one of another."""
    return value if kind == target else call(target, value)


def _shared(register: str, kind: str, kinds: dict[str, str], node: ast.AST) -> ast.AST | None:
    """Keep variables of some types in one register; where their types differ from its, a cast costs nothing."""
    shared = partial(_shared, register, kind, kinds)
    match node:
        case ast.Name(text, ast.Load()) if text in kinds:
            return _cast(name(register), kind, kinds[text])
        case ast.Name(text, ast.Store()) if text in kinds:
            return ast.Name(register, ast.Store())
        case ast.Assign([ast.Name(text)], value) if kinds.get(text, kind) != kind:
            return assign(register, call(kind, replaced(value, shared)))
        case ast.AugAssign(ast.Name(text), operator, value) if kinds.get(text, kind) != kind:
            return shared(assign(text, ast.BinOp(name(text), operator, value)))
    return None


def _spans(body: list[ast.stmt]) -> dict[str, tuple[int, int]]:
    """Return between which statements each variable lives: their numbers in the order of the source."""
    spans: dict[str, tuple[int, int]] = {}
    numbered = [*enumerate(statements(body))]
    for n, statement in numbered:
        for text in names(statement.test if isinstance(statement, ast.If | ast.While) else statement):
            spans[text] = spans.get(text, (n, n))[0], n
    for start, loop in numbered:
        if isinstance(loop, ast.While):
            end = start + len([*statements(loop.body)])
            carried = _read_first([loop], set())  # from one turn to the next
            for text in names(loop):
                first, last = spans[text]
                if text in carried or first < start or last > end:
                    spans[text] = min(first, start), max(last, end)
    return spans


def _read_first(block: list[ast.stmt], assigned: set[str]) -> set[str]:
    """Return the names that a block may read before it assigns them. assigned: before it; gets those that it surely assigns."""
    first: set[str] = set()
    for statement in block:
        match statement:
            case ast.If(test, body, orelse):
                arms = assigned.copy(), assigned.copy()
                first |= read([test]) - assigned | _read_first(body, arms[0]) | _read_first(orelse, arms[1])
                assigned |= arms[0] & arms[1]
            case ast.While(test, body):
                first |= read([test]) - assigned | _read_first(body, assigned.copy())
            case ast.Assign([ast.Name(text)], value):
                first |= read([value]) - assigned
                assigned.add(text)
            case _:
                first |= names(statement) - assigned
    return first
