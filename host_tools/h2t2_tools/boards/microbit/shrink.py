"""Runtime modules cut down to what a few kilobytes of heap can compile and hold: small pieces, short names.

python-minifier does the white space and docstrings; here argument checks go (the host checks a configuration first),
integer constants and fixed options are put in place, and names become words the firmware has in its ROM, which cost no
heap. What is computed stays: tests/test_micropython.py holds the board to the host's actions.
"""

from __future__ import annotations

import ast
from array import array
from pathlib import Path
from typing import Any

from h2t2.core.h2t2 import H2T2
from h2t2.ldl.bundle import Int8Model

from ...common.errors import UserError

CORE = ("numbers", "rng", "tickets", "experts", "policy", "h2t2")
KEPT = {"array", "abs", "min", "max", "range", "self", "__init__"}  # what the core uses of Python
# words interned in the ROM of the micro:bit's MicroPython 1.9.2, found in its firmware image: names that cost no heap
LOCALS = (
    "a b c d e f g h i n r x y C Cx Kd NO a2 a4 b3 b4 b5 bl bx c3 c4 c5 d3 d4 d5 e4 e5 f2 g4 g5 rx tx up gc id on "
).split()
NAMES = (
    "COW MEH ODD ODE SAD YES DUCK EVEN FUNK NYAN XMAS ANGRY BADDY BLUES CHASE GHOST HAPPY HEART HOUSE Image SILLY SKULL "
    "SMILE SNAKE SWORD add all any asr bin bpm buf chr clz cmp cos dir end exp get hex i2c key ldr len log lsl lsr map mem "
    "mov mrs nop oct off ord pin pop pow say scl sda sep set sin spi str sub sum sys tan wfi zip acos addr args asin atan "
    "bits blit ceil copy crop data dict down eval exec exit fabs fill find fmod freq hash help init iter join keys ldrb "
    "left list loop love math mem8 miso mode modf mosi name next open pack pin0 pin1 pin2 pin3 play push read repr scan "
    "seed send show sing size sort sqrt step stop strb text time type uart uint wait align audio bytes clear close const "
    "count debug "
).split()


class _Unchecked(ast.NodeTransformer):
    """Leaves out what only raises, calls of checked_*, tuple() and defaults of arguments; puts module constants in place."""

    def __init__(self, constants: dict[str, int]) -> None:
        self.constants = constants

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        return None if not node.orelse and all(isinstance(part, ast.Raise) for part in node.body) else node

    def visit_For(self, node: ast.For) -> ast.AST | None:
        self.generic_visit(node)
        return node if node.body else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        self.generic_visit(node)
        node.args.defaults = []
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        return None if node.name.startswith("checked_") else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        call = node.value
        checks = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.startswith("checked_")
        return None if checks else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return node.args[0] if ast.unparse(node.func) == "tuple" else node  # a table stays as small as it is written

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.constants:
            return ast.copy_location(ast.Constant(self.constants[node.id]), node)
        return node


class _OneObject(ast.NodeTransformer):
    """self.experts, self.rng and self.tickets are self; what then says nothing goes."""

    same: set[str] = set()  # locals of the function at hand that are self

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return node.value if node.attr in ("experts", "rng", "tickets") else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        self.generic_visit(node)
        if isinstance(node.targets[0], ast.Name) and ast.unparse(node.value) == "self":
            self.same.add(node.targets[0].id)
            return None
        return None if ast.unparse(node.targets[0]) == ast.unparse(node.value) else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = "self" if node.id in self.same else node.id
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.same = set()
        self.generic_visit(node)
        return node


class _Configured(ast.NodeTransformer):
    """Puts a configuration's fixed options in place of self.<option> and drops the branches they rule out."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.empty: set[str] = set()  # methods of which nothing is left

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and node.attr in self.options and ast.unparse(node.value) == "self":
            return ast.copy_location(ast.Constant(self.options[node.attr]), node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        self.generic_visit(node)
        fixed = [t for t in node.targets if isinstance(t, ast.Attribute) and t.attr in self.options]
        return None if len(fixed) == len(node.targets) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        stop = isinstance(node.op, ast.Or)  # the value that decides the whole
        values: list[ast.expr] = []
        for value in node.values:
            if not isinstance(value, ast.Constant):
                values.append(value)
            elif bool(value.value) == stop:
                return ast.copy_location(ast.Constant(stop), node)
        if not values:
            return ast.copy_location(ast.Constant(not stop), node)
        node.values = values
        return node if len(values) > 1 else values[0]

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and ast.unparse(node.right) == "1":  # the slot of a window of one
            return ast.copy_location(ast.Constant(0), node)
        if isinstance(node.op, ast.Mult) and ast.unparse(node.left) == "0":
            return node.left
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.copy_location(ast.Constant(not node.operand.value), node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt] | None:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return (node.body if node.test.value else node.orelse) or None
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        self.generic_visit(node)
        if all(isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in node.body):
            self.empty.add(node.name)
            return None
        return node

    def drop_calls(self, tree: ast.AST) -> None:
        """Remove the calls of methods that are gone."""
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [part for part in body if not self._gone(part)]  # type: ignore[attr-defined]

    def _gone(self, part: ast.stmt) -> bool:
        call = part.value if isinstance(part, ast.Expr) else None
        return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in self.empty


class _Renamed(ast.NodeTransformer):
    """Globals and attributes by `names`; a function's arguments and locals by LOCALS, anew in each."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.local: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.local.get(node.id) or self.names.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self.names.get(node.attr, node.attr)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        local = dict.fromkeys([argument.arg for argument in node.args.args] + stored)
        self.local = dict(zip(local, LOCALS, strict=False))
        self.generic_visit(node)
        for argument in node.args.args:
            argument.arg = self.local[argument.arg]
        self.local = {}
        node.name = self.names.get(node.name, node.name)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name)
        return node


def _trees(names: tuple[str, ...], folder: Path, options: dict[str, Any]) -> list[ast.stmt]:
    """The modules' statements in one list, checks, constants and ruled-out branches gone."""
    parts: list[ast.stmt] = []
    for name in names:
        parts += ast.parse((folder / f"core/{name}.py").read_text()).body
    constants = {}
    for part in parts:
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id.isupper():
            value = part.value.operand if isinstance(part.value, ast.UnaryOp) else part.value
            if isinstance(value, ast.Constant) and isinstance(value.value, int):
                constants[part.targets[0].id] = ast.literal_eval(part.value)
    for part in parts:
        if isinstance(part, ast.ClassDef):
            part.body = [m for m in part.body if isinstance(m, ast.FunctionDef) and m.name != "__init__"]
    module = _Unchecked(constants).visit(ast.Module(parts, []))
    configured = _Configured(options)
    module = configured.visit(module)
    configured.drop_calls(module)
    gone = (ast.ImportFrom, ast.Expr)
    return [
        part
        for part in module.body
        if not isinstance(part, gone)
        and not (isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id in constants)
    ]


class _Given(ast.NodeTransformer):
    """Puts constants in place of a function's arguments."""

    def __init__(self, values: dict[str, ast.Constant]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _specialise(parts: list[ast.stmt]) -> None:
    """Where every call of a method gives an argument the same constant, put that into the method."""
    nodes = [node for part in parts for node in ast.walk(part)]
    for method in nodes:
        if not isinstance(method, ast.FunctionDef) or method.name in READ_OUTSIDE or method.args.args[:1] == []:
            continue
        calls = [n.args for n in nodes if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == method.name]
        stored = {n.id for n in ast.walk(method) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        values = {}
        for n, argument in enumerate(method.args.args[1:]):
            given = {ast.unparse(call[n]) for call in calls if len(call) > n}
            constant = calls[0][n] if len(given) == 1 and len(calls[0]) > n else None
            if isinstance(constant, ast.Constant) and argument.arg not in stored:
                values[argument.arg] = constant
        if values:
            _Configured({}).visit(_Given(values).visit(method))


def renaming(parts: list[ast.stmt]) -> dict[str, str]:
    """A ROM word for every global, attribute and method of the core. ValueError where the words run out."""
    found: dict[str, None] = {}
    for part in parts:
        if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
            found[part.name] = None
        for node in ast.walk(part):
            if isinstance(node, ast.Attribute):
                found[node.attr] = None
            elif isinstance(node, ast.FunctionDef):
                found[node.name] = None
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not isinstance(part, ast.ClassDef):
                found[node.id] = None
    mine = [name for name in found if name not in KEPT]
    if len(mine) > len(NAMES):
        raise ValueError(f"{len(mine)} names, only {len(NAMES)} ROM words")
    return dict(zip(mine, NAMES))


def pieces(folder: Path, policy: H2T2) -> tuple[list[str], dict[str, str]]:
    """(sources to run in order in one namespace, new name of each old one); they leave `p`, the policy as it is now.

    folder: of the runtime. policy: made on the host; its options are fixed in the build, its state is written out, so that
    nothing of what makes a policy goes to the board. All classes become one, whose instance `p` also is its own experts,
    rng and tickets: three dictionaries less.
    """
    owners = (policy, policy.experts, policy.tickets, policy.rng)
    options: dict[str, Any] = {}
    while True:  # what a step never stores is a constant of this build, which may rule out more
        parts = [_OneObject().visit(part) for part in _trees(CORE, folder, options)]
        _drop_unused(parts)
        _specialise(parts)
        nodes = [node for part in parts for node in ast.walk(part)]
        stored = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
        known = {name: value for owner in owners for name, value in vars(owner).items() if isinstance(value, int)}
        constant = {name: value for name, value in known.items() if name not in stored | READ_OUTSIDE}
        if constant == options:
            break
        options = constant
    mapping = renaming(parts)
    whole = NAMES[-1]
    tables, functions = [], []
    for part in parts:
        part = _Renamed(mapping).visit(part)
        if isinstance(part, ast.FunctionDef):
            functions.append(minified(part))
        elif not isinstance(part, ast.ClassDef):
            tables.append(minified(part))
        else:
            for method in part.body:
                assert isinstance(method, ast.FunctionDef)  # _trees() leaves nothing else in a class
                if (method.name, part.name) != (mapping.get("lose"), mapping["Policy"]):  # it only calls the tickets' own
                    functions.append(f"{minified(method)}\n{whole}.{method.name}={method.name};del {method.name}")
    functions.sort(key=len, reverse=True)  # what takes most memory to compile first, while the heap is in one piece
    scalars: list[str] = []
    arrays: list[str] = []
    for owner in owners:
        for name, value in vars(owner).items():
            if name in mapping and name not in options:
                (scalars if isinstance(value, int) else arrays).append(f"p.{mapping[name]}={_literal(value)}")
    start = ["from array import array", f"{whole}=type('{whole}',(),{{}})\np={whole}()"]
    return [*start, *functions[:2], *tables, *functions[2:], *arrays, *scalars], mapping


def ldl_pieces(folder: Path, model: Int8Model, taken: set[str]) -> tuple[list[str], str, str]:
    """(sources to run in order among pieces()', names of the function and of the arena they leave).

    The function takes a sequence of int8 and gives the bin.
    Only the operators of this model come along; its constants become one bytes object, its steps tuples. taken: names in use.
    """
    parts: dict[str, ast.stmt] = {}
    for part in ast.parse((folder / "ldl/kernels.py").read_text()).body:
        if isinstance(part, ast.FunctionDef):
            parts[part.name] = part
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            parts[part.targets[0].id] = part
    if model.variables:
        raise UserError("a micro:bit has no room for a model that keeps state: use one that sees a whole window")
    wanted: dict[str, None] = {}
    waiting = [step.__name__ for step, _, _ in model.steps]
    if set(waiting) - set(parts):
        raise UserError(f"a micro:bit has no room for {', '.join(sorted(set(waiting) - set(parts)))}: h2t2 inspect names them")
    while waiting:
        name = waiting.pop()
        wanted[name] = None
        calls = {node.id for node in ast.walk(parts[name]) if isinstance(node, ast.Name)} & set(parts)
        waiting += sorted(calls - set(wanted))
    free = iter(name for name in NAMES if name not in taken)
    mapping = {name: next(free) for name in wanted}
    arena, constants, steps, run = (next(free) for _ in range(4))
    layouts = {step.__name__: _layout(parts[step.__name__]) for step, _, _ in model.steps}
    fixed = _same_in_all(model, layouts)
    sources = [minified(_Renamed(mapping).visit(_Constant(fixed.get(name, {})).visit(parts[name]))) for name in wanted]
    sources.sort(key=len, reverse=True)
    table = bytes(model.blob[model.table_at : model.table_at + 256])
    exact = table == bytes(range(256))  # an output of scale 1/256 is the score itself
    base = model.table_at + 256 * exact  # constants begin with the score table
    listed = []
    for step, p, k in model.steps:
        values = list(p)
        values[6] = max(0, values[6] - base)  # the place of weights or a table
        values = [value for name, value in zip(layouts[step.__name__], values) if name not in fixed[step.__name__]]
        given = tuple(tuple(part) if part is not None and n < 2 else bytes(part or b"") for n, part in enumerate(k)) if k else 0
        listed.append(f"({mapping[step.__name__]},{tuple(values)!r},{given!r})".replace(", ", ","))
    data = bytes(model.blob[base:])
    sources.append(f"{arena}=bytearray({len(model.arena)})\n{constants}=b''")
    sources += [f"{constants}+={data[at : at + 64]!r}" for at in range(0, len(data), 64)]
    sources.append(f"{steps}=({''.join(each + ',' for each in listed)})")
    score = f"{arena}[{model.output + model.event}]"
    sources.append(
        f"def {run}(a):\n b={model.input}\n for c in a:{arena}[b]=c+128;b+=1\n"
        f" for c in {steps}:c[0]({arena},{constants},c[1],c[2])\n"
        f" return {score if exact else f'{constants}[{score}]'}>>{8 - model.bits}"
    )
    return sources, run, arena


SELDOM = ("w_zero", "rows")  # parameters that are the same in every step of most models


def _same_in_all(model: Int8Model, layouts: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    """Of each kernel the parameters of SELDOM that have one value in all of the model's steps, and that value."""
    found: dict[str, dict[str, set[int]]] = {}
    for step, p, _ in model.steps:
        layout = layouts[step.__name__]
        mine = found.setdefault(step.__name__, {name: set() for name in SELDOM if name in layout})
        for name in mine:
            mine[name].add(p[layout.index(name)])
    return {kernel: {name: each.pop() for name, each in mine.items() if len(each) == 1} for kernel, mine in found.items()}


def _layout(function: ast.stmt) -> list[str]:
    """The names of a kernel's parameters, in the order in which it unpacks p."""
    unpacks = [part for part in ast.walk(function) if isinstance(part, ast.Assign) and ast.unparse(part.value) == "p"]
    return [ast.unparse(name) for name in unpacks[0].targets[0].elts]  # type: ignore[attr-defined]


class _Constant(ast.NodeTransformer):
    """Parameters of a kernel that are numbers: not unpacked, and written where they are used."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        if isinstance(node.ctx, ast.Store):
            node.elts = [each for each in node.elts if ast.unparse(each) not in self.numbers]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(self.numbers[node.id]) if node.id in self.numbers else node


def _literal(value: Any) -> str:
    if isinstance(value, array):
        return f"array('{value.typecode}',{_literal(list(value))})"
    if isinstance(value, list) and len(value) > 4 and len(set(value)) == 1:
        return f"[{value[0]}]*{len(value)}"
    return repr(value).replace(" ", "")


READ_OUTSIDE = {"offload", "one", "local", "ticket", "taught", "lost", "refused", "decide", "learn", "lose"}


def reached(parts: list[ast.stmt]) -> set[str]:
    """Names of the functions and methods that a step uses, straight or through others; what only checks is not among them."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
    found: set[str] = set()
    waiting = sorted(READ_OUTSIDE & set(functions))
    while waiting:
        name = waiting.pop()
        if name not in found and not name.startswith("checked_"):
            found.add(name)
            nodes = [node for function in functions[name] for node in ast.walk(function)]
            waiting += sorted({getattr(node, "attr", getattr(node, "id", "")) for node in nodes} & set(functions))
    return found


def _drop_unused(parts: list[ast.stmt]) -> None:
    """Leave out functions and methods that nothing reaches from READ_OUTSIDE, then attributes that nothing reads."""
    used = reached(parts)
    for part in parts:
        if isinstance(part, ast.ClassDef):
            part.body = [m for m in part.body if isinstance(m, ast.FunctionDef) and m.name in used]
    parts[:] = [part for part in parts if not isinstance(part, ast.FunctionDef) or part.name in used]
    nodes = [node for part in parts for node in ast.walk(part)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)} | READ_OUTSIDE
    for node in nodes:
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [kept for kept in (_used(part, read) for part in body) if kept]  # type: ignore[attr-defined]


def _used(part: ast.stmt, read: set[str]) -> ast.stmt | None:
    """An assignment without the attributes that nobody reads; None where nothing is left of it."""
    if isinstance(part, ast.Assign):
        keep = [t for t in part.targets if not (isinstance(t, ast.Attribute) and t.attr not in read)]
        if not keep:
            return None
        part.targets = keep
    return part


def renamed(part: ast.AST, names: dict[str, str]) -> ast.AST:
    """The part with globals and attributes by `names`, arguments and locals by LOCALS."""
    return ast.fix_missing_locations(_Renamed(names).visit(part))


def minified(part: ast.AST) -> str:
    """Source of a part, as short as python-minifier makes it."""
    import python_minifier  # of the extra `boards`

    source = ast.unparse(ast.fix_missing_locations(part))
    return str(
        python_minifier.minify(
            source,
            hoist_literals=False,
            rename_globals=False,
            rename_locals=False,
            remove_literal_statements=True,
            remove_explicit_return_none=False,
            remove_builtin_exception_brackets=False,
        )
    )
