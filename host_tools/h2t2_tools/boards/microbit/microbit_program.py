"""The micro:bit's program: H2T2 on one page, dense layers and the node, in one file that main.py runs piece by piece.

python-minifier removes comments and shortens local names. Each function or method is a piece, because MicroPython 1.9.2
compiles no more at a time in the 9 KB of heap in which the program runs.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from math import prod
from struct import pack
from typing import Any

from h2t2.ldl.bundle import Int8Model
from h2t2.link import wire

from ...common import places
from ...common.errors import UserError
from ...fleet.config import NodeConfig
from . import packed_layers, page

# of the 15,104 bytes of its file system: in a fuller one MicroPython 1.9.2 loses files when it rewrites them
MAX_BYTES = 10700
RESERVED = 6400  # of these, for the program and a small model
PROGRAM = re.compile(r"(program|ldl)_[0-9a-f]{4}")  # files of a program; each program has names of its own
# the functions that are needed once leave the heap, 1.2 KB, before the run
MAIN = places.text("boards/programs/microbit_main.py.txt")
LEFT_OUT = ("def snapshot(", "def restore(")  # node.py writes and reads the policy's arrays without copies


def files(config: NodeConfig, model: Int8Model) -> dict[str, bytes]:
    """Return path to content, main.py last. Raise UserError if the board has no room for what the configuration needs."""
    _check(config)
    folder = places.boards() / "microbit"
    node = _filled((folder / "node.py").read_text(), _constants(config, model))
    sources = (page.SOURCE.read_text(), (folder / "ldl.py").read_text(), node)
    parts = [piece for source in sources for piece in pieces(source) if not piece.startswith(LEFT_OUT)]
    parts.sort(key=lambda piece: len(piece) if piece.startswith("def ") else 9999, reverse=True)  # largest into the empty heap
    program = "".join(f"{len(piece):4}{piece}" for piece in parts).encode()
    packed = packed_layers.pack_model(model)
    arguments = page.arguments(config.model_dump(include={*page.OPTIONS, "device", "model_id"}))
    digest = hashlib.sha256(b"".join([program, packed, options(arguments).encode()])).hexdigest()[:4]
    main = MAIN.format(digest=digest, options=options(arguments))
    return {f"program_{digest}": program, f"ldl_{digest}": packed, "main.py": main.encode()}


def options(arguments: dict[str, Any]) -> str:
    """Return keyword arguments as source."""
    return ",".join(f"{name}={value!r}" for name, value in arguments.items())


def pieces(source: str) -> Iterator[str]:
    """Split source into pieces that do the same if they run one after the other in one namespace. Each method is a piece."""
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.ClassDef):
            yield minified(statement)
            continue
        yield f"class {statement.name}:pass"
        for method in statement.body:
            if isinstance(method, ast.FunctionDef):
                yield f"{minified(method)}\n{statement.name}.{method.name}={method.name};del {method.name}"


def minified(statement: ast.stmt) -> str:
    """Return the source of a statement without comments and docstrings and with short local names."""
    import python_minifier  # of the extra `boards`

    # MicroPython does not recognise range() under the name of a hoisted builtin, and its `for` would then allocate
    short = python_minifier.minify(ast.unparse(statement), hoist_literals=False, remove_literal_statements=True)
    return str(short).replace("\t", " ")


def _check(config: NodeConfig) -> None:
    required = {"policy": "h2t2", "bits": 4, "exploration": "epsilon", "half_life": 0, "in_flight": 1, "rdl_fp": 0, "rdl_fn": 0}
    differing = [f"{name} = {value!r}" for name, value in required.items() if getattr(config, name) != value]
    if differing:
        raise UserError(f"the micro:bit runs only H2T2 on one page: set {', '.join(differing)}")
    if config.remote_dtype != "int8":
        raise UserError(f'remote_dtype = "{config.remote_dtype}": the micro:bit sends its recorded int8 values unchanged')
    if config.head:
        raise UserError("head: the micro:bit has no room for a head")
    if config.update_key:
        raise UserError("update_key: the micro:bit has no room for updates; flash it by cable")


def _constants(config: NodeConfig, model: Int8Model) -> dict[str, int | bytes]:
    """Return the values of the constants that node.py leaves open."""
    return {
        "LOCAL": model.input_size,
        "RECORD": model.input_size + prod(config.remote_shape),
        "DEADLINE": config.deadline_ms,
        "EVERY": config.snapshot_every if config.snapshot else 0,
        "DEVICE": config.device.encode(),
        "MODEL": pack("<I", model.checksum),
        "HEAD": pack("<BBH", wire.VERSION, 0, config.model_id),
        "TIME": pack("<IH", config.deadline_ms, 0),
        "SHAPE": pack(f"<BB{len(config.remote_shape)}H", wire.INT8, len(config.remote_shape), *config.remote_shape),
    }


def _filled(source: str, constants: dict[str, int | bytes]) -> str:
    """Replace constants by their values, and remove the lines that define them."""
    for name, value in constants.items():
        source, count = re.subn(rf"^{name} = .*\n", "", source, flags=re.MULTILINE)
        assert count == 1, name
        source = repr(value).join(re.split(rf"\b{name}\b", source))
    return source
