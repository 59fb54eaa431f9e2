"""Runtime modules cut down to what a few kilobytes of heap can compile and hold: small pieces, short names.

python-minifier does the white space and docstrings; here argument checks go (the host checks a configuration first),
integer constants are put in place, and names become words the firmware has in its ROM, which cost no heap. What is
computed stays: the vectors are replayed through these pieces too.
"""

from __future__ import annotations

import ast
from pathlib import Path

import python_minifier

CORE = ("fixed", "rng", "tickets", "experts", "policy")
KEPT = {"array", "abs", "min", "max", "range", "self", "__init__"}  # what the core uses of Python
# words interned in the ROM of the micro:bit's MicroPython 1.9.2, found in its firmware image: names that cost no heap
LOCALS = "a b c d e f g h i n r x y C Cx Kd NO a2 a4 b3 b4 b5 bl bx c3 c4 c5 d3 d4 d5 e4 e5 f2 g4 g5 rx tx up gc id on".split()
NAMES = (
    "COW MEH ODD ODE SAD YES DUCK EVEN FUNK NYAN XMAS ANGRY BADDY BLUES CHASE GHOST HAPPY HEART HOUSE Image SILLY SKULL "
    "SMILE SNAKE SWORD add all any asr bin bpm buf chr clz cmp cos dir end exp get hex i2c key ldr len log lsl lsr map mem "
    "mov mrs nop oct off ord pin pop pow say scl sda sep set sin spi str sub sum sys tan wfi zip acos addr args asin atan "
    "bits blit ceil copy crop data dict down eval exec exit fabs fill find fmod freq hash help init iter join keys ldrb left "
    "list loop love math mem8 miso mode modf mosi name next open pack pin0 pin1 pin2 pin3 play push read repr scan seed send "
    "show sing size sort sqrt step stop strb text time type uart uint wait align audio bytes clear close const count debug"
).split()


class _Unchecked(ast.NodeTransformer):
    """Leaves out what only raises, and calls of checked_*; puts module constants in place."""

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
        return None if node.name.startswith("checked_") else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        call = node.value
        checks = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.startswith("checked_")
        return None if checks else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.constants:
            return ast.copy_location(ast.Constant(self.constants[node.id]), node)
        return node


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


def _trees(names: tuple[str, ...], folder: Path) -> list[ast.stmt]:
    """The modules' statements in one list, checks and constants gone."""
    parts: list[ast.stmt] = []
    for name in names:
        parts += ast.parse((folder / f"{name}.py").read_text()).body
    constants = {}
    for part in parts:
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id.isupper():
            value = part.value.operand if isinstance(part.value, ast.UnaryOp) else part.value
            if isinstance(value, ast.Constant) and isinstance(value.value, int):
                constants[part.targets[0].id] = ast.literal_eval(part.value)
    module = _Unchecked(constants).visit(ast.Module(parts, []))
    gone = (ast.ImportFrom, ast.Expr)
    return [
        part
        for part in module.body
        if not isinstance(part, gone)
        and not (isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id in constants)
    ]


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
                if isinstance(part, (ast.Assign, ast.For)):
                    found[node.id] = None
    mine = [name for name in found if name not in KEPT]
    if len(mine) > len(NAMES):
        raise ValueError(f"{len(mine)} names, only {len(NAMES)} ROM words")
    return dict(zip(mine, NAMES))


def pieces(names: tuple[str, ...], folder: Path) -> tuple[list[str], dict[str, str]]:
    """(sources to run one after the other in one namespace, new name of each old one): the biggest come first.

    Arguments are by position only there."""
    parts = _trees(names, folder)
    mapping = renaming(parts)
    rest, classes, functions = ["from array import array"], {}, []
    for part in parts:
        part = _Renamed(mapping).visit(part)
        if isinstance(part, ast.ClassDef):
            methods = [m for m in part.body if isinstance(m, ast.FunctionDef) and m.name != "__init__"]
            part.body = [m for m in part.body if m not in methods]
            classes[part.name] = _minify(part)
            for method in methods:
                source = _minify(method)
                functions.append((f"{source}\n{part.name}.{method.name}={method.name};del {method.name}", part.name))
        elif isinstance(part, ast.FunctionDef):
            functions.append((_minify(part), ""))
        else:
            rest.append(_minify(part))
    ordered = []
    for source, owner in sorted(functions, key=lambda item: -len(item[0])):
        ordered += [classes.pop(owner)] if owner in classes else []
        ordered.append(source)
    return [*ordered, *classes.values(), *rest], mapping


def _minify(part: ast.AST) -> str:
    source = ast.unparse(ast.fix_missing_locations(part))
    options = {"hoist_literals": False, "rename_globals": False, "rename_locals": False, "remove_literal_statements": True}
    options |= {"remove_explicit_return_none": False, "remove_builtin_exception_brackets": False}
    return str(python_minifier.minify(source, **options))
