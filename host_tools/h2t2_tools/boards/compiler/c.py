"""Writes the plain core as C99: the classes of a policy's live objects as structs, the functions of a step for them.

C's own compiler inlines and chooses registers, so that the plain functions, their constants folded, are taken as they are.
Nothing is left to it that C does not define: functions of `operations.h` divide and shift. What only constructors assign
becomes a constant of the pair's header, which has the state at the start as well.
"""

from __future__ import annotations

import ast
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import Any

from .program import BOOL, INT, Class, Function, Type, calls, modules
from .simplify import Unsupported
from .syntax import constant, range_of, stored

ITEMS = {"i": "int32_t", "h": "int16_t", "H": "uint16_t", "B": "uint8_t"}
OF_ARRAYS: dict[Type, str] = {"Int32s": "int32_t", "Int16s": "int16_t", "UInt16s": "uint16_t", "UInt8s": "uint8_t"}
REFUSED = "H2T2_REFUSED"
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
FUNCTIONS = {ast.FloorDiv: "h2t2_div", ast.Mod: "h2t2_mod", ast.LShift: "h2t2_shl", ast.RShift: "h2t2_shr"}
ORDERS = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
# what a device calls of a policy, and what its snapshot needs
PUBLIC = ("decide", "learn", "lose", "count_question", "likely", "offload_chance", "steps", "set_beta", "set_deltas", "reset")
ROWS = ("number_rows", "array_rows", "derive")


@dataclass(frozen=True)
class Items:
    """An array.

    Attributes:
        item: C type of its items.
        size: Number of them, as C has it; "": unknown.
    """

    item: str
    size: str = ""


class Struct:
    """A class as C has it: the attributes of a live object."""

    def __init__(self, program: Program, value: Any) -> None:
        kind = type(value)
        self.program = program
        self.kind: Class = modules()[f"{kind.__module__.replace('.', '/')}.py"].classes[kind.__name__]
        self.name = "h2t2" if kind.__name__ == "H2T2" else f"h2t2_{snake(kind.__name__)}"
        self.types: dict[str, Kind] = {}
        # the small ones first, of a struct its numbers: a processor's shortest load reaches the first 32 words alone
        for attribute, inner in sorted(vars(value).items(), key=lambda item: extent(item[1])):
            if isinstance(inner, int):
                self.types[attribute] = INT
            elif isinstance(inner, array | list):
                item = ITEMS[inner.typecode] if isinstance(inner, array) else "int32_t"
                self.types[attribute] = Items(item, self.macro(attribute))
            elif inner is not None:
                self.types[attribute] = program.struct(inner)

    def macro(self, attribute: str) -> str:
        """Return the name of a constant: an attribute that never changes, or the size of an array."""
        return f"{self.name}_{attribute}".upper()

    def sized(self, kind: Items, text: str) -> Items:
        """Return the type of an attribute, an array. text: the attribute in C."""
        return kind

    def is_constant(self, attribute: str) -> bool:
        return self.types[attribute] == INT and (self.name, attribute) not in self.program.changed

    def declaration(self) -> str:
        members = [self.member(attribute, kind) for attribute, kind in self.types.items() if not self.is_constant(attribute)]
        return "\n".join([f"typedef struct {self.name} {{", *(f"    {member};" for member in members), f"}} {self.name};"])

    def member(self, attribute: str, kind: Kind) -> str:
        if isinstance(kind, Items):
            return f"{kind.item} {attribute}[{kind.size}]"
        return f"{kind.name if isinstance(kind, Struct) else 'int32_t'} {attribute}"

    def constants(self, value: Any) -> Iterator[tuple[str, int]]:
        """Yield the names and values of an object's constants."""
        for attribute, kind in self.types.items():
            inner = getattr(value, attribute)
            if isinstance(kind, Items):
                yield kind.size, len(inner)
            elif isinstance(kind, Struct):
                yield from kind.constants(inner)
            elif self.is_constant(attribute):
                yield self.macro(attribute), int(inner)

    def clear(self, value: Any) -> None:
        """Set all items of an object's arrays to 0."""
        for attribute, kind in self.types.items():
            inner = getattr(value, attribute)
            if isinstance(kind, Items):
                for n in range(len(inner)):
                    inner[n] = 0
            elif isinstance(kind, Struct):
                kind.clear(inner)

    def start(self, value: Any, cleared: Any) -> str:
        """Return the initialiser of an object. cleared: the same one, without the arrays that another function fills."""
        words = []
        for attribute, kind in self.types.items():
            inner, cleared_inner = getattr(value, attribute), getattr(cleared, attribute)
            if isinstance(kind, Items):
                words.append(row([0] if inner == cleared_inner else inner))
            elif isinstance(kind, Struct):
                words.append(kind.start(inner, cleared_inner))
            elif not self.is_constant(attribute):
                words.append(str(int(inner)))
        return f"{{{', '.join(words)}}}"


Kind = str | Items | Struct


def extent(value: Any) -> int:
    """Return the number of integers in an attribute of a live object, of a struct without its arrays."""
    if isinstance(value, array | list):
        return len(value)
    return 1 if isinstance(value, int) or value is None else sum(isinstance(inner, int) for inner in vars(value).values())


def row(values: Iterable[int]) -> str:
    """Return the initialiser of an array; C adds zeros."""
    numbers = [*values]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return f"{{{', '.join(map(str, numbers))}}}"


def smallest(values: list[int]) -> str:
    """Return the smallest type of a constant array."""
    types = {"uint8_t": 255, "uint16_t": 65535}
    return next((item for item, last in types.items() if min(values) >= 0 and max(values) <= last), "int32_t")


def snake(text: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()


@dataclass
class Instance:
    """A function for arguments of certain types.

    Attributes:
        function: The function.
        kinds: Types of its parameters.
        name: In C.
        text: Its definition.
        refuses: Whether it may refuse its arguments, as an exception does.
        effects: Attributes that it assigns; "[]" stands for the items of an array.
    """

    function: Function
    kinds: dict[str, Kind]
    name: str
    text: str = ""
    refuses: bool = False
    effects: set[str] = field(default_factory=set)

    @cached_property
    def measured(self) -> set[str]:
        """The parameters whose length it reads."""
        lengths = [call.args[0] for call in calls(self.function.node) if ast.unparse(call.func) == "len"]
        return {each.id for each in lengths if isinstance(each, ast.Name) and each.id in self.kinds}

    @property
    def result(self) -> str:
        if self.function.result in OF_ARRAYS:
            return f"{OF_ARRAYS[self.function.result]} *"
        return "int32_t " if self.refuses or self.function.result in (INT, BOOL) else "void "


class Program:
    """The C program of some classes of policies."""

    struct_class = Struct

    def __init__(self, policies: list[Any]) -> None:
        """policies: An object of each class, with any options."""
        self.structs: dict[type, Struct] = {}
        self.changed: set[tuple[str, str]] = set()
        self.policies = [self.struct(policy) for policy in policies]
        for _ in range(2):  # the second time it knows what changes
            self.instances: dict[tuple[Any, ...], Instance] = {}
            self.order: list[Instance] = []
            self.tables: dict[str, list[int]] = {}
            for policy in self.policies:
                self.write(policy)

    def write(self, policy: Struct) -> None:
        """Write the functions of a policy."""
        for text in (*PUBLIC, *ROWS):
            self.instance(policy.kind.method(text), {"self": policy})
        generator = policy.types["rng"]
        assert isinstance(generator, Struct)
        self.instance(generator.kind.method("__init__"), {"self": generator})

    def struct(self, value: Any) -> Struct:
        kind = type(value)
        if kind not in self.structs:
            self.structs[kind] = self.struct_class(self, value)  # after those that it contains
        return self.structs[kind]

    def instance(self, function: Function | None, kinds: dict[str, Kind]) -> Instance:
        """Return a function for arguments of these types; those that are missing are as annotated."""
        assert function
        types: dict[str, Kind] = {}
        for text, annotated in function.parameters.items():
            kind = kinds.get(text) or annotated
            if isinstance(kind, Items):
                types[text] = Items(kind.item)
            elif isinstance(kind, Struct):
                types[text] = kind
            else:
                types[text] = Items(OF_ARRAYS[kind]) if kind in OF_ARRAYS else INT
        key = function, *types.values()
        if key not in self.instances:
            instance = Instance(function, types, self._name(function, types))
            if instance.name in {each.name for each in self.instances.values()}:
                raise Unsupported(function.node, f"{instance.name} twice")
            self.instances[key] = instance
            _Function(self, instance).write()
            self.order.append(instance)
        return self.instances[key]

    def _name(self, function: Function, kinds: dict[str, Kind]) -> str:
        name = function.name.strip("_")
        owner = kinds.get("self")
        if function.owner and isinstance(owner, Struct):
            inherited = "" if owner.kind.method(function.name) is function else f"{snake(function.owner.name)}_"
            return f"{owner.name}_{inherited}{name}"
        arrays = {text: kind.item for text, kind in kinds.items() if isinstance(kind, Items)}
        any_item = [item.removesuffix("_t") for text, item in arrays.items() if function.parameters[text] not in OF_ARRAYS]
        return "_".join(["h2t2", name, *any_item])

    def table(self, name: str, values: list[int]) -> str:
        """Return the name of a constant array."""
        names = [text for text, numbers in self.tables.items() if numbers == values]
        text, *_ = [*names, name or f"h2t2_row_{len(self.tables)}"]
        self.tables[text] = values
        return text

    def text(self) -> str:
        """Return tables, structs and functions."""
        texts = [
            f"static const {smallest(values)} {name}[{len(values)}] = {row(values)};" for name, values in self.tables.items()
        ]
        texts += [each.declaration() for each in self.structs.values()]
        texts += [each.text for each in self.order]
        return "\n\n".join(texts)


class _Function:
    """Writes a function."""

    def __init__(self, program: Program, instance: Instance) -> None:
        self.program = program
        self.instance = instance
        self.function = instance.function
        self.module = instance.function.module
        self.types: dict[str, Kind] = dict(instance.kinds)
        self.constants: dict[str, ast.expr] = {}  # names that stand for an expression, in a loop that is unrolled
        for text in instance.measured:
            self.types[text] = Items(self.items(ast.Name(text)).item, f"{text}_size")
        self.declared = {*instance.kinds}
        self.depth = 1

    def write(self) -> None:
        instance = self.instance
        body = "\n".join(self.block(self.function.node.body))
        parameters = []
        for text, kind in instance.kinds.items():
            parameters.append(declared(kind, text))
            if text in instance.measured:
                parameters.append(f"int32_t {text}_size")
        if self.is_rows:
            parameters.append("h2t2_rows *rows")
        local = [f"    {declared(kind, text)} = 0;" for text, kind in self.types.items() if text not in self.declared]
        first = f"static inline {instance.result}{instance.name}({', '.join(parameters)})"
        unused = [f"    (void){text};" for text in instance.kinds if not re.search(rf"\b{text}\b", body)]
        last = ["    return 0;"] if instance.result == "int32_t " and instance.function.result not in (INT, BOOL) else []
        instance.text = "\n".join([first, "{", *local, *unused, *([body] if body else []), *last, "}"])

    @property
    def is_rows(self) -> bool:
        return self.function.name in ROWS[:2]

    def unsupported(self, node: ast.AST) -> Unsupported:
        return Unsupported(node, f"{self.module.path}: {ast.unparse(node)}")

    # statements

    def block(self, statements: list[ast.stmt]) -> list[str]:
        indent = "    " * self.depth
        return [line if line.startswith(" ") else indent + line for each in statements for line in self.statement(each)]

    def nested(self, first: str, statements: list[ast.stmt]) -> list[str]:
        self.depth += 1
        body = self.block(statements)
        self.depth -= 1
        return [f"{first} {{", *body, "    " * self.depth + "}"]

    def statement(self, node: ast.stmt) -> list[str]:
        match node:
            case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(ast.Call(ast.Name("iter"))):
                return []
            case ast.Break() | ast.Continue():
                return [f"{ast.unparse(node)};"]
            case ast.Expr(ast.Yield(ast.Tuple(entries))):
                return self.row(entries)
            case ast.Expr(ast.YieldFrom(call)):
                return [f"{self.value(call)};"]
            case ast.Expr(ast.Call() as call):
                text = self.value(call)
                return [f"if ({text} < 0) return {REFUSED};" if self.refused(call) else f"{text};"]
            case ast.Assign([ast.Attribute() as target], ast.List(values)):
                place = self.value(target)
                self.stores(target)
                return [f"{place}[{n}] = {self.bare(value)};" for n, value in enumerate(values)]
            case ast.Assign(targets, value):
                return self.assign(targets, value)
            case ast.AugAssign(target, operator, value):
                load = ast.parse(ast.unparse(target), mode="eval").body
                return self.assign([target], ast.copy_location(ast.BinOp(load, operator, value), node))
            case ast.If(ast.Attribute(value, "limited"), body):
                owner = self.type_of(value)
                assert isinstance(owner, Struct)
                return self.block(body) if "limit" in owner.types else []
            case ast.If(test, body, orelse):
                lines = self.nested(f"if ({self.bare(test)})", body)
                if orelse:
                    lines[-1] += " else {"
                    lines += self.nested("", orelse)[1:]
                return lines
            case ast.While(test, body, []):
                return self.nested(f"while ({self.bare(test)})", body)
            case ast.For(ast.Name(text), ast.Call(ast.Name("range"), limits), body, []):
                return self.count(node, text, limits, body)
            case ast.For(target, ast.Tuple(rows), body, []):
                return self.unrolled(target, rows, body)
            case ast.Return(value):
                return self.returned(value)
            case ast.Raise():
                self.instance.refuses = True
                return [f"return {REFUSED};"]
        raise self.unsupported(node)

    def returned(self, value: ast.expr | None) -> list[str]:
        text = self.bare(value) if value else ""
        if self.is_rows:
            return [f"{text};"]
        return [f"return {text};" if text else "return;" if self.instance.result == "void " else "return 0;"]

    def row(self, entries: list[ast.expr]) -> list[str]:
        """A row of the state."""
        if isinstance(self.type_of(entries[0]), Items):
            array, *limits = entries
            return [f"h2t2_items_{self.items(array).item}(rows, {', '.join([self.value(array), *map(self.bare, limits)])});"]
        owner, name, low, high = (self.constants.get(each.id, each) if isinstance(each, ast.Name) else each for each in entries)
        assert isinstance(name, ast.Constant) and isinstance(name.value, str)
        target = ast.Attribute(owner, name.value, ast.Load())
        self.stores(target)
        return [f"h2t2_number(rows, &{self.value(target)}, {self.bare(low)}, {self.bare(high)});"]

    def assign(self, targets: list[ast.expr], value: ast.expr) -> list[str]:
        new = self.argument(value)
        kind = self.type_of(value)
        first = ""
        places = []
        for target in targets:
            if isinstance(target, ast.Name):
                if self.depth == 1 and len(targets) == 1 and target.id not in self.types:
                    self.declared.add(target.id)
                    first = declared(kind, "")
                if self.types.setdefault(target.id, kind) != kind:
                    raise self.unsupported(target)
            else:
                self.ordered(ast.Tuple([target, value]), [target, value])
                self.stores(target)
            places.append(self.value(target))
            if isinstance(target, ast.Subscript) and len(targets) == 1 and self.items(target.value).item != "int32_t":
                new = f"({self.items(target.value).item}){self.value(value)}"
        lines = [f"{first}{' = '.join([*places, new])};"]
        if isinstance(value, ast.Call) and self.refused(value):
            lines.append(f"if ({places[0]} == {REFUSED}) return {REFUSED};")
        return lines

    def stores(self, target: ast.expr) -> None:
        if isinstance(target, ast.Attribute):
            owner = self.type_of(target.value)
            assert isinstance(owner, Struct)
            self.program.changed.add((owner.name, target.attr))
        elif not isinstance(target, ast.Subscript):
            raise self.unsupported(target)
        self.instance.effects.add(getattr(target, "attr", "[]"))

    def count(self, node: ast.stmt, text: str, limits: list[ast.expr], body: list[ast.stmt]) -> list[str]:
        start, stop, increase = range_of(limits)
        step = constant(increase)
        if text in stored(body) or not step:
            raise self.unsupported(node)
        self.types.setdefault(text, INT)
        first, last = f"{text} = {self.bare(start)}", self.bare(stop)
        if not last.isupper() and not last.isdecimal() and not (last in self.types and last not in stored(body)):
            self.types.setdefault(f"{text}_stop", INT)
            first, last = f"{first}, {text}_stop = {last}", f"{text}_stop"
        turn = f"{text}++" if step == 1 else f"{text} += {step}"
        return self.nested(f"for ({first}; {text} {'<' if step > 0 else '>'} {last}; {turn})", body)

    def unrolled(self, target: ast.expr, rows: list[ast.expr], body: list[ast.stmt]) -> list[str]:
        """A loop over a tuple."""
        lines = []
        outer = dict(self.constants)
        for row in rows:
            pairs = [(target, row)]
            if isinstance(target, ast.Tuple) and isinstance(row, ast.Tuple):
                pairs = [*zip(target.elts, row.elts)]
            self.constants |= {ast.unparse(name): value for name, value in pairs}
            lines += self.block(body)
        self.constants = outer
        return lines

    # expressions

    def type_of(self, node: ast.expr) -> Kind:
        match node:
            case ast.Name(text) if text in self.constants:
                return self.type_of(self.constants[text])
            case ast.Name(text):
                return self.types.get(text, INT)
            case ast.Attribute(value, text):
                owner = self.type_of(value)
                if not isinstance(owner, Struct) or text not in owner.types:
                    raise self.unsupported(node)
                kind = owner.types[text]
                return owner.sized(kind, self.value(node)) if isinstance(kind, Items) else kind
            case ast.Call():
                instance, _ = self.callee(node)
                if instance and instance.result.endswith("*"):
                    return Items(instance.result.removesuffix(" *"))
        return INT

    def items(self, node: ast.expr) -> Items:
        """Return the type of an array."""
        kind = self.type_of(node)
        if not isinstance(kind, Items):
            raise self.unsupported(node)
        return kind

    def size(self, node: ast.expr) -> str:
        """Return the number of items of an array, as C has it."""
        if size := self.items(node).size:
            return size
        raise self.unsupported(node)

    def bare(self, node: ast.expr) -> str:
        """Return an expression without the parentheses around it."""
        text = self.value(node)
        if text.startswith("(") and isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp):
            return text[1:-1]
        return text

    def value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(bool() | int() as value):
                return str(int(value)) if value >= 0 else f"({value})"
            case ast.Name(text) if text in self.constants:
                return self.value(self.constants[text])
            case ast.Name(text) if text in self.types:
                return text
            case ast.Attribute(value, text):
                owner = self.type_of(value)
                assert isinstance(owner, Struct)
                if owner.is_constant(text) and isinstance(node.ctx, ast.Load):
                    return owner.macro(text)
                inner = self.value(value)
                return f"{inner}{'.' if isinstance(value, ast.Attribute) else '->'}{text}"
            case ast.Subscript(value, index):
                return self.item(value, index)
            case ast.BinOp(left, operator, right):
                return self.operation(node, left, operator, right)
            case ast.UnaryOp(operator, operand):
                sign = {ast.USub: "-", ast.Invert: "~", ast.Not: "!"}[type(operator)]
                return f"(-{self.value(operand)})" if sign == "-" else f"{sign}{self.value(operand)}"
            case ast.BoolOp(operator, values):
                if not self.is_test(node):  # C has a truth there, Python one of the values
                    raise self.unsupported(node)
                words = [f"({word} != 0)" if word.isupper() else word for word in map(self.value, values)]  # a constant
                return f"({(' && ' if isinstance(operator, ast.And) else ' || ').join(words)})"
            case ast.Compare(left, operators, rights) if {*map(type, operators)} <= {*ORDERS}:
                self.ordered(node, [left, *rights])
                triples = zip([left, *rights], operators, rights)
                words = [f"{self.value(a)} {ORDERS[type(order)]} {self.value(b)}" for a, order, b in triples]
                return f"({' && '.join(words)})"
            case ast.IfExp(test, body, orelse):
                return f"({self.value(test)} ? {self.value(body)} : {self.value(orelse)})"
            case ast.Call():
                return self.call(node)
        raise self.unsupported(node)

    def is_test(self, node: ast.BoolOp) -> bool:
        """Return whether only the truth of a value matters."""
        tests = [each.test for each in ast.walk(self.function.node) if isinstance(each, ast.If | ast.While | ast.IfExp)]
        return any(inner is node for test in tests for inner in ast.walk(test))

    def item(self, value: ast.expr, index: ast.expr) -> str:
        match value:
            case ast.Tuple(elements):
                return f"{self.program.table('', [*map(constant, elements)])}[{self.bare(index)}]"  # type: ignore[list-item]
            case ast.Name(text) if text not in self.types and text not in self.constants:
                path, name = self.module.home(text)
                return f"{self.program.table(f'h2t2_{name.lower()}', global_table(path, name))}[{self.bare(index)}]"
        return f"{self.value(value)}[{self.bare(index)}]"

    def operation(self, node: ast.expr, left: ast.expr, operator: ast.operator, right: ast.expr) -> str:
        if constant(left) is not None and constant(right) is not None:
            return self.value(ast.Constant(eval(ast.unparse(node))))
        self.ordered(node, [left, right])
        if type(operator) in FUNCTIONS:
            return f"{FUNCTIONS[type(operator)]}({self.bare(left)}, {self.bare(right)})"
        if type(operator) not in OPERATORS:
            raise self.unsupported(node)
        return f"({self.value(left)} {OPERATORS[type(operator)]} {self.value(right)})"

    # calls

    def call(self, node: ast.Call) -> str:
        match node.func, node.args:
            case ast.Name("max" | "min" as text), [operand, *following]:
                self.ordered(node, node.args)
                result = self.bare(operand)
                for each in following:
                    result = f"h2t2_{text}({result}, {self.bare(each)})"
                return result
            case ast.Name("abs"), [value]:
                return f"h2t2_abs({self.bare(value)})"
            case ast.Name("len"), [ast.Tuple(elements)]:
                return str(len(elements))
            case ast.Name("len"), [ast.Name(text)] if text not in self.types and text not in self.constants:
                return str(len(global_table(*self.module.home(text))))
            case ast.Name("len"), [value]:
                return self.size(value)
            case ast.Name("checked_integer"), [_, value, low, high, *_]:
                return f"h2t2_check({self.bare(value)}, {self.bare(low)}, {self.bare(high)})"
        callee, arguments = self.callee(node)
        if callee is None:
            raise self.unsupported(node)
        self.ordered(node, arguments)
        self.instance.effects |= callee.effects
        self.instance.refuses |= callee.refuses
        words = []
        for text, value in zip(callee.kinds, arguments):
            words += [self.argument(value), *([self.size(value)] if text in callee.measured else [])]
        return f"{callee.name}({', '.join([*words, *(['rows'] if self.is_rows else [])])})"

    def argument(self, value: ast.expr) -> str:
        text = self.bare(value)
        return f"&{text}" if isinstance(self.type_of(value), Struct) and not isinstance(value, ast.Name) else text

    def callee(self, node: ast.Call) -> tuple[Instance | None, list[ast.expr]]:
        """Return the function that a call runs, and its arguments."""
        receiver: list[ast.expr] = []
        function = None
        match node.func:
            case ast.Name(text):
                defined = self.module.defined(text)
                function = defined if isinstance(defined, Function) else None
            case ast.Attribute(ast.Name(text), method) if isinstance(owner := self.module.defined(text), Class):
                function = owner.method(method)
            case ast.Attribute(value, method):
                kind = self.type_of(value)
                function = kind.kind.method(method) if isinstance(kind, Struct) else None
                receiver = [value]
        if function is None or node.keywords:
            return None, []
        arguments = [*receiver, *node.args]
        kinds = {text: self.type_of(value) for text, value in zip(function.parameters, arguments)}
        return self.program.instance(function, {text: kind for text, kind in kinds.items() if kind != INT}), arguments

    def refused(self, node: ast.Call) -> bool:
        """Return whether a call may refuse its arguments."""
        if isinstance(node.func, ast.Name) and node.func.id == "checked_integer":
            self.instance.refuses = True
            return True
        callee, _ = self.callee(node)
        return bool(callee and callee.refuses)

    # the order of effects, which C leaves open among operands

    def ordered(self, node: ast.AST, operands: list[ast.expr]) -> None:
        """Raise Unsupported if the value of an expression depends on the order in which its operands are computed."""
        if not any(map(calls, operands)):
            return
        touched = [(self.effects(operand), self.reads(operand)) for operand in operands]
        if any(first & (second | reads) for (first, _), (second, reads) in permutations(touched, 2)):
            raise self.unsupported(node)

    def effects(self, node: ast.expr) -> set[str]:
        callees = [callee for call in calls(node) if (callee := self.callee(call)[0])]
        return {effect for callee in callees for effect in callee.effects}

    def reads(self, node: ast.expr) -> set[str]:
        methods = [call.func for call in calls(node)]
        attributes = [each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load)]
        numbers = {each.attr for each in attributes if each not in methods and self.type_of(each) == INT}
        return numbers | {"[]" for each in ast.walk(node) if isinstance(each, ast.Subscript)}


def declared(kind: Kind, text: str) -> str:
    if isinstance(kind, Items):
        return f"{kind.item} *{text}"
    return f"{kind.name} *{text}" if isinstance(kind, Struct) else f"int32_t {text}"


def global_table(path: str, name: str) -> list[int]:
    """Return the numbers of an array or tuple that a module defines."""
    for node in modules()[path].tree.body:
        match node:
            case ast.Assign([ast.Name(text)], ast.Call(ast.Name("array"), [_, ast.Tuple(elements)]) | ast.Tuple(elements)):
                if text == name:
                    return [value for value in map(constant, elements) if value is not None]
    raise KeyError(name)
