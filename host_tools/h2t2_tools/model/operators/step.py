"""One step of a bundle, and what the makers of steps share: multipliers, zero points, bounds, parameters in their order."""

import ast
import inspect
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from h2t2.ldl import convolutions, dense, log_softmax, look_up, lstm, numbers, rare, softmax, trees, windows

from ..tflite import FUSED, Graph, Operator, Tensor
from .tflite_fixed_point import rounded

# the first parameters of every step, as h2t2/ldl/kernels.py describes them
INPUT, OUTPUT, X_ZERO, Y_ZERO, LOW, HIGH, SEVENTH, FIRST_OWN = range(8)


# of the integer interpreter's kernels
MODULES = convolutions, dense, log_softmax, look_up, lstm, numbers, rare, softmax, trees, windows


def _layouts() -> dict[str, list[str]]:
    """Kernel -> the names of its parameters in their order, as the kernel unpacks them from p."""
    layouts = {}
    for module in MODULES:
        for function in ast.parse(inspect.getsource(module)).body:
            for line in getattr(function, "body", []):
                if isinstance(line, ast.Assign) and ast.unparse(line.value) == "p" and isinstance(line.targets[0], ast.Tuple):
                    layouts[function.name] = [name.id for name in line.targets[0].elts]  # type: ignore[attr-defined]
    return layouts


LAYOUTS = _layouts()


@dataclass
class Step:
    """One step of a plan.

    Attributes:
        kernel: Name of the function that runs it.
        p: Its parameters. Those that are places in the arena are tensors until plan.place().
        tensor: The tensor that it writes.
        weights: Weights as bytes u = q + 128, or a table.
        bias: Bias of each output channel, int64.
        multipliers: (m, exponent) of 31 bits; each stands for m 2^(exponent - 31).
        second: The tensor of a second input, whose place is the seventh parameter.
        scratch: (the parameter that is the place of a tensor of its own, that tensor).
        start: Where in its output it writes: an input of a CONCATENATION.
        reach: The largest number that enters its multipliers, or each of them; layers compute it from their weights.
    """

    kernel: str
    p: list[int]
    tensor: int
    weights: bytes = b""
    bias: np.ndarray | None = None
    multipliers: list[tuple[int, int]] = field(default_factory=list)
    _: KW_ONLY
    second: int | None = None
    scratch: tuple[str, int] | None = None
    start: int = 0
    reach: int | list[int] = 0

    @property
    def reads(self) -> list[int]:
        """The tensors that it reads."""
        return [self.p[INPUT], *([] if self.second is None else [self.second])]

    @property
    def holds(self) -> list[int]:
        """The tensors that need a place while it runs, except its output."""
        return [*self.reads, *([] if self.scratch is None else [self.scratch[1]])]

    def parameter(self, name: str) -> int:
        """The index of a parameter in p."""
        return LAYOUTS[self.kernel].index(name)


def zero_byte(tensor: Tensor) -> int:
    return int(tensor.zero[0]) + 128


def bytes_of(tensor: Tensor) -> bytes:
    """A constant's numbers as u = q + 128, the board's form."""
    assert tensor.data is not None
    return as_bytes(tensor.data)


def as_bytes(data: np.ndarray) -> bytes:
    """int8 numbers as u = q + 128; uint8 numbers are u already."""
    return (data.astype(np.int16) + (0 if data.dtype == np.uint8 else 128)).astype(np.uint8).tobytes()


def bounds(tensor: Tensor, fused: int) -> tuple[int, int]:
    """Low and high of the output bytes for a fused activation."""
    scale, zero = float(tensor.scale[0]), int(tensor.zero[0])

    def q(real: float) -> int:
        return zero + rounded(real / scale)

    low, high = {"NONE": (-128, 127), "RELU": (q(0), 127), "RELU_N1_TO_1": (q(-1), q(1)), "RELU6": (q(0), q(6))}[FUSED[fused]]
    return max(low, -128) + 128, min(high, 127) + 128


def parameters(kernel: str, x: Tensor, y: Tensor, fused: int, **own: int) -> list[int]:
    """A step's parameters: the common ones, then its own by name, in the order in which its kernel unpacks them."""
    names = LAYOUTS[kernel]
    if set(own) != set(names[FIRST_OWN:]):
        raise ValueError(f"{kernel}: parameters {sorted(own)}, want {sorted(names[FIRST_OWN:])}")
    return [x.index, y.index, zero_byte(x), zero_byte(y), *bounds(y, fused), 0, *(own[name] for name in names[FIRST_OWN:])]


def ends(graph: Graph, operator: Operator) -> tuple[Tensor, Tensor, int]:
    """Its first input, its first output and its fused activation."""
    return graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]], operator.options.get("fused", 0)
