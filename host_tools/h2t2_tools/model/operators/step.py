"""One step of a bundle, and what the makers of steps share: multipliers, zero points, bounds, parameters in their order."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, field

import numpy as np

from h2t2.ldl import kernels, kernels_rare, lstm

from ..tflite import FUSED, Graph, Operator, Tensor
from .fixed_point import rounded

# what the first parameters of every step are: see h2t2/ldl/kernels.py
INPUT, OUTPUT, X_ZERO, Y_ZERO, LEAST, GREATEST, SEVENTH, FIRST_OWN = range(8)


def _layouts() -> dict[str, list[str]]:
    """The names of every kernel's parameters in their order, as the kernel itself unpacks them from p."""
    made = {}
    for function in (part for module in (kernels, kernels_rare, lstm) for part in ast.parse(inspect.getsource(module)).body):
        for part in getattr(function, "body", []):
            if isinstance(part, ast.Assign) and ast.unparse(part.value) == "p" and isinstance(part.targets[0], ast.Tuple):
                made[function.name] = [name.id for name in part.targets[0].elts]  # type: ignore[attr-defined]
    return made


LAYOUTS = _layouts()


@dataclass
class Step:
    """kernel: its name; p: parameters. Those that are places in the arena are tensors until place() is called."""

    kernel: str
    p: list[int]
    tensor: int  # what it writes
    weights: bytes = b""  # u = q + 128, or a table
    bias: np.ndarray | None = None
    multipliers: list[tuple[int, int]] = field(default_factory=list)  # (31-bit, exponent), value m 2^(exponent - 31)
    other: int | None = None  # the tensor of a second input, whose place is the seventh parameter
    scratch: tuple[str, int] | None = None  # the parameter that is the place of a tensor of its own, and that tensor
    start: int = 0  # where in its output it writes: an input of a CONCATENATION
    reach: int | list[int] = 0  # the most that goes into its multipliers, or into each, where no weights of a layer say so

    @property
    def reads(self) -> list[int]:
        """The tensors it reads."""
        return [self.p[INPUT], *([] if self.other is None else [self.other])]

    @property
    def holds(self) -> list[int]:
        """The tensors that need a place while it runs, beside its output."""
        return [*self.reads, *([] if self.scratch is None else [self.scratch[1]])]


def zero_byte(tensor: Tensor) -> int:
    return int(tensor.zero[0]) + 128


def bytes_of(tensor: Tensor) -> bytes:
    """A constant's numbers as the board has them: u = q + 128."""
    assert tensor.data is not None
    return as_bytes(tensor.data)


def as_bytes(data: np.ndarray) -> bytes:
    """The same of int8 numbers, or uint8 ones, which are u already."""
    return (data.astype(np.int16) + (0 if data.dtype == np.uint8 else 128)).astype(np.uint8).tobytes()


def bounds(tensor: Tensor, fused: int) -> tuple[int, int]:
    """Low and high of the output bytes for a fused activation."""
    scale, zero = float(tensor.scale[0]), int(tensor.zero[0])

    def q(real: float) -> int:
        return zero + rounded(real / scale)

    low, high = {"NONE": (-128, 127), "RELU": (q(0), 127), "RELU_N1_TO_1": (q(-1), q(1)), "RELU6": (q(0), q(6))}[FUSED[fused]]
    return max(low, -128) + 128, min(high, 127) + 128


def parameters(kernel: str, x: Tensor, y: Tensor, fused: int, **own: int) -> list[int]:
    """A step's parameters: those that all have, then its own, by the names and in the order its kernel unpacks them."""
    names = LAYOUTS[kernel]
    if set(own) != set(names[FIRST_OWN:]):
        raise ValueError(f"{kernel}: parameters {sorted(own)}, want {sorted(names[FIRST_OWN:])}")
    return [x.index, y.index, zero_byte(x), zero_byte(y), *bounds(y, fused), 0, *(own[name] for name in names[FIRST_OWN:])]


def ends(graph: Graph, operator: Operator) -> tuple[Tensor, Tensor, int]:
    """Its first input, its first output and its fused activation."""
    return graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]], operator.options.get("fused", 0)
