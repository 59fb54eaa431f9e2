"""The micro:bit's program: core, LDL and node made small (shrink), in one file that main.py runs piece by piece.

A 16 KB Cortex-M0 has about 9 KB of heap for it, and a parser that wants 512 bytes in one piece each time: so the order of the
pieces matters, large and lasting things first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from struct import pack

from h2t2.core.h2t2 import H2T2
from h2t2.ldl.bundle import Int8Model
from h2t2.link import wire
from h2t2.node.start import size_of

from ...common.errors import UserError
from ...fleet.config import NodeConfig
from . import shrink


def main(file: str) -> bytes:
    """main.py: runs the pieces in a file, each of which begins with its length in four digits."""
    loop = "n=1\nwhile n:\n n=f.read(4)\n if n:\n  exec(f.read(int(n)))\n  gc.collect()\nx()\n"  # not by exec: it takes stack
    return f"import gc\nf=open('{file}','rb')\n{loop}".encode()


def program(runtime: Path, board: Path, config: NodeConfig, model: Int8Model) -> bytes:
    """The file of pieces. Long byte strings are not written out: the piece reads them, raw, from right after itself."""
    made = b""
    for source in sources(runtime, board, config, model):
        lifted = _Lifted()
        short = ast.unparse(lifted.visit(ast.parse(source)))
        made += f"{len(short):4}{short}".encode() + lifted.data if lifted.data else f"{len(source):4}{source}".encode()
    return made


class _Lifted(ast.NodeTransformer):
    """Puts `f.read(n)` in place of a byte string of n > 16 bytes; `data`: the bytes."""

    def __init__(self) -> None:
        self.data = b""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, bytes) or len(node.value) <= 16:
            return node
        self.data += node.value
        return ast.parse(f"f.read({len(node.value)})", mode="eval").body


def sources(runtime: Path, board: Path, config: NodeConfig, model: Int8Model) -> list[str]:
    """Sources that leave the whole node on the board, the last of which calls it x, for main.py to start.

    runtime: the folder of h2t2; board: the folder node.py is in.

    UserError where the configuration asks for what this build has not.
    """
    if config.policy != "h2t2" or config.half_life or config.in_flight != 1:
        raise UserError('the micro:bit has room for policy = "h2t2", half_life = 0 and window = 1: set these')
    if config.remote_dtype != "int8":
        raise UserError(f'remote_dtype = "{config.remote_dtype}": the micro:bit sends its recorded int8 as they are')
    if config.update_key:
        raise UserError("update_key: the micro:bit has no room for updates; flash it by cable")
    policy = H2T2(**{**config.arguments(), "window": 1})
    made, names = shrink.pieces(runtime, policy)
    tree = ast.parse((board / "node.py").read_text())
    taken = {*names.values(), *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))}
    free = iter(name for name in shrink.NAMES if name not in taken)
    mine = {part.name: next(free) for part in tree.body if isinstance(part, ast.FunctionDef)}
    mine["BOOT"] = next(free)
    more, mine["ldl"], _ = shrink.ldl_pieces(runtime, model, taken | set(mine.values()))
    mine |= {name: names[name] for name in ("decide", "learn", "local", "ticket")}
    constants = {
        "LOCAL": model.input_size,
        "RECORD": model.input_size + size_of(config.remote_shape),
        "HEAD": pack("<BBH", wire.VERSION, 0, config.model_id),
        "LEFT": pack("<IH", config.deadline_ms, 0),
        "SHAPE": pack(f"<BB{len(config.remote_shape)}H", wire.INT8, len(config.remote_shape), *config.remote_shape),
        "DEVICE": config.device.encode(),
        "DEADLINE": config.deadline_ms,
    }
    before: list[str] = []
    functions: list[str] = []
    for part in tree.body:
        small = shrink.minified(_Filled(constants).visit(shrink.renamed(part, mine)))
        (functions if isinstance(part, ast.FunctionDef) else before).append(small)
    # what is large or long first, while the heap is in one piece; the LDL's steps name its functions
    made = [source for source in made if f".{names['lose']}=" not in source]  # its node expires tickets by opening new ones
    steps = more.pop(-2)
    of_ldl = _longest_first(source for source in more if source.startswith("def "))
    functions = _grouped(_longest_first([*functions, *(source for source in made if source.startswith("def "))]))
    tables = [source for source in (*made[2:], *more) if not source.startswith(("def ", "p."))]
    arrays = _longest_first(source for source in made if source.startswith("p."))
    head = [*before, RESERVE, *made[:2], *arrays, *tables]
    return [*head, *of_ldl, steps, *functions[:-8], "g=None", *functions[-8:], f"x={mine['node']}"]


def _longest_first(sources: Iterable[str]) -> list[str]:
    return sorted(sources, key=len, reverse=True)


def _grouped(sources: list[str]) -> list[str]:
    """Short ones together: every source takes the parser 512 bytes in one piece, and there is less of that each time."""
    groups = [sources[0]]
    for source in sources[1:]:
        if len(groups[-1]) + len(source) < 160:
            groups[-1] += "\n" + source
        else:
            groups.append(source)
    return groups


# the parser needs 512 bytes in one piece to the very end: they are set aside at the top of the heap, where small things, which
# go to the lowest hole, leave them alone, and given back for the last and smallest sources. The collector takes whatever lies
# on the stack for a pointer, and what an interrupt left there may keep the first x alive: a call later it lies there no more
RESERVE = """g=x=0
gc.collect()
n=gc.mem_free()
while 1:
 try:
  x=bytearray(n)
  break
 except MemoryError:
  n-=32
x=None
try:
 x=bytearray(n-832)
except MemoryError:
 gc.collect()
 x=bytearray(n-832)
g=bytearray(768)
x=None"""


class _Filled(ast.NodeTransformer):
    def __init__(self, constants: dict[str, object]) -> None:
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.constants:
            return ast.copy_location(ast.Constant(self.constants[node.id]), node)  # type: ignore[arg-type]
        return node
