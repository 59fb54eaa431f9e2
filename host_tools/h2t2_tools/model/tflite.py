"""Reads a .tflite (schema version 3) into plain Python: tensors, operators, their options. No flatbuffer library needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from struct import error as StructError
from struct import unpack_from
from typing import Any

import numpy as np

from h2t2.cpython.tflite_check import check
from h2t2.cpython.tflite_flat import FlatFile

from ..common.errors import UserError
from .operator_names import NAMES

TYPES = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    6: "bool",
    7: "int16",
    9: "int8",
    10: "float64",
    13: "resource",
}
BYTES = {"float32": 4, "float16": 2, "int32": 4, "uint8": 1, "int64": 8, "bool": 1, "int16": 2, "int8": 1, "float64": 8}
FUSED = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}

# option name -> (field, struct code, default), by operator
_WINDOW = {"padding": (0, "<b", 0), "stride_w": (1, "<i", 1), "stride_h": (2, "<i", 1)}
_TEXT = "text"  # instead of a struct code
_OPTIONS: dict[str, dict[str, tuple[int, str, Any]]] = {
    "CONV_2D": {**_WINDOW, "fused": (3, "<b", 0), "dilation_w": (4, "<i", 1), "dilation_h": (5, "<i", 1)},
    "DEPTHWISE_CONV_2D": {
        **_WINDOW, "multiplier": (3, "<i", 1), "fused": (4, "<b", 0), "dilation_w": (5, "<i", 1), "dilation_h": (6, "<i", 1),
    },
    "AVERAGE_POOL_2D": {**_WINDOW, "filter_w": (3, "<i", 1), "filter_h": (4, "<i", 1), "fused": (5, "<b", 0)},
    "MAX_POOL_2D": {**_WINDOW, "filter_w": (3, "<i", 1), "filter_h": (4, "<i", 1), "fused": (5, "<b", 0)},
    "FULLY_CONNECTED": {"fused": (0, "<b", 0), "keep_num_dims": (2, "<b", 0)},
    **dict.fromkeys(("ADD", "SUB", "MUL"), {"fused": (0, "<b", 0)}),
    "CONCATENATION": {"axis": (0, "<i", 0), "fused": (1, "<b", 0)},
    **dict.fromkeys(("MEAN", "SUM"), {"keep_dims": (0, "<b", 0)}),
    "SOFTMAX": {"beta": (0, "<f", 0)},
    "LEAKY_RELU": {"alpha": (0, "<f", 0)},
    "PACK": {"values": (0, "<i", 0), "axis": (1, "<i", 0)},
    "UNPACK": {"values": (0, "<i", 0), "axis": (1, "<i", 0)},
    "SPLIT": {"splits": (0, "<i", 0)},
    "SPLIT_V": {"splits": (0, "<i", 0)},
    "STRIDED_SLICE": {
        "begin_mask": (0, "<i", 0), "end_mask": (1, "<i", 0), "ellipsis_mask": (2, "<i", 0), "new_axis_mask": (3, "<i", 0),
        "shrink_mask": (4, "<i", 0), "offset": (5, "<b", 0),
    },
    "DEPTH_TO_SPACE": {"block": (0, "<i", 0)},
    "SPACE_TO_DEPTH": {"block": (0, "<i", 0)},
    "RESIZE_BILINEAR": {"align_corners": (2, "<b", 0), "half_pixel_centers": (3, "<b", 0)},
    "RESIZE_NEAREST_NEIGHBOR": {"align_corners": (0, "<b", 0), "half_pixel_centers": (1, "<b", 0)},
    "SHAPE": {"out_type": (0, "<b", 0)},
    "BATCH_MATMUL": {"adjoint_x": (0, "<b", 0), "adjoint_y": (1, "<b", 0)},
    "VAR_HANDLE": {"name": (1, _TEXT, "")},
    "CALL_ONCE": {"graph": (0, "<i", 0)},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {"fused": (0, "<b", 0), "cell_clip": (1, "<f", 0), "time_major": (3, "<b", 0)},
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """shape: as stored (batch first); data: a constant's array, or None; scale, zero: (channels,) or (1,), empty: none.

    variable: it keeps its numbers from one inference to the next, as the state of an LSTM does.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    data: np.ndarray | None
    scale: np.ndarray
    zero: np.ndarray
    axis: int
    variable: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bytes(self) -> int:
        return self.size * BYTES.get(self.dtype, 1)


@dataclass(frozen=True)
class Operator:
    """inputs, outputs: tensor indices, -1 for one left out; options: by name, see _OPTIONS; intermediates: of an LSTM."""

    name: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]
    intermediates: tuple[int, ...] = ()


@dataclass(frozen=True)
class Graph:
    """others: the model's graphs after the first, which a CALL_ONCE calls by their number, 1 and on."""

    path: str
    file_bytes: int
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    others: tuple[Graph, ...] = ()


def load(path: Path) -> Graph:
    """The model's graph, and with it any others. UserError for a file that is none, or is damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: {error}") from None
    return read(content, str(path))


def read(content: bytes, path: str = "model") -> Graph:
    """load() of bytes; path: what the model is called in messages."""
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
        return [part + self.raw.number(part) for part in range(start, start + 4 * count, 4)]

    def graph(self, path: str) -> Graph:
        model = self.raw.number(0)
        codes = [self.code(table) for table in self.tables(model, 1)]
        buffers = self.tables(model, 4)
        first, *others = (self.subgraph(path, table, codes, buffers) for table in self.tables(model, 2))
        return replace(first, others=tuple(others))

    def subgraph(self, path: str, table: int, codes: list[tuple[str, int]], buffers: list[int]) -> Graph:
        tensors = tuple(self.tensor(n, each, buffers) for n, each in enumerate(self.tables(table, 0)))
        operators = tuple(self.operator(each, codes) for each in self.tables(table, 3))
        ends = [tuple(int(n) for n in self.vector(table, field, "<i4")) for field in (1, 2)]
        return Graph(path, len(self.content), tensors, operators, ends[0], ends[1])

    def code(self, table: int) -> tuple[str, int]:
        number = max(self.value(table, 0, "<b", 0), self.value(table, 3, "<i", 0))
        name = NAMES[number] if 0 <= number < len(NAMES) else f"operator {number}"
        return name, self.value(table, 2, "<i", 1)

    def tensor(self, index: int, table: int, buffers: list[int]) -> Tensor:
        dtype = TYPES.get(self.value(table, 1, "<b", 0), "unknown")
        shape = tuple(int(n) for n in self.vector(table, 0, "<i4"))
        name = bytes(self.vector(table, 3, "u1")).decode("utf-8", "replace")
        number = self.value(table, 2, "<I", 0)
        raw = self.buffer(buffers[number]) if number < len(buffers) else np.zeros(0, "u1")
        data = None
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
        return Tensor(index, name, shape, dtype, data, scale, zero, axis, bool(self.value(table, 5, "<b", 0)))

    def buffer(self, table: int) -> np.ndarray:
        start, size = self.raw.outside(table)
        return np.frombuffer(self.content, "u1", size, start).copy() if size else self.vector(table, 0, "u1")

    def operator(self, table: int, codes: list[tuple[str, int]]) -> Operator:
        name, version = codes[self.value(table, 0, "<I", 0)]
        ends = [tuple(int(n) for n in self.vector(table, field, "<i4")) for field in (1, 2, 8)]
        at = self.raw.field(table, 4)
        options = {}
        for option, (field, code, default) in _OPTIONS.get(name, {}).items():
            if not at:
                options[option] = default
            elif code == _TEXT:
                options[option] = bytes(self.vector(at + self.raw.number(at), field, "u1")).decode("utf-8", "replace")
            else:
                options[option] = self.value(at + self.raw.number(at), field, code, default)
        return Operator(name, version, ends[0], ends[1], options, ends[2])
