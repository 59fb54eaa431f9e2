"""What the runtime's modules define, as the compiler sees it: functions, classes, and the types of attributes and expressions.

A type is one of these: "int", "bool", a name of ARRAYS, a class, a Row (a list), or OBJECT, of which nothing is known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeVar, Union

from h2t2.ldl.steps import MODULES

from ...common import places
from ..folding import folded, imported_path, runtime_paths

CORE = "h2t2/core/"
# modules whose functions all become machine code: the local model's kernels, but the convolutions
KERNELS = {f"h2t2/ldl/{name}.py" for name in MODULES.split() if name not in ("-", "conv")}
KERNELS |= {"h2t2/ldl/kernels.py", "h2t2/ldl/fixed_point.py", "h2t2/node/spectrum.py"}
INT, BOOL, OBJECT = "int", "bool", "object"
# names of arrays in annotations (h2t2/annotations.pyi), and viper's pointers to their items, which it reads unsigned
ARRAYS: dict[Type, str] = {"Int32s": "ptr32", "Int16s": "ptr16", "UInt16s": "ptr16", "UInt8s": "ptr8"}
# numbers of a bundle, which may lie at any address: bytes of an item, of which machine code reads one after the other
PACKED: dict[Type, int] = {"PackedInt32s": 4, "PackedUInt16s": 2}
TYPECODES = {"i": "Int32s", "h": "Int16s", "H": "UInt16s", "B": "UInt8s"}
BUILTINS = {"max", "min", "abs", "len", "int"}
# functions that a step calls once in many rounds, those for other rounds, and one that gains little: bytecode is smaller
RARE = {
    "_correct", "_expect_answer", "_follow_schedule", "adapt_to_drift", "begin_period", "checked_integer",
    "answer_rate", "coarsen", "doubt_all", "drifted", "fade", "fade_histograms", "forget", "likely", "lose",
    "period", "quicken", "rebuild", "set_bounds", "settle",
}  # fmt: skip
# methods of a policy and of a budget that a node calls for each sample or label
STEP = {"decide", "learn", "earn", "affords", "price", "spend"}
Type = Union[str, "Class", "Row"]
Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True)
class Row:
    """A list, or a tuple of constants.

    Attributes:
        item: Type of its items.
        items: Type of each, if they differ.
    """

    item: Type
    items: tuple[Type, ...] = ()


@dataclass(frozen=True, eq=False)
class Function:
    """A function or a method.

    Attributes:
        node: Its definition, without docstring.
        module: Where it is defined.
        owner: Its class; None of a function.
    """

    node: ast.FunctionDef
    module: Module
    owner: Class | None

    def __deepcopy__(self, memo: object) -> Function:
        return self

    @property
    def name(self) -> str:
        return self.node.name

    @cached_property
    def parameters(self) -> dict[str, Type]:
        """The types of its parameters, in their order."""
        arguments = self.node.args
        types = {each.arg: self.module.annotated(each.annotation) for each in [*arguments.args, *arguments.kwonlyargs]}
        return types | ({arguments.args[0].arg: self.owner} if self.owner and arguments.args else {})

    @cached_property
    def result(self) -> Type:
        return self.module.annotated(self.node.returns)

    @cached_property
    def size(self) -> int:
        """Number of its operations, by which the compiler decides whether to inline it."""
        counted = ast.BinOp | ast.Compare | ast.Call | ast.Subscript | ast.Attribute | ast.Assign | ast.If | ast.While | ast.For
        return sum(isinstance(each, counted) for each in ast.walk(self.node))

    @cached_property
    def whole_size(self) -> int:
        """The same with the operations of the functions that it calls."""
        return self.size + sum(each.whole_size for call in calls(self.node) if (each := self.module.callee(call, {})))


class Class:
    """A class of the runtime."""

    def __init__(self, node: ast.ClassDef, module: Module) -> None:
        self.name = node.name
        self.module = module
        self.node = node
        definitions = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        self.methods = {each.name: Function(undocumented(each), module, self) for each in definitions}
        self._types: dict[str, Type] = {}

    def __deepcopy__(self, memo: object) -> Class:
        return self

    @cached_property
    def bases(self) -> list[Class]:
        named = [self.module.defined(each.id) for each in self.node.bases if isinstance(each, ast.Name)]
        return [each for each in named if isinstance(each, Class)]

    def lineage(self) -> Iterator[Class]:
        """Yield the class, then those that it inherits from."""
        yield self
        for base in self.bases:
            yield from base.lineage()

    def method(self, name: str) -> Function | None:
        """Return a method that it has or inherits."""
        return next((each.methods[name] for each in self.lineage() if name in each.methods), None)

    def is_overridden(self, function: Function) -> bool:
        """Return whether a subclass has another method of that name."""
        classes = [each for module in modules().values() for each in module.classes.values()]
        return any(self in each.lineage() and each.method(function.name) is not function for each in classes)

    def attribute(self, name: str) -> Type:
        """Return the type of an attribute of its objects, as their methods assign it."""
        if name not in self._types:
            self._types[name] = OBJECT  # meanwhile: it may be assigned from itself
            types = [kind for each in self.lineage() for kind in each._assigned(name) if kind != OBJECT]
            if not types:
                return self._types.pop(name)
            self._types[name] = INT if set(types) == {INT, BOOL} else types[0]
        return self._types[name]

    def _assigned(self, name: str) -> Iterator[Type]:
        for statement in statements([each for each in self.node.body if isinstance(each, ast.If)]):
            match statement:
                case ast.AnnAssign(ast.Name(text), annotation) if text == name:
                    yield self.module.annotated(annotation)
        for method in self.methods.values():
            scope = dict(method.parameters)
            for statement in statements(method.node.body):
                match statement:
                    case ast.Assign(targets, value):
                        names = [each.id for each in targets if isinstance(each, ast.Name)]
                        attributes = [each.attr for each in targets if isinstance(each, ast.Attribute) and _of_self(each)]
                        if names or name in attributes:
                            kind = self.module.type_of(value, scope)
                            scope |= {each: kind for each in names if scope.get(each, OBJECT) == OBJECT}
                            yield kind if name in attributes else OBJECT
                    case ast.For(ast.Name(text)):
                        scope[text] = INT


class Module:
    """A module of the runtime, its constants folded."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.tree = ast.parse(source)
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, Class] = {}
        self.tables: dict[str, Type] = {}  # arrays and tuples that the module defines
        self.imports: dict[str, tuple[str, str]] = {}  # name here -> path and name; "" for the module itself
        for statement in self.tree.body:
            match statement:
                case ast.FunctionDef(name):
                    self.functions[name] = Function(undocumented(statement), self, None)
                case ast.ClassDef(name):
                    self.classes[name] = Class(statement, self)
                case ast.Assign([ast.Name(name), *_], value) if kind := _table(value):
                    self.tables[name] = kind
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                self.imports |= {alias.asname or alias.name: (imported_path(path, node), alias.name) for alias in node.names}

    def imported(self, name: str) -> tuple[Module | None, str]:
        """Return the module that a name is imported from, and the name there; None: it is no name of a module's."""
        path, imported = self.imports.get(name, ("", ""))
        return modules().get(f"{path}.py"), imported

    def defined(self, name: str) -> Function | Class | Type | None:
        """Return the function, class or type of the array that a global name stands for; None for any other."""
        for definitions in (self.functions, self.classes, self.tables):
            if name in definitions:
                return definitions[name]
        module, imported = self.imported(name)
        return module.defined(imported) if module else None

    def home(self, name: str) -> tuple[str, str]:
        """Return the path of the module that defines a global name, and the name there."""
        module, imported = self.imported(name)
        return module.home(imported) if module else (self.path, name)

    def annotated(self, annotation: ast.expr | None) -> Type:
        """Return the type that an annotation names."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        match annotation:
            case ast.Constant(None):
                return "none"
            case ast.BinOp(left, ast.BitOr()):
                return self.annotated(left)
            case ast.Subscript(ast.Name("list" | "Sequence"), item):
                return Row(self.annotated(item))
            case ast.Subscript(ast.Name("tuple"), ast.Tuple(items)):
                return Row(OBJECT, tuple(map(self.annotated, items)))
            case ast.Name("bytes" | "bytearray" | "memoryview"):
                return "UInt8s"
            case ast.Name(name) if name in ARRAYS or name in PACKED or name in (INT, BOOL):
                return name
            case ast.Name(name):
                defined = self.defined(name)
                return defined if isinstance(defined, Class) else self.annotated(_stub().get(name))
        return OBJECT

    def type_of(self, node: ast.expr, scope: dict[str, Type]) -> Type:
        """Return the type of an expression. scope: types of the local names."""
        match node:
            case ast.Constant(bool()):
                return BOOL
            case ast.Compare() | ast.UnaryOp(ast.Not()):
                return BOOL
            case ast.BinOp(ast.List() as items) | (ast.List() as items):
                return Row(self.type_of(items.elts[0], scope) if items.elts else OBJECT)
            case ast.Tuple(elements):
                return Row(self.type_of(elements[0], scope))
            case ast.ListComp(element, generators):
                names = {each.target.id: INT for each in generators if isinstance(each.target, ast.Name)}
                return Row(self.type_of(element, {**scope, **names}))
            case ast.Constant(int()) | ast.UnaryOp() | ast.BinOp():
                return INT
            case ast.BoolOp(_, values):
                return self.type_of(values[-1], scope)
            case ast.IfExp(_, body, orelse):
                kind = self.type_of(body, scope)
                return kind if kind != OBJECT else self.type_of(orelse, scope)
            case ast.Name(name) if name in scope:
                return scope[name]
            case ast.Name(name):
                defined = self.defined(name)
                return defined if isinstance(defined, str | Row) else OBJECT
            case ast.Attribute(value, name):
                owner = self.type_of(value, scope)
                return owner.attribute(name) if isinstance(owner, Class) else OBJECT
            case ast.Subscript(value):
                kind = self.type_of(value, scope)
                return kind.item if isinstance(kind, Row) else INT if kind in ARRAYS or kind in PACKED else OBJECT
            case ast.Call() if hasattr(node, "result"):  # of the compiler
                return node.result  # type: ignore[no-any-return]
            case ast.Call(ast.Name("array"), [code, *_]):
                return TYPECODES.get(str(code.value), OBJECT) if isinstance(code, ast.Constant) else OBJECT
            case ast.Call(ast.Name(name)) if name in BUILTINS and not isinstance(self.defined(name), Function):
                return INT
            case ast.Call(ast.Name(name)) if isinstance(created := self.defined(name), Class):
                return created
            case ast.Call():
                function = self.callee(node, scope)
                return function.result if function else OBJECT
        return OBJECT

    def callee(self, node: ast.Call, scope: dict[str, Type]) -> Function | None:
        """Return the function or method that a call names. A subclass may have another method of that name."""
        match node.func:
            case ast.Name(name) if name not in scope:
                function = self.defined(name)
                return function if isinstance(function, Function) else None
            case ast.Attribute(ast.Name(name), method) if name not in scope:
                owner = self.defined(name)
                return owner.method(method) if isinstance(owner, Class) else None
            case ast.Attribute(value, method):
                kind = self.type_of(value, scope)
                return kind.method(method) if isinstance(kind, Class) else None
        return None


@cache
def _stub() -> dict[str, ast.expr]:
    """Return what names of annotations.pyi stand for."""
    assigned = [
        each for each in ast.parse((places.RUNTIME / "annotations.pyi").read_bytes()).body if isinstance(each, ast.Assign)
    ]
    return {ast.unparse(each.targets[0]): each.value for each in assigned}


def undocumented(node: ast.FunctionDef) -> ast.FunctionDef:
    """Remove the docstring of a definition."""
    if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
        node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node)]
    return node


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _table(node: ast.expr) -> Type | None:
    """Return the type of a global array or tuple of numbers; None of anything else."""
    match node:
        case ast.Call(ast.Name("array"), [ast.Constant(str() as code), *_]):
            return TYPECODES.get(code)
        case ast.Tuple([ast.Constant(int()), *_] as elements):
            return Row(INT, (INT,) * len(elements))
    return None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those inside them, in the order of the source."""
    for statement in body:
        yield statement
        for field in ("body", "orelse"):
            yield from statements(getattr(statement, field, []))


@cache
def modules() -> dict[str, Module]:
    """Return the runtime's modules by their paths on a board, but not those for CPython only."""
    return {path: Module(path, folded(path, (places.RUNTIME.parent / path).read_bytes())) for path in runtime_paths()}


def functions() -> Iterator[Function]:
    """Yield all functions and methods of the core."""
    for path, module in modules().items():
        if path.startswith(CORE):
            yield from module.functions.values()
            for each in module.classes.values():
                yield from each.methods.values()


def reached(start: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> frozenset[Node]:
    """Return what can be reached from the start, step by step."""
    nodes: set[Node] = set()
    unread = [*start]
    while unread:
        node = unread.pop()
        if node not in nodes:
            nodes.add(node)
            unread += following(node)
    return frozenset(nodes)


@cache
def called_in_a_step(ever: bool = False) -> frozenset[str]:
    """Return the names of the functions that a step calls; ever: also those of RARE, and what they call."""
    named: dict[str, set[str]] = {name: set() for name in STEP}
    for function in functions():
        if ever or function.name not in RARE:
            called = {getattr(each.func, "attr", getattr(each.func, "id", "")) for each in calls(function.node)}
            named.setdefault(function.name, set()).update(called)
    return reached(STEP, lambda name: named.keys() & named.get(name, set()))


@cache
def calls(node: ast.AST) -> tuple[ast.Call, ...]:
    """Return the calls in a node."""
    return tuple(each for each in ast.walk(node) if isinstance(each, ast.Call))


@cache
def _assigned_in_a_step() -> dict[str, list[Class | None]]:
    """Return the attributes that a step may assign, each with the classes whose methods do it; None: of an unknown object."""
    owners: dict[str, list[Class | None]] = {}
    for function in functions():
        if function.name in called_in_a_step(ever=True):
            for node in ast.walk(function.node):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    owners.setdefault(node.attr, []).append(function.owner if _of_self(node) else None)
    return owners


@cache
def changes(owner: Class, attribute: str) -> bool:
    """Return whether a step may assign an attribute of the objects of a class."""
    assigning = _assigned_in_a_step().get(attribute, [])
    return any(each is None or each in owner.lineage() or owner in each.lineage() for each in assigning)
