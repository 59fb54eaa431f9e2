"""An int8 .tflite as the steps a board takes: integer multipliers, bounds, tables, one arena with offsets by lifetime."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from h2t2.ldl import kernels

from ..common.errors import UserError
from .tflite import FUSED, Graph, Operator, Tensor

WEIGHTED = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D")
SAME_BYTES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")  # another shape, nothing to do
INPUT, OUTPUT, SEVENTH, FIRST_OWN = 0, 1, 6, 7  # what the first parameters of every step are: see h2t2/ldl/kernels.py


def _layouts() -> dict[str, list[str]]:
    """The names of every kernel's parameters in their order, as the kernel itself unpacks them from p."""
    made = {}
    for function in ast.parse(inspect.getsource(kernels)).body:
        for part in getattr(function, "body", []):
            if isinstance(part, ast.Assign) and ast.unparse(part.value) == "p" and isinstance(part.targets[0], ast.Tuple):
                made[function.name] = [name.id for name in part.targets[0].elts]  # type: ignore[attr-defined]
    return made


LAYOUTS = _layouts()
CODES = {name: code for code, name in enumerate(kernels.NAMES) if name}


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
    start: int = 0  # where in its output it writes: an input of a CONCATENATION

    @property
    def reads(self) -> list[int]:
        """The tensors it reads."""
        return [self.p[INPUT], *([] if self.other is None else [self.other])]


@dataclass
class Plan:
    steps: list[Step]
    offsets: dict[int, int]  # of the tensors in the arena
    arena: int
    graph: Graph


def multiplier(real: float) -> tuple[int, int]:
    """TFLite's QuantizeMultiplier: real = m 2^(exponent - 31), m of 31 bits, rounded half up."""
    if real <= 0:
        return 0, 0
    fraction, exponent = math.frexp(real)
    m = math.floor(fraction * 2**31 + 0.5)
    if m == 2**31:
        m //= 2
        exponent += 1
    return (0, 0) if exponent < -31 else (m, exponent)


def _reason(graph: Graph, operator: Operator) -> str | None:
    """Why a board cannot run an operator, or None."""
    if operator.name.startswith("RESIZE"):
        return "a device makes pictures smaller in integers, before the model: train on that (h2t2 pair --picture)"
    if operator.name not in _MAKERS:
        return "this operator is not among those the interpreter has"
    if operator.name in WEIGHTED:
        reason = _weights_reason(graph, operator)
        if reason:
            return reason
    for n in (*operator.inputs, *operator.outputs):
        if n < 0:
            continue
        tensor = graph.tensors[n]
        if not all(0 < d < 2**20 for d in tensor.shape) or tensor.size >= 2**28:
            return f"tensor {tensor.name} has the shape {tensor.shape}: impossible, or far too large for a board"
        shape_only = operator.name in (*SAME_BYTES, "PAD", "MEAN") and n in operator.inputs[1:]
        if tensor.dtype not in ("int8", "int32") and not shape_only:
            return f"tensor {tensor.name} is {tensor.dtype}: convert the model with full integer quantisation"
        if tensor.dtype == "int8" and not len(tensor.scale):
            return f"tensor {tensor.name} has no quantisation"
        if tensor.shape and tensor.data is None and tensor.shape[0] != 1 and tensor.dtype == "int8":
            return f"tensor {tensor.name} has a batch of {tensor.shape[0]}: only 1 is run"
    return None


def _weights_reason(graph: Graph, operator: Operator) -> str | None:
    """Why its weights or its bias are not those of full integer quantisation, or None."""
    w = graph.tensors[operator.inputs[1]]
    if w.data is None:
        return f"its weights, tensor {w.name}, are computed by the model: only constants are run"
    if w.dtype == "int8" and np.any(w.zero):
        return f"its weights, tensor {w.name}, have a zero point of {int(w.zero[np.flatnonzero(w.zero)[0]])}: only 0 is run"
    n = operator.inputs[2] if len(operator.inputs) > 2 else -1
    if n >= 0 and graph.tensors[n].dtype != "int32":
        bias = graph.tensors[n]
        return f"its bias, tensor {bias.name}, is {bias.dtype}, not int32: convert the model with full integer quantisation"
    return None


def _only_shapes(graph: Graph) -> set[int]:
    """Numbers of the operators that only compute the shape of a RESHAPE, which is known already."""
    found: set[int] = set()
    for n in reversed(range(len(graph.operators))):
        uses = [
            (other.name == "RESHAPE" and place > 0) or m in found
            for m, other in enumerate(graph.operators)
            for place, tensor in enumerate(other.inputs)
            if tensor in graph.operators[n].outputs
        ]
        if uses and all(uses) and graph.operators[n].name in ("SHAPE", "STRIDED_SLICE", "PACK"):
            found.add(n)
    return found


def unsupported(graph: Graph) -> list[str]:
    """Every reason why a board cannot run the graph, in words."""
    reasons = []
    shapes = _only_shapes(graph)
    for n, operator in enumerate(graph.operators):
        reason = None if n in shapes else _reason(graph, operator)
        if reason:
            reasons.append(f"operator {n}, {operator.name}: {reason}")
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        reasons.append(f"{len(graph.inputs)} inputs and {len(graph.outputs)} outputs: want one of each")
    return reasons


def trimmed(graph: Graph) -> Graph:
    """The graph without a QUANTIZE of its float input and a DEQUANTIZE of its output: its int8 ends are the board's."""
    operators = list(graph.operators)
    inputs, outputs = graph.inputs, graph.outputs
    first = [o for o in operators if inputs and inputs[0] in o.inputs]
    if len(inputs) == len(first) == 1 and first[0].name == "QUANTIZE" and graph.tensors[inputs[0]].dtype == "float32":
        operators.remove(first[0])
        inputs = first[0].outputs
    last = [o for o in operators if outputs and outputs[0] in o.outputs]
    if len(outputs) == len(last) == 1 and last[0].name == "DEQUANTIZE":
        operators.remove(last[0])
        outputs = last[0].inputs
    return replace(graph, operators=tuple(operators), inputs=inputs, outputs=outputs)


def plan(graph: Graph) -> Plan:
    """The steps and the memory plan. UserError with every reason why there can be none."""
    try:
        return _plan(trimmed(graph))
    except (IndexError, KeyError, ValueError, TypeError, ArithmeticError, AssertionError) as error:
        # a stranger's file: shapes, options and indices that contradict each other
        raise UserError(f"{graph.path}: the model does not hold together ({type(error).__name__}: {error})") from None


def _plan(graph: Graph) -> Plan:
    reasons = unsupported(graph)
    if reasons:
        raise UserError(f"{graph.path}: " + "; ".join(reasons))
    alias = {}
    for operator in graph.operators:
        if operator.name in SAME_BYTES:
            alias[operator.outputs[0]] = operator.inputs[0]
    steps: list[Step] = []
    shapes = _only_shapes(graph)
    for n, operator in enumerate(graph.operators):
        if operator.name not in SAME_BYTES and n not in shapes:
            steps += _MAKERS[operator.name](graph, operator)
    for step in steps:
        _check_range(graph, step)
        if not all(-(2**30) <= value < 2**30 for value in step.p):
            raise ValueError(f"{step.kernel}: a parameter of {max(step.p, key=abs)}")
    root = _roots(alias)
    offsets, arena = _place(graph, steps, root)
    computed = {root(graph.inputs[0]), *(root(step.tensor) for step in steps)}
    read = {tensor for step in steps for tensor in step.reads}
    for tensor in {*read, graph.inputs[0], graph.outputs[0]}:
        if root(tensor) not in computed or tensor not in offsets:
            raise ValueError(f"tensor {tensor} is never computed")
    return Plan(steps, offsets, arena, graph)


def _roots(alias: dict[int, int]) -> Callable[[int], int]:
    def root(n: int) -> int:
        while n in alias:
            n = alias[n]
        return n

    return root


def _place(graph: Graph, steps: list[Step], root: Callable[[int], int]) -> tuple[dict[int, int], int]:
    """Offsets by lifetime: the largest tensor first, each at the lowest place free all the time it lives."""
    first: dict[int, int] = {root(graph.inputs[0]): -1}
    last: dict[int, int] = {root(graph.outputs[0]): len(steps)}
    for n, step in enumerate(steps):
        for tensor in step.reads:
            last[root(tensor)] = max(n, last.get(root(tensor), n))
        first.setdefault(root(step.p[OUTPUT]), n)
        last.setdefault(root(step.p[OUTPUT]), n)
    placed: list[tuple[int, int, int, int]] = []  # offset, size, first, last
    offsets: dict[int, int] = {}
    for tensor in sorted(first, key=lambda t: -graph.tensors[t].size):
        start, end = first[tensor], last.get(tensor, first[tensor])
        size = graph.tensors[tensor].size
        at = 0
        for offset, other, begin, finish in sorted(placed):
            if begin <= end and start <= finish and at + size > offset and at < offset + other:
                at = offset + other
        placed.append((at, size, start, end))
        offsets[tensor] = at
    for tensor in range(len(graph.tensors)):
        if root(tensor) in offsets:
            offsets[tensor] = offsets[root(tensor)]
    return offsets, max(offset + size for offset, size, *_ in placed)


def _check_range(graph: Graph, step: Step) -> None:
    """UserError where an accumulator could leave what the board's arithmetic holds (2^29)."""
    if step.kernel not in ("fully_connected", "conv_2d", "depthwise_conv_2d"):
        return
    channels = len(step.bias) if step.bias is not None else 1
    weights = np.abs(np.frombuffer(step.weights, np.uint8).astype(np.int64) - 128)
    by_channel = (
        weights.reshape(-1, channels).sum(0) if step.kernel == "depthwise_conv_2d" else weights.reshape(channels, -1).sum(1)
    )
    bound = by_channel * 255 + (np.abs(step.bias) if step.bias is not None else 0)
    shifts = np.array([max(0, exponent) for _, exponent in step.multipliers])
    if int(np.max(bound << shifts)) >= 2**29:
        raise UserError(f"{graph.path}: {step.kernel}: an accumulator may reach {int(np.max(bound))}, too large for a board")


def _zero(tensor: Tensor) -> int:
    return int(tensor.zero[0]) + 128


def _bounds(tensor: Tensor, fused: int) -> tuple[int, int]:
    """Low and high of the output bytes for a fused activation."""
    scale, zero = float(tensor.scale[0]), int(tensor.zero[0])

    def q(real: float) -> int:
        return int(zero + math.copysign(math.floor(abs(real / scale) + 0.5), real))

    low, high = {"NONE": (-128, 127), "RELU": (q(0), 127), "RELU_N1_TO_1": (q(-1), q(1)), "RELU6": (q(0), q(6))}[FUSED[fused]]
    return max(low, -128) + 128, min(high, 127) + 128


def _parameters(kernel: str, x: Tensor, y: Tensor, fused: int, **own: int) -> list[int]:
    """A step's parameters: those that all have, then its own, by the names and in the order its kernel unpacks them."""
    names = LAYOUTS[kernel]
    if set(own) != set(names[FIRST_OWN:]):
        raise ValueError(f"{kernel}: parameters {sorted(own)}, want {sorted(names[FIRST_OWN:])}")
    return [x.index, y.index, _zero(x), _zero(y), *_bounds(y, fused), 0, *(own[name] for name in names[FIRST_OWN:])]


def _ends(graph: Graph, operator: Operator) -> tuple[Tensor, Tensor, int]:
    """Its first input, its first output and its fused activation."""
    return graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]], operator.options.get("fused", 0)


def _bytes(tensor: Tensor) -> bytes:
    assert tensor.data is not None
    return (tensor.data.astype(np.int16) + 128).astype(np.uint8).tobytes()


def _bias(graph: Graph, operator: Operator, channels: int) -> np.ndarray:
    n = operator.inputs[2] if len(operator.inputs) > 2 else -1
    data = graph.tensors[n].data if n >= 0 else None
    return np.zeros(channels, np.int64) if data is None else data.ravel().astype(np.int64)


def _fully_connected(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = _ends(graph, operator)
    w = graph.tensors[operator.inputs[1]]
    outputs, inputs = w.shape
    if len(w.scale) == 1:  # one scale: the product is taken in float32
        real = [float(np.float32(x.scale[0]) * np.float32(w.scale[0])) / float(y.scale[0])] * outputs
    else:
        real = [float(x.scale[0]) * float(s) / float(y.scale[0]) for s in w.scale]
    rows, rest = divmod(x.size, inputs)
    if rest or y.size != rows * outputs:
        raise ValueError(f"FULLY_CONNECTED of {x.shape} by {w.shape} gives {y.shape}")
    if rows == 1:
        p = _parameters("fully_connected", x, y, fused, inputs=inputs, outputs=outputs)
        kernel = "fully_connected"
    else:  # of a sequence: the same as a convolution of one pixel over a picture of one row
        one = dict.fromkeys(("height", "out_height", "kernel_height", "kernel_width"), 1)
        one |= dict.fromkeys(("stride_y", "stride_x", "dilation_y", "dilation_x"), 1) | {"pad_y": 0, "pad_x": 0}
        p = _parameters("conv_2d", x, y, fused, **one, width=rows, depth=inputs, out_width=rows, channels=outputs)
        kernel = "conv_2d"
    return [Step(kernel, p, y.index, _bytes(w), _bias(graph, operator, outputs), [multiplier(r) for r in real])]


def _window(operator: Operator, x: Tensor, y: Tensor, height: int, width: int) -> dict[str, int]:
    """The parameters that convolutions and pools have in common; height, width: of the kernel."""
    o = operator.options
    before = []
    for size, out, kernel, stride, dilation in (
        (x.shape[1], y.shape[1], height, o["stride_h"], o.get("dilation_h", 1)),
        (x.shape[2], y.shape[2], width, o["stride_w"], o.get("dilation_w", 1)),
    ):
        total = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size) if o["padding"] == 0 else 0
        before.append(total // 2)
    return {
        **_sizes(x, y), "channels": y.shape[3], "kernel_height": height, "kernel_width": width,
        "stride_y": o["stride_h"], "stride_x": o["stride_w"], "pad_y": before[0], "pad_x": before[1],
    }  # fmt: skip


def _sizes(x: Tensor, y: Tensor) -> dict[str, int]:
    """Sizes of two images, batch first."""
    return {
        "height": x.shape[1], "width": x.shape[2], "depth": x.shape[3], "out_height": y.shape[1], "out_width": y.shape[2],
    }  # fmt: skip


def _conv(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = _ends(graph, operator)
    w = graph.tensors[operator.inputs[1]]
    depthwise = operator.name == "DEPTHWISE_CONV_2D"
    channels = y.shape[3]
    if not depthwise and w.shape[3] != x.shape[3]:
        raise UserError(
            f"{graph.path}: a grouped convolution (filters of {w.shape[3]} of {x.shape[3]} channels) is not supported"
        )
    scales = np.broadcast_to(w.scale, channels)
    own = _window(operator, x, y, w.shape[1], w.shape[2])
    own |= {"dilation_y": operator.options["dilation_h"], "dilation_x": operator.options["dilation_w"]}
    if depthwise:
        own["many"] = channels // x.shape[3]
    real = [float(x.scale[0]) * float(s) / float(y.scale[0]) for s in scales]
    kernel = "depthwise_conv_2d" if depthwise else "conv_2d"
    p = _parameters(kernel, x, y, fused, **own)
    return [Step(kernel, p, y.index, _bytes(w), _bias(graph, operator, channels), [multiplier(r) for r in real])]


def _pool(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = _ends(graph, operator)
    own = _window(operator, x, y, operator.options["filter_h"], operator.options["filter_w"])
    own["average"] = int(operator.name == "AVERAGE_POOL_2D")
    return [Step("pool_2d", _parameters("pool_2d", x, y, fused, **own), y.index)]


def _mean(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = _ends(graph, operator)
    axes = graph.tensors[operator.inputs[1]].data
    if axes is None or sorted(int(a) % len(x.shape) for a in axes.ravel()) != [1, 2] or len(x.shape) != 4:
        raise UserError(f"{graph.path}: MEAN: only over height and width")
    count = x.shape[1] * x.shape[2]
    m, exponent = multiplier(float(x.scale[0]) / float(y.scale[0]))
    shift = min(count.bit_length() - 1, 32, 31 + exponent)
    p = _parameters("mean", x, y, fused, positions=count, channels=x.shape[3])
    return [Step("mean", p, y.index, multipliers=[((m << shift) // count, exponent - shift)])]


def _pair(graph: Graph, operator: Operator) -> tuple[Tensor, Tensor, Tensor, list[int]]:
    x, y, fused = _ends(graph, operator)
    other = graph.tensors[operator.inputs[1]]
    if other.shape != x.shape or other.data is not None or x.data is not None:
        raise UserError(f"{graph.path}: {operator.name}: only of two activations of one shape")
    kernel = {"ADD": "add", "MUL": "multiply"}[operator.name]
    return x, other, y, _parameters(kernel, x, y, fused, other_zero=_zero(other), count=x.size)


def _add(graph: Graph, operator: Operator) -> list[Step]:
    x, other, y, p = _pair(graph, operator)
    twice = 2 * max(float(x.scale[0]), float(other.scale[0]))
    real = [float(x.scale[0]) / twice, float(other.scale[0]) / twice, twice / (2**20 * float(y.scale[0]))]
    return [Step("add", p, y.index, multipliers=[multiplier(r) for r in real], other=other.index)]


def _mul(graph: Graph, operator: Operator) -> list[Step]:
    x, other, y, p = _pair(graph, operator)
    real = float(np.float32(x.scale[0]) * np.float32(other.scale[0])) / float(y.scale[0])
    return [Step("multiply", p, y.index, multipliers=[multiplier(real)], other=other.index)]


def _rescale(graph: Graph, operator: Operator) -> list[Step]:
    x, y, _ = _ends(graph, operator)
    real = float(x.scale[0]) / float(y.scale[0])
    p = _parameters("rescale", x, y, {"RELU": 1, "RELU6": 3}.get(operator.name, 0), count=x.size)
    return [Step("rescale", p, y.index, multipliers=[multiplier(real)])]


def _pad(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = _ends(graph, operator)
    around = graph.tensors[operator.inputs[1]].data
    if around is None or around.shape != (4, 2) or around[0].any() or around[3].any():
        raise UserError(f"{graph.path}: PAD: only of height and width, by constants")
    before = {"rows_before": int(around[1][0]), "columns_before": int(around[2][0])}
    return [Step("pad", _parameters("pad", x, y, fused, **_sizes(x, y), **before), y.index)]


def _concatenate(graph: Graph, operator: Operator) -> list[Step]:
    y = graph.tensors[operator.outputs[0]]
    axis = operator.options["axis"] % len(y.shape)
    runs = int(np.prod(y.shape[:axis], dtype=np.int64))
    steps, start = [], 0
    for n in operator.inputs:
        x = graph.tensors[n]
        if x.scale[0] != y.scale[0] or x.zero[0] != y.zero[0] or x.data is not None:
            raise UserError(f"{graph.path}: CONCATENATION: only of activations with the output's quantisation")
        size = x.size // runs
        p = _parameters("concatenate", x, y, 0, runs=runs, size=size, step=y.size // runs)
        steps.append(Step("concatenate", p, y.index, start=start))
        start += size
    return steps


def _logistic(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = _ends(graph, operator)
    table = []
    for q in range(-128, 128):
        value = np.float32(x.scale[0]) * np.float32(q - int(x.zero[0]))
        real = np.float32(1) / (np.float32(1) + np.float32(math.exp(min(-float(value), 88.7))))  # of more, float32 knows no exp
        z = float(np.float32(real / np.float32(y.scale[0])))
        table.append(min(max(int(math.copysign(math.floor(abs(z) + 0.5), z)) + int(y.zero[0]), -128), 127) + 128)
    return [Step("look_up", _parameters("look_up", x, y, fused, count=x.size), y.index, bytes(table))]


def _softmax(graph: Graph, operator: Operator) -> list[Step]:
    x, y, fused = _ends(graph, operator)
    if x.shape[-1] > 2047:
        raise UserError(f"{graph.path}: SOFTMAX over {x.shape[-1]} classes: 2047 at most")
    beta = float(operator.options["beta"])
    real = min(beta * float(x.scale[0]) * 2**26, 2.0**31 - 1)
    m, exponent = multiplier(real)
    limit = -math.floor(((1 << 5) - 1) * 2.0**26 / 2.0**exponent)
    table = []
    for difference in range(0, -256, -1):
        if difference < limit:
            table.append(0)
            continue
        table.append(exp_on_negative(doubling_high(difference << exponent, m)))
    p = _parameters("softmax", x, y, fused, classes=x.shape[-1], rows=x.size // x.shape[-1])
    return [Step("softmax", p, y.index, np.array(table, "<u4").tobytes())]


def doubling_high(x: int, y: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul of two int32: x y / 2^31 to nearest, halves up."""
    return x * y + 2**30 >> 31


def rounding_shift(x: int, n: int) -> int:
    """gemmlowp's RoundingDivideByPOT: halves away from zero."""
    return (abs(x) + (1 << n >> 1) >> n) * (1 if x >= 0 else -1)


def exp_on_negative(a: int) -> int:
    """gemmlowp's exp_on_negative_values: e^a for a <= 0 in Q5.26, as Q0.31."""
    high, shift = doubling_high, rounding_shift
    quarter = 1 << 24
    mask = quarter - 1
    part = (a & mask) - quarter
    x = (part << 5) + (1 << 28)  # in Q0.31, around -1/8
    x2 = high(x, x)
    x3 = high(x2, x)
    x4 = shift(high(x2, x2), 2)
    inner = shift(high(x4 + x3, 715827883) + x2, 1)
    result = 1895147668 + high(1895147668, x + inner)
    remainder = part - a
    for exponent, factor in zip((-2, -1, 0, 1, 2, 3, 4), (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        if remainder & 1 << 26 + exponent:
            result = high(result, factor)
    return 2147483647 if a == 0 else result


_MAKERS: dict[str, Callable[[Graph, Operator], list[Step]]] = {
    "FULLY_CONNECTED": _fully_connected,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _conv,
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "MEAN": _mean,
    "ADD": _add,
    "MUL": _mul,
    "QUANTIZE": _rescale,
    "RELU": _rescale,
    "RELU6": _rescale,
    "PAD": _pad,
    "CONCATENATION": _concatenate,
    "LOGISTIC": _logistic,
    "SOFTMAX": _softmax,
    **dict.fromkeys(SAME_BYTES, lambda graph, operator: []),
}


def place(made: Plan, step: Step) -> list[int]:
    """A step's parameters with the tensors' offsets in the arena."""
    p = list(step.p)
    p[INPUT] = made.offsets[p[INPUT]]
    p[OUTPUT] = made.offsets[p[OUTPUT]] + step.start
    if step.other is not None:
        p[SEVENTH] = made.offsets[step.other]
    return p
