"""`h2t2-lab bench compiled`: what the compiler makes of each function: bytes of machine code, and instructions of a call."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h2t2_tools.boards import compiler, cross, mpy_file
from h2t2_tools.boards.compiler.program import modules
from h2t2_tools.common import places
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report, Table

from .. import material
from ..boards import drive
from ..boards.qemu import MACHINES, SHIFT
from ..emulators.built import CORTEX_M3 as BOARD
from ..pages.page_parts import between, markdown
from . import Progress, Row, cell, table

TITLE = "What the compiler makes of each function"
PROCESSOR = MACHINES[BOARD.name].arch
BEGIN = "<!-- table: h2t2-lab bench compiled -->"
COSTS = [[0, 9000, 20000], [32768, 0, 15000], [7000, 11000, 0]]
# name and arguments of each policy that plays, and the features of its samples
POLICIES: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("h2t2", {}, 0),
    ("adaptive", {}, 0),
    ("adaptive", {"ordered": True}, 0),
    ("adaptive", {"miss_rate": 655}, 0),
    ("adaptive", {"miss_rate": 655, "confidence": 31130}, 0),
    ("adaptive", {"costs": COSTS}, 0),
    ("adaptive", {"features": 16}, 16),
    ("adaptive", {"costs": COSTS, "features": 16}, 16),
)
SCOPES = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def measure(progress: Progress, rounds: Count = 10, out: Path | None = None) -> list[Row]:
    """Compile the runtime's functions and count the instructions of a call on an emulated Cortex-M3, while each policy plays.

    Args:
        rounds: rounds of each policy
        out: a page whose table is written anew

    Examples:
        h2t2-lab bench compiled --out docs/numbers.md

    Returns:
        Rows {"function", "bytes" (of machine code), "bytecode" and "compiled": mean instructions of a call, with those of the
        functions that it calls; none where no policy calls it, or where the machine code of others contains it}.
    """
    rows = _measured(progress, rounds)
    if out:
        out.write_text(between(out.read_text(), BEGIN, "\n" + markdown([_table(rows)])))
    return rows


def _measured(progress: Progress, rounds: int) -> list[Row]:
    rows = {row["function"]: row for row in functions()}
    names = [name.replace("/", ".") for name in rows]
    source = (material.ON_DEVICE / "function_bench.py").read_text()
    if BOARD.missing():
        return [*rows.values()]
    tick = MACHINES[BOARD.name].tick_ns / (1 << SHIFT)
    for name, arguments, features in POLICIES:
        for form in ("bytecode", "compiled"):
            progress(f"{name} {' '.join(arguments)}: {form}")
            settings = f"NAME={name!r}\nARGUMENTS={arguments}\nFEATURES={features}\nROUNDS={rounds}\nNAMES={names}\n"
            output = drive.run(BOARD, settings + source, {}, 1200, count=True, compiled=form == "compiled")
            for line in output.splitlines():
                module, path, calls, ticks = line.split()
                row = rows[f"{module.replace('.', '/')} {path}"]
                row.setdefault(form, int(ticks) * tick / int(calls))
    return [*rows.values()]


def functions() -> list[Row]:
    """Return {"function", "bytes"} of every function that becomes machine code and that others call."""
    rows = []
    for path, module in sorted(modules().items()):
        result = compiler.compiled(path, module.source, PROCESSOR)
        if result.functions:
            content = cross.compiled(path, (places.RUNTIME.parent / path).read_bytes(), PROCESSOR)
            sizes = function_sizes(content, ast.parse(result.source))
            rows += [{"function": f"{path[:-3]} {name}", "bytes": sizes[name]} for name in result.functions if name in sizes]
    return rows


def function_sizes(module: bytes, tree: ast.Module) -> dict[str, int]:
    """Return the bytes of machine code of a module's functions by their names, those of a class with its name.

    Args:
        module: An .mpy file.
        tree: The source that it was compiled from.
    """
    return dict(_named(mpy_file.code(module), tree, ""))


def _named(code: mpy_file.Code, node: ast.AST, owner: str) -> Iterator[tuple[str, int]]:
    """Yield name and size of the functions in a module or a class. A code has those inside it in the order of the source."""
    for child, inner in zip(code.children, _scopes(node), strict=True):
        if isinstance(inner, ast.FunctionDef):
            yield owner + inner.name, child.size
        elif isinstance(inner, ast.ClassDef):
            yield from _named(child, inner, f"{inner.name}.")


def _scopes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the functions, classes and comprehensions directly inside a node, but not behind "if 0" and "if not 1"."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, SCOPES):
            yield child
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) in ("0", "not 1")):
            yield from _scopes(child)


def report(rows: list[Row]) -> Report:
    """Return a line for each function, and a sentence for each that leaves the subset."""
    refused = [
        complaint
        for path, module in sorted(modules().items())
        for complaint in compiler.complaints(path, compiler.compiled(path, module.source, PROCESSOR))
    ]
    return [_table(rows), *(f"stays bytecode: {each}" for each in refused)]


def _table(rows: list[Row]) -> Table:
    columns = {
        "function": cell("function"),
        "bytes": cell("bytes", ","),
        "instructions as bytecode": cell("bytecode", ",.0f"),
        "compiled": cell("compiled", ",.0f"),
    }
    return table(f"Functions in machine code, and the mean of their calls on the emulated {BOARD.name}", rows, columns)
