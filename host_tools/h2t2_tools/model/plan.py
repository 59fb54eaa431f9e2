"""An int8 .tflite as the steps a board takes: integer multipliers, bounds, tables, one arena with offsets by lifetime."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from h2t2.cpython.tflite import FEATURES
from h2t2.ldl import bounds
from h2t2.ldl import steps as ldl_steps

from ..common.errors import UserError, first_few
from .dilated import merge_dilated
from .operators import INSTEAD, SAME_BYTES, SUPPORTED
from .operators.step import HIGH, INPUT, LOW, OUTPUT, SEVENTH, X_ZERO, Y_ZERO, Step
from .operators.tflite_fixed_point import multiplier, multiply
from .tflite import BYTES, Graph, Operator
from .transposed import with_convolutions
from .variables import ACCESS, with_state

LIMIT = 2**29  # of an accumulator after the left shift of its multiplier
SIGNED = ("BATCH_MATMUL", "LOG_SOFTMAX", "UNIDIRECTIONAL_SEQUENCE_LSTM")
AT_THE_END = ("DEQUANTIZE", "ARG_MAX")  # behind the scores, which are the board's output
WEIGHTED = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D")
CODES = {name: code for code, name in enumerate(ldl_steps.NAMES.split()) if code}


class NotForBoards(UserError):
    """No board can run a model.

    Attributes:
        reasons: All of them; the text has a few.
    """

    def __init__(self, path: str, reasons: list[str]) -> None:
        super().__init__(f"{path}: {first_few(reasons)}")
        self.reasons = reasons


@dataclass
class Plan:
    """The steps that a board takes, and where its tensors lie.

    Attributes:
        steps: In order.
        offsets: Tensor -> its offset in the arena.
        arena: Bytes of the arena.
        graph: The graph that the steps compute.
        states: Tensor that is kept from one inference to the next -> its bytes at first.
        features: The tensor of features for a head, or -1.
    """

    steps: list[Step]
    offsets: dict[int, int]
    arena: int
    graph: Graph
    states: dict[int, bytes]
    features: int = -1


def _reason(graph: Graph, operator: Operator) -> str | None:
    """Why a board cannot run an operator, or None."""
    if operator.name not in SUPPORTED:
        instead = INSTEAD.get(
            operator.custom or operator.name,
            INSTEAD.get(operator.name, "a Pi does (h2t2 node); docs/operators.md has those a board runs"),
        )
        return f"a board does not run it: {instead}"
    if operator.name in ACCESS and graph.tensors[operator.inputs[0]].dtype == "resource":
        return "no constants of int8 begin its variable: the model must assign them first (CALL_ONCE), quantised whole"
    reasons = [_weights_reason(graph, operator)] if operator.name in WEIGHTED else []
    reasons += [_tensor_reason(graph, operator, n) for n in (*operator.inputs, *operator.outputs) if n >= 0]
    if operator.name in SIGNED and graph.tensors[operator.inputs[0]].dtype == "uint8":
        reasons.append("of uint8 it computes otherwise: convert the model again, to int8 (h2t2 convert)")
    return next((reason for reason in reasons if reason), None)


def _tensor_reason(graph: Graph, operator: Operator, n: int) -> str | None:
    """Why a board cannot run an operator with this tensor, or None."""
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
    return None


def _weights_reason(graph: Graph, operator: Operator) -> str | None:
    """Why a board cannot run an operator with its weights and bias, or None."""
    w = graph.tensors[operator.inputs[1]]
    if w.dtype not in BYTES:
        return f"its weights, tensor {w.name}, are {w.dtype}: convert the model to int8 weights with full integer quantisation"
    if w.data is None:
        return f"its weights, tensor {w.name}, are computed by the model: only constants are run"
    if w.dtype == "int8" and np.any(w.zero):
        return f"its weights, tensor {w.name}, have a zero point of {int(w.zero[np.flatnonzero(w.zero)[0]])}: only 0 is run"
    n = operator.inputs[2] if len(operator.inputs) > 2 else -1
    if n >= 0 and graph.tensors[n].dtype != "int32":
        bias = graph.tensors[n]
        return f"its bias, tensor {bias.name}, is {bias.dtype}, not int32: convert the model with full integer quantisation"
    return None


def _shape_operators(graph: Graph) -> set[int]:
    """Numbers of the operators that only compute the shape of a RESHAPE, which is known already."""
    shapes: set[int] = set()
    for n in reversed(range(len(graph.operators))):
        uses = [
            (user.name == "RESHAPE" and place > 0) or m in shapes
            for m, user in enumerate(graph.operators)
            for place, tensor in enumerate(user.inputs)
            if tensor in graph.operators[n].outputs
        ]
        if uses and all(uses) and graph.operators[n].name in ("SHAPE", "STRIDED_SLICE", "PACK"):
            shapes.add(n)
    return shapes


def unsupported(graph: Graph) -> list[str]:
    """Every reason why a board cannot run the graph."""
    reasons = []
    shapes = _shape_operators(graph)
    for n, operator in enumerate(graph.operators):
        reason = None if n in shapes else _reason(graph, operator)
        if reason:
            reasons.append(f"operator {n}, {operator.label}: {reason}")
    if len(graph.inputs) != 1 or len(graph.outputs) != (1 if features_tensor(graph) < 0 else 2):
        reasons.append(f"{len(graph.inputs)} inputs and {len(graph.outputs)} outputs: want one of each (h2t2 inspect --pick)")
    return reasons


def features_tensor(graph: Graph) -> int:
    """The tensor of features for a head, which `h2t2 pair --features` adds as the second output; -1: there is none."""
    features = len(graph.outputs) == 2 and graph.tensors[graph.outputs[1]].name == FEATURES
    return graph.outputs[1] if features else -1


def trimmed(graph: Graph) -> Graph:
    """The graph without a QUANTIZE of its float input, and without a DEQUANTIZE or an ARG_MAX of its output.

    The int8 tensors between them are the board's ends: a policy reads the scores that an ARG_MAX would compare.
    """
    operators = list(graph.operators)
    inputs, outputs = graph.inputs, graph.outputs
    features = outputs[1:] if features_tensor(graph) >= 0 else ()
    outputs = outputs[:1] if features else outputs
    first = [o for o in operators if inputs and inputs[0] in o.inputs]
    if len(inputs) == len(first) == 1 and first[0].name == "QUANTIZE" and graph.tensors[inputs[0]].dtype == "float32":
        operators.remove(first[0])
        inputs = first[0].outputs
    last = _last(operators, outputs)
    while last and last.name in AT_THE_END:
        operators.remove(last)
        outputs = last.inputs[:1]
        last = _last(operators, outputs)
    return replace(graph, operators=tuple(operators), inputs=inputs, outputs=(*outputs, *features))


def _last(operators: list[Operator], outputs: tuple[int, ...]) -> Operator | None:
    """The operator that computes the only output, or None."""
    return next((o for o in operators if outputs[0] in o.outputs), None) if len(outputs) == 1 else None


def _signed(graph: Graph) -> Graph:
    """The graph with uint8 tensors as int8: the same numbers, 128 lower. Ends are uint8, or all tensors of an older model."""
    unsigned = [t.index for t in graph.tensors if t.dtype == "uint8" and len(t.scale)]
    tensors = [replace(t, dtype="int8", zero=t.zero - 128) if t.index in unsigned else t for t in graph.tensors]
    marked = [replace(o, options={**o.options, "unsigned": True}) for o in graph.operators]
    operators = [new if o.inputs[0] in unsigned else o for o, new in zip(graph.operators, marked)]
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))


def plan(graph: Graph) -> Plan:
    """Plan the steps and the memory of a graph. UserError with every reason why a board cannot run it."""
    try:
        return _plan(trimmed(graph))
    except (IndexError, KeyError, ValueError, TypeError, ArithmeticError, AssertionError) as error:
        # shapes, options and indices of a foreign file may contradict each other
        raise UserError(f"{graph.path}: the model does not hold together ({type(error).__name__}: {error})") from None


def _plan(graph: Graph) -> Plan:
    graph, states = with_state(with_convolutions(merge_dilated(graph)))
    reasons = unsupported(graph)
    if reasons:
        raise NotForBoards(graph.path, reasons)
    graph = _signed(graph)
    steps = _steps(graph)
    root = _roots({o.outputs[0]: o.inputs[0] for o in graph.operators if o.name in SAME_BYTES})
    offsets, arena = _place(graph, steps, root, list(states))
    computed = {root(graph.inputs[0]), *(root(step.tensor) for step in steps), *states}
    read = {tensor for step in steps for tensor in step.reads}
    for tensor in {*read, graph.inputs[0], *graph.outputs}:
        if root(tensor) not in computed or tensor not in offsets:
            raise ValueError(f"tensor {tensor} is never computed")
    return Plan(steps, offsets, arena, graph, states, features_tensor(graph))


def _steps(graph: Graph) -> list[Step]:
    """The steps of all operators. UserError with every reason why a board cannot run one."""
    steps: list[Step] = []
    reasons = []
    shapes = _shape_operators(graph)
    for n, operator in enumerate(graph.operators):
        if operator.name in SAME_BYTES or n in shapes:
            continue
        try:
            for step in SUPPORTED[operator.name].steps(graph, operator):
                _fold_dead(step)
                _check_range(graph, step)
                steps.append(step)
        except UserError as error:
            reasons.append(f"operator {n}, " + str(error).removeprefix(f"{graph.path}: "))
    if reasons:
        raise NotForBoards(graph.path, reasons)
    for step in steps:
        if not all(-(2**30) <= value < 2**30 for value in step.p):
            raise ValueError(f"{step.kernel}: a parameter of {max(step.p, key=abs)}")
    return steps


def _roots(alias: dict[int, int]) -> Callable[[int], int]:
    def root(n: int) -> int:
        while n in alias:
            n = alias[n]
        return n

    return root


def _place(graph: Graph, steps: list[Step], root: Callable[[int], int], states: list[int]) -> tuple[dict[int, int], int]:
    """Offsets by lifetime, and bytes of the arena.

    The states come first, one behind the other. Then the largest tensor comes first; each takes the lowest place that is free
    all the time it lives.
    """
    first: dict[int, int] = {root(graph.inputs[0]): -1, **dict.fromkeys(states, -1)}
    last: dict[int, int] = {**{root(output): len(steps) for output in graph.outputs}, **dict.fromkeys(states, len(steps))}
    for n, step in enumerate(steps):
        for tensor in step.holds:
            last[root(tensor)] = max(n, last.get(root(tensor), n))
            first.setdefault(root(tensor), n)
        first.setdefault(root(step.p[OUTPUT]), n)
        last.setdefault(root(step.p[OUTPUT]), n)
    spans: list[tuple[int, int, int, int]] = []  # offset, end, first, last
    offsets: dict[int, int] = {}
    for tensor in sorted(first, key=lambda t: (t not in states, -graph.tensors[t].size)):
        start, finish = first[tensor], last.get(tensor, first[tensor])
        size = graph.tensors[tensor].bytes
        at = 0
        for offset, end, begins, ends in sorted(spans):
            if begins <= finish and start <= ends and at + size > offset and at < end:
                at = end
        spans.append((at, at + size, start, finish))
        offsets[tensor] = at
    for tensor in range(len(graph.tensors)):
        if root(tensor) in offsets:
            offsets[tensor] = offsets[root(tensor)]
    return offsets, max(end for _, end, *_ in spans)


def _check_range(graph: Graph, step: Step) -> None:
    """UserError where an accumulator could exceed LIMIT, which the board's arithmetic holds."""
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
    """A step's weights less their zero point, int64 (channels, taps)."""
    weights = np.frombuffer(step.weights, np.uint8).astype(np.int64) - step.p[step.parameter("w_zero")]
    channels = len(step.bias) if step.bias is not None else 1
    return weights.reshape(-1, channels).T if step.kernel == "depthwise_conv_2d" else weights.reshape(channels, -1)


def _weighted(step: Step) -> bool:
    """Whether it is a layer of one sum a channel: dense, or a convolution."""
    return step.kernel in bounds.WEIGHTED


def _fold_dead(step: Step) -> None:
    """Make channels constant whose output is one number for every input, and whose accumulators are too large.

    Training leaves such a dead channel, often with a bias of 2^30.
    """
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
        outputs = {min(max(multiply(acc, m, exponent) + step.p[Y_ZERO], step.p[LOW]), step.p[HIGH]) for acc in ends}
        if len(outputs) > 1 or m and not all(-(2**31) <= acc << max(0, exponent) < 2**31 for acc in ends):
            continue  # beyond, TFLite's own sum overflows, which a multiplier of 0 makes 0 again
        weights[n], step.bias[n], step.multipliers[n] = 0, outputs.pop() - step.p[Y_ZERO], multiplier(1.0)
        folded = True
    if folded:
        rows = weights.T if step.kernel == "depthwise_conv_2d" else weights
        step.weights = (rows + step.p[step.parameter("w_zero")]).astype(np.uint8).tobytes()


def place(plan: Plan, step: Step) -> list[int]:
    """A step's parameters, with offsets in the arena in place of tensors."""
    p = list(step.p)
    p[INPUT] = plan.offsets[p[INPUT]]
    p[OUTPUT] = plan.offsets[p[OUTPUT]] + step.start
    if step.second is not None:
        p[SEVENTH] = plan.offsets[step.second]
    if step.scratch is not None:
        name, tensor = step.scratch
        p[step.parameter(name)] = plan.offsets[tensor]
    return p
