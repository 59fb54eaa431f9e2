"""Reads a .tflite (schema version 3) into plain Python: tensors, operators, their options. No flatbuffer library needed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from struct import error as StructError
from struct import unpack_from
from typing import Any, NamedTuple

import numpy as np

from h2t2.cpython.tflite_check import check
from h2t2.cpython.tflite_flat import FlatFile

from ..common import places, toml_file
from ..common.errors import UserError, file_errors

TYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 5: "string", 6: "bool", 7: "int16", 8: "complex64",
    9: "int8", 10: "float64", 11: "complex128", 12: "uint64", 13: "resource", 14: "variant", 15: "uint32", 16: "uint16",
    17: "int4", 18: "bfloat16",
}  # fmt: skip
BYTES = {"float32": 4, "float16": 2, "int32": 4, "uint8": 1, "int64": 8, "bool": 1, "int16": 2, "int8": 1, "float64": 8}
# the names of operators, each at its number in the schema (BuiltinOperator)
NAMES = places.text("model/operator_names.txt").split()
TREES = "H2T2_TREES"  # the CUSTOM operator in which h2t2 keeps trees, the only one that boards run
FUSED = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}


class Option(NamedTuple):
    """One option: its attribute in LiteRT's generated schema, its field in the file, its struct code, and its default."""

    attribute: str
    field: int
    code: str
    default: int | float | str = 0


TEXT = "text"  # in place of a struct code
# operator -> (its table in the schema, name -> option)
OPTIONS: dict[str, tuple[str, dict[str, Option]]] = {
    operator: (entries.pop("table"), {name: Option(*option) for name, option in entries.items()})
    for operator, entries in toml_file.read_entries(places.PACKAGE / "model/tflite_options.toml").items()
}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a graph.

    Attributes:
        shape: As stored, batch first.
        data: A constant's numbers, or None.
        scale, zero: Quantisation, (channels,) or (1,); empty where there is none.
        axis: The axis of the channels.
        variable: It keeps its numbers from one inference to the next, as the state of an LSTM does.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    data: np.ndarray | None = None
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0))
    zero: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    _: KW_ONLY
    axis: int = 0
    variable: bool = False

    @property
    def quantisation(self) -> tuple[float, int]:
        """Its first scale and zero point."""
        return float(self.scale[0]), int(self.zero[0])

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bytes(self) -> int:
        return self.size * BYTES.get(self.dtype, 1)


@dataclass(frozen=True)
class Operator:
    """An operator of a graph.

    Attributes:
        inputs, outputs: Tensor indices; -1 for an input that is absent.
        options: By name, as in OPTIONS.
        intermediates: Tensor indices, of an LSTM.
        custom: The name that its author gave a CUSTOM operator.
    """

    name: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]
    intermediates: tuple[int, ...] = ()
    custom: str = ""

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"{self.name} {self.custom}" if self.custom else self.name


@dataclass(frozen=True)
class Graph:
    """A model's first graph.

    Attributes:
        path: What messages call the model.
        inputs, outputs: Tensor indices.
        subgraphs: The model's other graphs, which a CALL_ONCE calls by their number from 1 on.
    """

    path: str
    file_bytes: int
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: tuple[Graph, ...] = ()


def load(path: Path) -> Graph:
    """Read a model. UserError for a file that is missing, damaged or of another kind."""
    with file_errors(path):
        content = path.read_bytes()
    return read(content, str(path))


def read(content: bytes, path: str = "model") -> Graph:
    """Read a model from its bytes; path: what messages call it."""
    try:
        check(content)
        return _Reader(content).graph(path)
    except (UserError, ValueError, IndexError, OverflowError, StructError) as error:
        raise UserError(f"{path}: {error}") from None


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.raw = FlatFile(content)
        self.content = content

    def value(self, table: int, field: int, code: str, default: Any) -> Any:
        at = self.raw.field(table, field)
        return unpack_from(code, self.content, at)[0] if at else default

    def vector(self, table: int, field: int, dtype: str) -> np.ndarray:
        at = self.raw.field(table, field)
        if not at:
            return np.zeros(0, dtype)
        start, count = self.raw.vector(at, np.dtype(dtype).itemsize)
        return np.frombuffer(self.content, dtype, count, start).copy()

    def tables(self, table: int, field: int) -> list[int]:
        at = self.raw.field(table, field)
        if not at:
            return []
        start, count = self.raw.vector(at, 4)
        return [at + self.raw.number(at) for at in range(start, start + 4 * count, 4)]

    def graph(self, path: str) -> Graph:
        model = self.raw.number(0)
        codes = [self.code(table) for table in self.tables(model, 1)]
        buffers = self.tables(model, 4)
        first, *subgraphs = (self.subgraph(path, table, codes, buffers) for table in self.tables(model, 2))
        return replace(first, subgraphs=tuple(subgraphs))

    def subgraph(self, path: str, table: int, codes: list[tuple[str, int, str]], buffers: list[int]) -> Graph:
        tensors = tuple(self.tensor(n, entry, buffers) for n, entry in enumerate(self.tables(table, 0)))
        operators = tuple(self.operator(entry, codes) for entry in self.tables(table, 3))
        ends = [tuple(int(n) for n in self.vector(table, field, "<i4")) for field in (1, 2)]
        return Graph(path, len(self.content), tensors, operators, ends[0], ends[1])

    def code(self, table: int) -> tuple[str, int, str]:
        """(name, version, author's name) of an operator code."""
        number = max(self.value(table, 0, "<b", 0), self.value(table, 3, "<i", 0))
        name = NAMES[number] if 0 <= number < len(NAMES) else f"operator {number}"
        custom = bytes(self.vector(table, 1, "u1")).decode("utf-8", "replace") if name == "CUSTOM" else ""
        if custom == TREES:
            name, custom = TREES, ""
        return name, self.value(table, 2, "<i", 1), custom

    def tensor(self, index: int, table: int, buffers: list[int]) -> Tensor:
        dtype = TYPES.get(self.value(table, 1, "<b", 0), "unknown")
        shape = tuple(int(n) for n in self.vector(table, 0, "<i4"))
        name = bytes(self.vector(table, 3, "u1")).decode("utf-8", "replace")
        number = self.value(table, 2, "<I", 0)
        raw = self.buffer(buffers[number]) if number < len(buffers) else np.zeros(0, "u1")
        data = None
        if self.raw.field(table, 6):
            raise UserError(f"tensor {name} is sparse: densify the weights before (convert the model without sparsity)")
        if len(raw) and dtype in BYTES:
            if len(raw) != int(np.prod(shape, dtype=np.int64)) * BYTES[dtype]:
                raise UserError(f"tensor {name}: {len(raw)} bytes of data do not fill the shape {shape} of {dtype}")
            data = raw.view(np.dtype(dtype).newbyteorder("<")).reshape(shape)
        at = self.raw.field(table, 4)
        scale, zero, axis = np.zeros(0), np.zeros(0, np.int64), 0
        if at:
            quantization = at + self.raw.number(at)
            scale, zero = self.vector(quantization, 2, "<f4"), self.vector(quantization, 3, "<i8")
            axis = self.value(quantization, 6, "<i", 0)
        return Tensor(index, name, shape, dtype, data, scale, zero, axis=axis, variable=bool(self.value(table, 5, "<b", 0)))

    def buffer(self, table: int) -> np.ndarray:
        start, size = self.raw.outside(table)
        return np.frombuffer(self.content, "u1", size, start).copy() if size else self.vector(table, 0, "u1")

    def operator(self, table: int, codes: list[tuple[str, int, str]]) -> Operator:
        name, version, custom = codes[self.value(table, 0, "<I", 0)]
        ends = [tuple(int(n) for n in self.vector(table, field, "<i4")) for field in (1, 2, 8)]
        at = self.raw.field(table, 4)
        _, declared = OPTIONS.get(name, ("", {}))
        options: dict[str, Any] = {option: entry.default for option, entry in declared.items()}
        for option, entry in declared.items() if at else ():
            table = at + self.raw.number(at)
            if entry.code == TEXT:
                options[option] = bytes(self.vector(table, entry.field, "u1")).decode("utf-8", "replace")
            else:
                options[option] = self.value(table, entry.field, entry.code, entry.default)
        return Operator(name, version, ends[0], ends[1], options, ends[2], custom)
