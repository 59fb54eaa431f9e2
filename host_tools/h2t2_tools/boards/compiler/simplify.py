"""Rewrites a function in simpler statements: small functions inlined, max, min, abs and conditional expressions as ifs, for
loops as while loops. The result computes the same integers in the same order.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .joining import SMALL, Argument, Inlined, joined
from .program import ARRAYS, BOOL, INT, KERNELS, OBJECT, PACKED, RARE, STEP, Class, Function, Row, Type
from .syntax import assign, constant, fresh, is_simple, kind_of, name, negated, operation, opposite, range_of, read, stored

WITH_CALLEES = 70  # operations of a function that a kernel's loop contains, with those of the functions that it calls
LARGEST = 110  # operations of a function that a policy's may contain
# functions of policies that stay calls, because several call them or one does seldom; and one that is inlined in loops alone
CALLED = {
    "_charge_offload", "_forecast", "_pull", "_see", "_teach", "charge", "check", "count_saving", "decide", "divide", "draw",
    "estimate", "learn", "log2", "open", "regions", "show_current", "weigh", "weights",
}  # fmt: skip
IN_LOOPS = "exp2"


class Unsupported(Exception):
    """A function leaves the subset of docs/numbers.md.

    Attributes:
        line: Line of the module's source.
        reason: Why.
    """

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(reason)
        self.line = getattr(node, "lineno", 0)
        self.reason = reason


class Result(ast.Assign):
    """The assignment of an inlined function's result."""


@dataclass
class Scope:
    """Where names are looked up: the root function, or one that is inlined.

    Attributes:
        function: The function.
        types: Types of its local names.
        names: Its local names -> those in the result.
    """

    function: Function
    types: dict[str, Type]
    names: dict[str, str] = field(default_factory=dict)


def global_name(method: Function) -> str:
    """Return the global name of a method in machine code."""
    assert method.owner
    return f"{method.owner.name}_{method.name}"


class Simple:
    """A function in simpler statements. It raises Unsupported, with the line, for one that leaves the subset.

    Attributes:
        body: The statements.
        types: Types of its local names, and of the arrays of modules that it reads.
        tables: Names of those arrays.
        imports: Names that its module must import for it: path of a module and name.
        inlined: The functions that it contains.
        called: Methods that it calls by a global name, which costs less than to look them up in an object.
    """

    def __init__(self, function: Function) -> None:
        arguments = function.node.args
        if arguments.defaults or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
            raise Unsupported(function.node, "a parameter with a default")
        self.root = function
        self.types: dict[str, Type] = dict(function.parameters)
        self.tables: set[str] = set()
        self.imports: set[tuple[str, str]] = set()
        self.inlined: set[Function] = set()
        self.called: set[Function] = set()
        self.scope = Scope(function, self.types)
        self.out: list[ast.stmt] = []
        self.depth = 0
        self.further: tuple[ast.stmt, ...] = ()  # the step of the innermost loop's counter
        self.extremes: set[str] = set()  # names of results of max and min, which nothing else has read yet
        self.active: list[Function] = [function]
        self.shared: dict[tuple[Function, str, Type], str] = {}  # names of the variables of an inlined function
        self.own = stored([function.node]) | set(function.parameters)
        self.body = joined(self.block(function.node.body))

    # names

    def fresh(self, base: str, kind: Type) -> str:
        """Return a new local name."""
        return fresh(self.types, f"{base}_", kind, self.own)

    def reused(self, function: Function, text: str, kind: Type) -> str:
        """Return the name of a variable of an inlined function: all places that inline it share its variables."""
        key = function, text, kind
        if key not in self.shared:
            self.shared[key] = self.fresh(text or function.name.strip("_"), kind)
        return self.shared[key]

    def type_of(self, node: ast.expr) -> Type:
        return self.scope.function.module.type_of(node, self.scope.types)

    def local(self, text: str, kind: Type = OBJECT) -> str:
        """Return the name of a local variable in the result; it gets its type with its first assignment."""
        if text not in self.scope.names:
            is_root = self.scope.function is self.root
            self.scope.names[text] = text if is_root else self.reused(self.scope.function, text, kind)
        if self.scope.types.get(text, OBJECT) == OBJECT:
            self.scope.types[text] = INT if kind == BOOL else kind
        self.types[self.scope.names[text]] = self.scope.types[text]
        return self.scope.names[text]

    def imported(self, text: str) -> ast.Name:
        """Return a global name of the scope's module as the root's module has it."""
        module, root = self.scope.function.module, self.root.module
        home = module.home(text)
        if root.home(text) != home:
            if root.defined(text) or home == (module.path, text) and text not in module.tables:
                raise Unsupported(self.root.node, f"{text} of another module")
            self.imports.add(home)
        return name(text)

    # statements

    def apart(self, rewrite: Callable[[Any], Any], node: Any) -> tuple[Any, list[ast.stmt]]:
        """Rewrite a node; return the result, and the statements that it needs before it."""
        outer, self.out = self.out, []
        result = rewrite(node)
        added, self.out = self.out, outer
        return result, added

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return self.apart(lambda each: [*map(self.statement, each)], statements)[1]

    def statement(self, node: ast.stmt) -> None:
        match node:
            case Result([ast.Name(text)], value):
                self.out.append(assign(text, self.expression(value)))
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                value = self.call(call)
                if isinstance(value, ast.Call):
                    self.out.append(ast.Expr(value))
            case ast.Assign([ast.Tuple(targets)], value):
                self.unpack(node, [target.id if isinstance(target, ast.Name) else "" for target in targets], value)
            case ast.Assign(targets, value):
                self.assign(targets, value)
            case ast.AugAssign(ast.Name(text) as target, operator, value):
                new = self.expression(value)
                self.out.append(ast.AugAssign(ast.Name(self.local(text, INT), ast.Store()), operator, new))
            case ast.AugAssign(target, operator, value):
                self.change(target, operator, value)
            case ast.If(test, body, orelse):
                condition = self.test(test)
                self.out.append(ast.If(condition, self.block(body), self.block(orelse)))
            case ast.While(test, body, []):
                self.loop(test, self.looped(self.block, body))
            case ast.For(ast.Name(text), ast.Call(ast.Name("range"), limits, [])):
                self.count(node, text, limits)
            case ast.For(ast.Name() as target, ast.Tuple() as row, body, []):
                self.items(target, row, body)
            case ast.Return(value):
                self.out.append(ast.Return(self.expression(value) if value else None))
            case ast.Break():
                self.out.append(node)
            case ast.Continue():
                self.out += [*copy.deepcopy(self.further), node]
            case ast.Raise(ast.Call(ast.Name(kind), [message]), None):
                self.out.append(ast.Raise(ast.Call(name(kind), [self.expression(message)], []), None))
            case _:
                raise Unsupported(node, f"the statement {ast.unparse(node).splitlines()[0]!r}")

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        kind = self.type_of(value)
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            new = self.expression(value)
            self.out.append(assign(self.local(targets[0].id, kind), new))
            return
        if len(targets) == 1:
            new, *operands = self.several([value, *_operands(targets[0])])
            self.out.append(assign(_with_operands(targets[0], operands, ast.Store()), new))
            return
        new = self.simple(self.expression(value))
        for target in targets:
            if not isinstance(target, ast.Name):
                operands = self.several(_operands(target))
                self.out.append(assign(_with_operands(target, operands, ast.Store()), copy.deepcopy(new)))
            else:
                self.out.append(assign(self.local(target.id, kind), copy.deepcopy(new)))

    def unpack(self, node: ast.Assign, names: list[str], value: ast.expr) -> None:
        """Assign the items of an array or of a tuple to names, one by one; `_` gets none."""
        row = value if isinstance(value, ast.Tuple) else self.expression(value)
        if "" in names or not isinstance(row, ast.Name | ast.Tuple):
            raise Unsupported(node, "an assignment to several targets")
        if isinstance(row, ast.Tuple):
            for text, new in zip(names, [*map(self.held, self.several(row.elts))]):
                self.out.append(assign(self.local(text, INT), new))
            return
        kind = self.type_of(value)
        for n, text in enumerate(names):
            if text != "_":
                item = (kind.items[n] if kind.items else kind.item) if isinstance(kind, Row) else INT
                self.out.append(assign(self.local(text, item), ast.Subscript(name(row.id), ast.Constant(n), ast.Load())))

    def change(self, target: ast.expr, operator: ast.operator, value: ast.expr) -> None:
        """An augmented assignment to an item or an attribute."""
        operands = [self.simple(operand) for operand in self.several(_operands(target))]
        mark = len(self.out)
        new = self.expression(value)
        (old,) = self.saved([copy.deepcopy(_with_operands(target, operands, ast.Load()))], mark)
        self.out.append(assign(_with_operands(target, operands, ast.Store()), ast.BinOp(old, operator, new)))

    def simple(self, value: ast.expr) -> ast.expr:
        """Return a name or a constant with that value."""
        return value if is_simple(value) else self.held(value)

    def held(self, value: ast.expr) -> ast.expr:
        """Return a new name for a value, or a constant."""
        if isinstance(value, ast.Constant):
            return value
        text = self.fresh("x", kind_of(value, self.types))
        self.out.append(assign(text, value))
        return name(text)

    def loop(self, test: ast.expr, body: list[ast.stmt]) -> None:
        condition, before = self.looped(lambda each: self.apart(self.test, each), test)
        if before:
            body = [*before, ast.If(opposite(condition), [ast.Break()], []), *body]
        self.out.append(ast.While(ast.Constant(1) if before else condition, body, []))

    def looped(self, rewrite: Callable[[Any], Any], node: Any, *further: ast.stmt) -> Any:
        """Rewrite what runs in a loop. further: What is done before each `continue`."""
        outer, self.further = self.further, further
        self.depth += 1
        result = rewrite(node)
        self.depth -= 1
        self.further = outer
        return result

    def count(self, node: ast.For, text: str, limits: list[ast.expr]) -> None:
        """A loop over a range."""
        if node.orelse:
            raise Unsupported(node, "else of a loop")
        start, stop, increase = range_of(self.several(limits))
        step = constant(increase)
        if not step:
            raise Unsupported(node, "a range whose step is no constant")
        if step == 1 and text not in read([self.scope.function.node]):  # it counts down to 0
            counter = self.fresh("left", INT)
            self.out.append(assign(counter, operation(stop, ast.Sub(), start)))
            self.counted(counter, -1, ast.Constant(0), node.body)
            return
        target = self.local(text, INT)
        changed = stored(node.body)
        counter = target
        if text in changed or _is_read_outside(self.scope.function.node, text):
            counter = self.fresh(text, INT)
        if not is_simple(stop) or isinstance(stop, ast.Name) and (stop.id in changed | {counter, target}):
            stop = self.held(stop)
        if isinstance(stop, ast.Name) and self.scope.function is not self.root:
            stop = self.held(stop)
        self.out.append(assign(counter, start))
        loop = self.counted(counter, step, stop, node.body, *([assign(target, name(counter))] if counter != target else []))
        loop.counter = counter if step == 1 else ""  # type: ignore[attr-defined]

    def items(self, target: ast.Name, row: ast.Tuple, body: list[ast.stmt]) -> None:
        """A loop over a tuple of constants."""
        index = self.fresh(target.id, INT)
        self.scope.types[index] = INT
        self.scope.names[index] = index
        self.out.append(assign(index, ast.Constant(0)))
        body = [assign(target.id, ast.Subscript(row, name(index), ast.Load())), *body]
        self.counted(index, 1, ast.Constant(len(row.elts)), body)

    def counted(self, counter: str, step: int, stop: ast.expr, body: Sequence[ast.stmt], *first: ast.stmt) -> ast.While:
        """Write a loop with the steps of its counter, and return it. first: What a turn begins with, written already."""
        operator, order = (ast.Add(), ast.Lt()) if step > 0 else (ast.Sub(), ast.Gt())
        further = ast.AugAssign(ast.Name(counter, ast.Store()), operator, ast.Constant(abs(step)))
        turn = [*first, *self.looped(self.block, body, further), further]
        self.out.append(loop := ast.While(ast.Compare(name(counter), [order], [stop]), turn, []))
        return loop

    # expressions

    def several(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Return expressions that are evaluated one after the other, whatever statements the later ones need before them."""
        values: list[ast.expr] = []
        for node in nodes:
            mark = len(self.out)
            value = self.expression(node)
            values = [*self.saved(values, mark), value]
        return values

    def saved(self, values: Sequence[ast.expr], mark: int) -> list[ast.expr]:
        """Return values that were computed before the statements from `mark` on, in names if these could change them."""
        added = self.out[mark:]
        if not added:
            return [*values]
        place = ast.Subscript | ast.Attribute
        nodes = [each for statement in added for each in ast.walk(statement) if isinstance(each, ast.Call | place)]
        effects = any(isinstance(each, ast.Call) or isinstance(each.ctx, ast.Store) for each in nodes)
        changed = stored(added)
        result = []
        for value in values:
            called = any(isinstance(each, ast.Call) for each in ast.walk(value))
            if called or effects and any(isinstance(each, place) for each in ast.walk(value)) or read([value]) & changed:
                text = self.fresh("x", kind_of(value, self.types))
                self.out.insert(mark, assign(text, value))
                mark += 1
                value = name(text)
            result.append(value)
        return result

    def expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant(bool() as value):
                return ast.Constant(int(value))
            case ast.Constant(int() | str()):
                return node
            case ast.Tuple(elements):  # values in the text of an error
                return ast.Tuple(self.several(elements), ast.Load())
            case ast.Name(text) if text in self.scope.types:
                return name(self.scope.names.get(text, text))
            case ast.Name(text):
                return self.defined(node, text)
            case ast.UnaryOp(ast.USub(), operand):
                return negated(self.expression(operand))
            case ast.UnaryOp(ast.Invert(), operand):
                return ast.BinOp(ast.Constant(-1), ast.BitXor(), self.expression(operand))
            case ast.BinOp(left, operator, right):
                if isinstance(operator, ast.Div | ast.Pow | ast.MatMult):
                    raise Unsupported(node, f"the operation {type(operator).__name__}")
                left, right = self.several([left, right])
                return operation(left, operator, right)
            case ast.Compare() | ast.UnaryOp(ast.Not()):
                return self.chosen(node, ast.Constant(1), ast.Constant(0))
            case ast.BoolOp(operator, [first, *following]):
                return self.joined(operator, first, _together(operator, following))
            case ast.IfExp(test, body, orelse):
                return self.chosen(test, body, orelse)
            case ast.Subscript(ast.Tuple(elements), index):
                return self.constant_item(elements, self.expression(index))
            case ast.Subscript(value, index):
                if isinstance(index, ast.Slice):
                    raise Unsupported(node, "a slice")
                array, at = self.several([value, index])
                return ast.Subscript(array, at, ast.Load())
            case ast.Attribute(value, text):
                return ast.Attribute(self.expression(value), text, ast.Load())
            case ast.Call():
                result = self.call(node)
                if result is None:
                    raise Unsupported(node, "a call that returns nothing")
                return result
        raise Unsupported(node, f"the expression {ast.unparse(node)}")

    def defined(self, node: ast.Name, text: str) -> ast.expr:
        """What a module defines."""
        definition = self.scope.function.module.defined(text)
        if definition is None or isinstance(definition, Function):
            raise Unsupported(node, f"the name {text}")
        if not isinstance(definition, Class):
            self.types[text] = definition
            if definition in ARRAYS:
                self.tables.add(text)
        return self.imported(text)

    def constant_item(self, elements: list[ast.expr], index: ast.expr) -> ast.expr:
        """An item of a tuple of constants."""
        values = [value for value in map(constant, elements) if value is not None]
        place = constant(index)
        if place is not None:
            return elements[place]
        row: ast.expr = ast.Tuple(elements, ast.Load())
        if len(values) == len(elements) and min(values) >= 0 and max(values) < 256:
            row = _typed_call(name("ptr8"), [ast.Constant(bytes(values))], "UInt8s")
        return ast.Subscript(row, index, ast.Load())

    def chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> ast.expr:
        """A conditional expression."""
        condition = self.test(test)
        kind = self.type_of(body)
        text = self.fresh("x", INT if kind == BOOL else kind)
        arms = []
        for arm in (body, orelse):
            value, added = self.apart(self.expression, arm)
            arms.append([*added, assign(text, value)])
        if isinstance(orelse, ast.Constant):  # one branch less
            self.out += arms.pop()
        self.out.append(ast.If(condition, arms[0], arms[1] if arms[1:] else []))
        return name(text)

    def joined(self, operator: ast.boolop, first: ast.expr, following: ast.expr) -> ast.expr:
        """The value of `and` or `or`."""
        text = self.fresh("x", INT)
        self.out.append(assign(text, self.expression(first)))
        value, added = self.apart(self.expression, following)
        condition = name(text) if isinstance(operator, ast.And) else opposite(name(text))
        self.out.append(ast.If(condition, [*added, assign(text, value)], []))
        return name(text)

    def test(self, node: ast.expr) -> ast.expr:
        """Return a condition for if and while."""
        match node:
            case ast.UnaryOp(ast.Not(), operand):
                return opposite(self.test(operand))
            case ast.BoolOp(operator, [first, *following]):
                mark = len(self.out)
                left = self.test(first)
                right, before = self.apart(self.test, _together(operator, following))
                if not before:
                    return ast.BoolOp(operator, [left, right])
                del self.out[mark:]
            case ast.Compare():
                return self.compared(node)
        return self.expression(node)

    def compared(self, node: ast.Compare) -> ast.expr:
        identity = isinstance(node.ops[0], ast.Is | ast.IsNot)
        if identity and INT not in (self.type_of(node.left), self.type_of(node.comparators[0])):
            left, right = self.several([node.left, node.comparators[0]])
            return ast.Compare(left, node.ops, [right])
        if identity or isinstance(node.ops[0], ast.In | ast.NotIn):
            raise Unsupported(node, f"the comparison {ast.unparse(node)}")
        first, *middle, last = self.several([node.left, *node.comparators])
        middle = [*map(self.simple, middle)]
        pairs = zip([first, *copy.deepcopy(middle)], node.ops, [*middle, last])
        return _together(ast.And(), [ast.Compare(left, [order], [right]) for left, order, right in pairs])

    # calls

    def call(self, node: ast.Call) -> ast.expr | None:
        if node.keywords:
            raise Unsupported(node, "a named argument")
        if isinstance(node.func, ast.Name) and not isinstance(self.scope.function.module.defined(node.func.id), Function):
            match node.func.id, node.args:
                case "max" | "min" as text, values:
                    return self.extreme(self.several(values), ast.Gt() if text == "max" else ast.Lt())
                case "abs", [value]:
                    new = self.simple(self.expression(value))
                    return self.extreme([new, negated(new)], ast.Gt())
                case "len", [ast.Tuple(elements)]:
                    return ast.Constant(len(elements))
                case "len", [value]:
                    kind = self.type_of(value)
                    if isinstance(kind, Row) and kind.items:
                        return ast.Constant(len(kind.items))
                    return _typed_call(name("len"), [self.expression(value)], INT)
        function = self.scope.function.module.callee(node, self.scope.types)
        if function is None:
            raise Unsupported(node, f"a call of {ast.unparse(node.func)}, which is unknown")
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_class = isinstance(receiver, ast.Name) and receiver.id not in self.scope.types
        self.check(node, function, of_class)
        owner = self.type_of(receiver) if receiver and not of_class else None
        is_certain = receiver is None or of_class or isinstance(owner, Class) and not owner.is_overridden(function)
        arguments = [receiver, *node.args] if receiver and not of_class else node.args
        if is_certain and self.inlines(function):
            state = self.out, len(self.out), self.scope, self.depth, self.active[:], self.further
            try:
                return self.inline(function, arguments)
            except Unsupported:  # it stays a call
                self.out, mark, self.scope, self.depth, self.active, self.further = state
                del self.out[mark:]
        values = self.several(arguments)
        if isinstance(node.func, ast.Name):
            callee: ast.expr = self.imported(node.func.id)
        elif of_class or is_certain and function.name not in RARE:  # which needs no quicker call
            callee = name(global_name(function))
            self.called.add(function)
            if function.module is not self.root.module:
                self.imports.add((function.module.path, global_name(function)))
        else:
            assert isinstance(node.func, ast.Attribute)
            callee = ast.Attribute(values.pop(0), node.func.attr, ast.Load())
        return _typed_call(callee, values, function.result)

    def check(self, node: ast.Call, function: Function, of_class: bool) -> None:
        """Refuse an array with other items than the function reads."""
        parameters = [*function.parameters.items()][function.owner is not None and not of_class :]
        for (text, annotated), value in zip(parameters, node.args):
            kind = self.type_of(value)
            if {kind, annotated} <= {*ARRAYS, *PACKED} and kind != annotated:
                path = self.scope.function.module.path
                raise TypeError(f"{path}:{node.lineno}: {text} of {function.name} is {annotated}, not {kind}")

    def extreme(self, values: list[ast.expr], order: ast.cmpop) -> ast.expr:
        """max and min of several values."""
        first, *values = values[:1] + [*map(self.simple, values[1:])]
        if isinstance(first, ast.Name) and first.id in self.extremes:
            text = first.id
        else:
            text = self.fresh("m", INT)
            self.extremes.add(text)
            self.out.append(assign(text, first))
        for each in values:
            self.out.append(ast.If(ast.Compare(copy.deepcopy(each), [order], [name(text)]), [assign(text, each)], []))
        return name(text)

    def inlines(self, function: Function) -> bool:
        """Return whether a call becomes the function's statements."""
        if function in self.active or function.name in RARE | CALLED or _is_uninlinable(function.node):
            return False
        if function.size <= SMALL:
            return True
        if self.root.module.path in KERNELS:
            return function.whole_size <= WITH_CALLEES and self.depth > 0
        is_certain = not (function.owner and function.owner.is_overridden(function))
        return is_certain and function.size <= LARGEST and (self.depth > 0 or function.name != IN_LOOPS)

    def inline(self, function: Function, arguments: Sequence[ast.expr]) -> ast.expr | None:
        """Put the statements of a function in the place of a call; return the name of its result."""
        defaults = function.node.args.defaults
        missing = len(function.parameters) - len(arguments)
        values = self.several(arguments) + [copy.deepcopy(each) for each in defaults[len(defaults) - missing :] if missing]
        if len(values) != len(function.parameters):
            raise Unsupported(function.node, "another number of arguments")
        outer, inner = self.scope, Scope(function, dict(function.parameters))
        self.active.append(function)
        self.inlined.add(function)
        self.scope = inner
        setup: list[Argument] = []
        for (parameter, kind), value in zip(function.parameters.items(), values):
            if kind == OBJECT:
                kind = inner.types[parameter] = kind_of(value, self.types)
            text = inner.names[parameter] = self.reused(function, parameter, kind)
            setup.append(Argument([ast.Name(text, ast.Store())], value, lineno=0))
        result = "" if function.result == "none" else self.reused(function, "", function.result)
        if result and function.result == BOOL:
            self.types[result] = INT
        body = self.block(_single_exit(copy.deepcopy(function.node.body), result))
        self.scope = outer
        self.active.pop()
        changed, written = stored(function.node.body), stored([*setup, *body])
        for parameter, each in zip(function.parameters, setup):
            each.settled = is_simple(each.value) and parameter not in changed and not read([each.value]) & written
        call = Inlined()
        call.arguments, call.body, call.function = setup, body, function
        self.out.append(call)
        return name(result) if result else None


simplified = cache(Simple)


def is_contained(function: Function) -> bool:
    """Return whether machine code contains a policy's function instead of calling it."""
    others = [*function.owner.lineage()][1:] if function.owner else []
    is_replaced = function.owner and function.owner.is_overridden(function)
    if is_replaced or any(function.name in each.methods for each in others) or _is_uninlinable(function.node):
        return False
    return function.size <= LARGEST and function.name not in {*CALLED, *STEP, IN_LOOPS}


def _is_uninlinable(node: ast.FunctionDef) -> bool:
    """Return whether a function returns inside a loop, or has something that the place of a call cannot have."""
    nodes = [*ast.walk(node)]
    in_loops = [each for loop in nodes if isinstance(loop, ast.While | ast.For) for each in ast.walk(loop)]
    returns = any(isinstance(each, ast.Return) for each in in_loops)
    return returns or any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Raise | ast.Try) for each in nodes)


def _operands(target: ast.expr) -> list[ast.expr]:
    """Return what a target is computed from."""
    match target:
        case ast.Name():
            return []
        case ast.Subscript(value, index):
            return [value, index]
        case ast.Attribute(value):
            return [value]
    raise Unsupported(target, "the target of the assignment")


def _with_operands(target: ast.expr, operands: Sequence[ast.expr], context: ast.expr_context) -> ast.expr:
    """Return an item or an attribute that is computed from other operands."""
    if isinstance(target, ast.Attribute):
        return ast.Attribute(operands[0], target.attr, context)
    return ast.Subscript(operands[0], operands[1], context)


def _typed_call(function: ast.expr, arguments: list[ast.expr], result: Type) -> ast.Call:
    call = ast.Call(function, arguments, [])
    call.result = result  # type: ignore[attr-defined]
    return call


def _single_exit(body: list[ast.stmt], result: str) -> list[ast.stmt]:
    """Return statements that assign the result instead of returning it; what follows a branch that returns is in the others."""
    out: list[ast.stmt] = []
    for n, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            if statement.value is not None and not result:
                raise Unsupported(statement, "a value of a function that returns none")
            if statement.value is not None:
                out.append(Result([ast.Name(result, ast.Store())], statement.value, lineno=statement.lineno))
            return out
        if isinstance(statement, ast.If) and any(isinstance(each, ast.Return) for each in ast.walk(statement)):
            arms = []
            for arm in (statement.body, statement.orelse):
                following = [] if arm and isinstance(arm[-1], ast.Return) else copy.deepcopy(body[n + 1 :])
                arms.append(_single_exit([*arm, *following], result))
            return [*out, ast.copy_location(ast.If(statement.test, *arms), statement)]
        out.append(statement)
    return out


def _together(operator: ast.boolop, values: list[ast.expr]) -> ast.expr:
    return values[0] if len(values) == 1 else ast.BoolOp(operator, values)


def _is_read_outside(node: ast.AST, text: str) -> bool:
    """Return whether a name is read outside the loops over a range that assign it."""
    match node:
        case ast.For(ast.Name(target), values) if target == text:
            return text in read([values])
        case ast.Name():
            return text in read([node])
    return any(_is_read_outside(each, text) for each in ast.iter_child_nodes(node))
