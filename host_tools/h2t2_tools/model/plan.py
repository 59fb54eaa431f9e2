"""An int8 .tflite as the steps a board takes: integer multipliers, bounds, tables, one arena with offsets by lifetime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from h2t2.ldl import bounds
from h2t2.ldl import steps as ldl_steps

from ..common.errors import UserError
from .dilated import joined
from .operators import INSTEAD, SAME_BYTES, SUPPORTED
from .operators.fixed_point import multiplier, multiply
from .operators.step import GREATEST, INPUT, LAYOUTS, LEAST, OUTPUT, SEVENTH, X_ZERO, Y_ZERO, Step
from .tflite import Graph, Operator
from .variables import ACCESS, resolved

LIMIT = 2**29  # of an accumulator, shifted left as its multiplier wants
SIGNED = ("RESIZE_BILINEAR", "BATCH_MATMUL", "UNIDIRECTIONAL_SEQUENCE_LSTM")
WEIGHTED = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D")
CODES = {name: code for code, name in enumerate(ldl_steps.NAMES.split()) if code}


@dataclass
class Plan:
    steps: list[Step]
    offsets: dict[int, int]  # of the tensors in the arena
    arena: int
    graph: Graph
    states: dict[int, bytes]  # of the tensors that are kept from one inference to the next: what they hold at first


def _reason(graph: Graph, operator: Operator) -> str | None:
    """Why a board cannot run an operator, or None."""
    if operator.name not in SUPPORTED:
        instead = INSTEAD.get(operator.name, "a Pi does (h2t2 node); docs/operators.md has those a board runs")
        return f"a board does not run it: {instead}"
    if operator.name in ACCESS and graph.tensors[operator.inputs[0]].dtype == "resource":
        return "no constants of int8 begin its variable: the model must assign them first (CALL_ONCE), quantised whole"
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
        cell = tensor.variable and tensor.dtype == "int16"
        if tensor.dtype not in ("int8", "uint8", "int32") and not shape_only and not cell:
            return f"tensor {tensor.name} is {tensor.dtype}: convert the model with full integer quantisation"
        if tensor.dtype in ("int8", "uint8") and not len(tensor.scale):
            return f"tensor {tensor.name} has no quantisation"
        if len(tensor.scale) and not tensor.scale.min() > 0:
            return f"tensor {tensor.name} has a scale of {tensor.scale.min():g}: scales are above 0"
        if SUPPORTED[operator.name].picture and tensor.data is None and (len(tensor.shape) != 4 or tensor.shape[0] != 1):
            return f"tensor {tensor.name} is of the shape {tensor.shape}: only one picture (1, height, width, channels) is run"
    if operator.name in SIGNED and graph.tensors[operator.inputs[0]].dtype == "uint8":
        return "of uint8 it computes otherwise: convert the model again, to int8 (h2t2 convert)"
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
        reasons.append(f"{len(graph.inputs)} inputs and {len(graph.outputs)} outputs: want one of each (h2t2 pick makes it so)")
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


def _signed(graph: Graph) -> Graph:
    """The graph with what is uint8 as int8, the same numbers, 128 lower: ends, or every tensor of an older model."""
    unsigned = [t.index for t in graph.tensors if t.dtype == "uint8" and len(t.scale)]
    tensors = [replace(t, dtype="int8", zero=t.zero - 128) if t.index in unsigned else t for t in graph.tensors]
    marked = [replace(o, options={**o.options, "unsigned": True}) for o in graph.operators]
    operators = [new if o.inputs[0] in unsigned else o for o, new in zip(graph.operators, marked)]
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))


def plan(graph: Graph) -> Plan:
    """The steps and the memory plan. UserError with every reason why there can be none."""
    try:
        return _plan(trimmed(graph))
    except (IndexError, KeyError, ValueError, TypeError, ArithmeticError, AssertionError) as error:
        # a stranger's file: shapes, options and indices that contradict each other
        raise UserError(f"{graph.path}: the model does not hold together ({type(error).__name__}: {error})") from None


def _plan(graph: Graph) -> Plan:
    graph, states = resolved(joined(graph))
    reasons = unsupported(graph)
    if reasons:
        raise UserError(f"{graph.path}: " + "; ".join(reasons))
    graph = _signed(graph)
    alias = {}
    for operator in graph.operators:
        if operator.name in SAME_BYTES:
            alias[operator.outputs[0]] = operator.inputs[0]
    steps: list[Step] = []
    shapes = _only_shapes(graph)
    for n, operator in enumerate(graph.operators):
        if operator.name in SAME_BYTES or n in shapes:
            continue
        try:
            for step in SUPPORTED[operator.name].make(graph, operator):
                _fold_dead(step)
                _check_range(graph, step)
                steps.append(step)
        except UserError as error:
            reasons.append(f"operator {n}, " + str(error).removeprefix(f"{graph.path}: "))
    if reasons:
        raise UserError(f"{graph.path}: " + "; ".join(reasons))
    for step in steps:
        if not all(-(2**30) <= value < 2**30 for value in step.p):
            raise ValueError(f"{step.kernel}: a parameter of {max(step.p, key=abs)}")
    root = _roots(alias)
    offsets, arena = _place(graph, steps, root, list(states))
    computed = {root(graph.inputs[0]), *(root(step.tensor) for step in steps), *states}
    read = {tensor for step in steps for tensor in step.reads}
    for tensor in {*read, graph.inputs[0], graph.outputs[0]}:
        if root(tensor) not in computed or tensor not in offsets:
            raise ValueError(f"tensor {tensor} is never computed")
    return Plan(steps, offsets, arena, graph, states)


def _roots(alias: dict[int, int]) -> Callable[[int], int]:
    def root(n: int) -> int:
        while n in alias:
            n = alias[n]
        return n

    return root


def _place(graph: Graph, steps: list[Step], root: Callable[[int], int], kept: list[int]) -> tuple[dict[int, int], int]:
    """Offsets by lifetime: the largest tensor first, each at the lowest place free all the time it lives; before them all
    those that are kept, one behind the other."""
    first: dict[int, int] = {root(graph.inputs[0]): -1, **dict.fromkeys(kept, -1)}
    last: dict[int, int] = {root(graph.outputs[0]): len(steps), **dict.fromkeys(kept, len(steps))}
    for n, step in enumerate(steps):
        for tensor in step.holds:
            last[root(tensor)] = max(n, last.get(root(tensor), n))
            first.setdefault(root(tensor), n)
        first.setdefault(root(step.p[OUTPUT]), n)
        last.setdefault(root(step.p[OUTPUT]), n)
    placed: list[tuple[int, int, int, int]] = []  # offset, size, first, last
    offsets: dict[int, int] = {}
    for tensor in sorted(first, key=lambda t: (t not in kept, -graph.tensors[t].size)):
        start, end = first[tensor], last.get(tensor, first[tensor])
        size = graph.tensors[tensor].bytes
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
    """UserError where what goes into a multiplier could leave what the board's arithmetic holds (LIMIT)."""
    if _weighted(step):
        assert step.bias is not None
        reaches = [255 * int(np.abs(w).sum()) + abs(int(b)) for w, b in zip(_by_channel(step), step.bias)]
    else:
        reaches = step.reach if isinstance(step.reach, list) else [step.reach] * len(step.multipliers)
    for n, (reach, (_, exponent)) in enumerate(zip(reaches, step.multipliers)):
        if reach << max(0, exponent) >= LIMIT:
            where = f"{graph.path}: {step.kernel}, {'channel' if _weighted(step) else 'multiplier'} {n}"
            remedy = "train with a smaller bias, or convert again (h2t2 convert)"
            raise UserError(f"{where}: an accumulator may reach {reach}, too large for a board: {remedy}")


def _by_channel(step: Step) -> np.ndarray:
    """Its weights, of int64: a row an output channel."""
    weights = np.frombuffer(step.weights, np.uint8).astype(np.int64) - _weights_zero(step)
    channels = len(step.bias) if step.bias is not None else 1
    return weights.reshape(-1, channels).T if step.kernel == "depthwise_conv_2d" else weights.reshape(channels, -1)


def _weighted(step: Step) -> bool:
    """Whether it is a layer of one sum a channel: dense, or a convolution."""
    return step.kernel in bounds.WEIGHTED


def _weights_zero(step: Step) -> int:
    return step.p[LAYOUTS[step.kernel].index("w_zero")]


def _fold_dead(step: Step) -> None:
    """Make the channels constant whose output is one number whatever comes in, and whose accumulators are too large: what
    training leaves of a dead one, often with a bias of 2^30."""
    if not _weighted(step) or step.bias is None:
        return
    weights, zero = _by_channel(step), step.p[X_ZERO]
    folded = False
    for n, w in enumerate(weights):
        m, exponent = step.multipliers[n]
        bias = int(step.bias[n])
        if 255 * int(np.abs(w).sum()) + abs(bias) << max(0, exponent) < LIMIT:
            continue
        up, down = int(w[w > 0].sum()), int(w[w < 0].sum())
        ends = bias + down * (255 - zero) - up * zero, bias + up * (255 - zero) - down * zero
        made = {min(max(multiply(acc, m, exponent) + step.p[Y_ZERO], step.p[LEAST]), step.p[GREATEST]) for acc in ends}
        if len(made) > 1 or not all(-(2**31) <= acc << max(0, exponent) < 2**31 for acc in ends):
            continue  # beyond, TFLite's own sum overflows
        weights[n], step.bias[n], step.multipliers[n] = 0, made.pop() - step.p[Y_ZERO], multiplier(1.0)
        folded = True
    if folded:
        rows = weights.T if step.kernel == "depthwise_conv_2d" else weights
        step.weights = (rows + _weights_zero(step)).astype(np.uint8).tobytes()


def place(made: Plan, step: Step) -> list[int]:
    """A step's parameters with the tensors' offsets in the arena."""
    p = list(step.p)
    p[INPUT] = made.offsets[p[INPUT]]
    p[OUTPUT] = made.offsets[p[OUTPUT]] + step.start
    if step.other is not None:
        p[SEVENTH] = made.offsets[step.other]
    if step.scratch is not None:
        name, tensor = step.scratch
        p[LAYOUTS[step.kernel].index(name)] = made.offsets[tensor]
    return p
