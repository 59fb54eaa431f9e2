"""TFLite's reference kernels, corrected where they are wrong: the oracle of the integer interpreter."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.tflite_library import Interpreter
from h2t2.cpython.tflite_trial import open_interpreter, try_first

from ..common.errors import UserError
from ..model.operators.pooling import reduced
from ..model.tflite import TREES, Graph, Operator, Tensor, load
from ..model.tflite_write import write


def name() -> str:
    """Return the library whose reference kernels are the oracle on this machine."""
    return str(Interpreter.__module__).split(".")[0]


def interpreter(path: Path, judged: list[int]) -> Any:
    """Open the oracle on a model.

    Args:
        path: The .tflite.
        judged: Tensors to read after an inference. They become outputs of the model, because operators may overwrite the memory
            of other tensors (ADD, SOFTMAX and others work in place, also behind a RESHAPE).

    Raises:
        UserError: The library cannot open the file, or it holds decision trees.
    """
    graph = load(path)
    if TREES in {operator.name for operator in graph.operators}:
        raise UserError(f"{path}: decision trees: TFLite has none to compare with; docs/trees.md says what they are checked by")
    rewritten = stepwise(graph)
    outputs = tuple(dict.fromkeys((*graph.outputs, *judged)))
    same = rewritten is graph and outputs == graph.outputs
    content = path.read_bytes() if same else write(replace(rewritten, outputs=outputs))
    try:
        try_first(content, "BUILTIN_REF")
        return open_interpreter(content, "BUILTIN_REF")
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{path}: {name()} cannot open this model: {' '.join(str(error).split())[:300]}") from None


def stepwise(graph: Graph) -> Graph:
    """Rewrite operators whose reference kernels are wrong, or differ between versions, as equivalent ones.

    LiteRT's FULLY_CONNECTED rounds once, but tflite-runtime 2.14 and boards round twice. It becomes a CONV_2D of one pixel,
    which rounds twice everywhere. To keep its multiplier the same double, the input's scale becomes the float32 product of both
    scales, and the weights' scale becomes 1.

    A FULLY_CONNECTED over a sequence whose weights have a scale for each channel becomes a CONV_2D of one pixel over a picture
    of one row, with the same multipliers and rounding. (Version 2.14 computes only the first step, and of a sequence of one
    step only the first number; NumPy and the optimised kernels compute all of them.)

    A SUM becomes a DEPTHWISE_CONV_2D by ones, because 2.14 and LiteRT 2 add up in int8, which overflows. The optimised kernels
    do not overflow, but multiply in float32 and may round a half to the other side.
    """
    rewritten = _Rewritten(list(graph.tensors), [])
    for operator in graph.operators:
        if operator.name == "SUM":
            _sum(rewritten, graph, operator)
        elif operator.name == "FULLY_CONNECTED" and (name() == "ai_edge_litert" or _over_a_sequence(graph, operator)):
            _dense(rewritten, graph, operator)
        else:
            rewritten.operators.append(operator)
    if len(rewritten.tensors) == len(graph.tensors):
        return graph
    return replace(graph, tensors=tuple(rewritten.tensors), operators=tuple(rewritten.operators))


@dataclass
class _Rewritten:
    tensors: list[Tensor]
    operators: list[Operator]

    def add(self, tensor: Tensor, **changed: Any) -> int:
        self.tensors.append(replace(tensor, index=len(self.tensors), name=f"h2t2:{len(self.tensors)}", **changed))
        return len(self.tensors) - 1

    def constant(self, data: np.ndarray, scale: np.ndarray) -> int:
        zero = np.zeros(len(scale), np.int64)
        return self.add(Tensor(0, "", data.shape, data.dtype.name, data, scale, zero))

    def add_convolution(
        self, name: str, ends: tuple[Tensor, Tensor], shapes: Any, weights: tuple[int, int], **options: int
    ) -> None:
        """Append x as a picture of shapes[0], convolved to one of shapes[1], as y. weights: filters and bias."""
        x, y = ends
        as_picture, as_y = (self.constant(np.array(s, np.int32), np.zeros(0)) for s in (shapes[0], y.shape))
        picture, convolved_picture = self.add(x, shape=shapes[0]), self.add(y, shape=shapes[1])
        window = {"padding": 1, "stride_w": 1, "stride_h": 1, "dilation_w": 1, "dilation_h": 1, "fused": 0}
        self.operators += [
            Operator("RESHAPE", 1, (x.index, as_picture), (picture,), {}),
            Operator(name, 3, (picture, *weights), (convolved_picture,), {**window, **options}),
            Operator("RESHAPE", 1, (convolved_picture, as_y), (y.index,), {}),
        ]


def _over_a_sequence(graph: Graph, operator: Operator) -> bool:
    w, y = graph.tensors[operator.inputs[1]], graph.tensors[operator.outputs[0]]
    return len(w.scale) > 1 and (len(y.shape) > 2 or y.size != w.shape[0])


def _dense(rewritten: _Rewritten, graph: Graph, operator: Operator) -> None:
    x, w, y = (graph.tensors[n] for n in (operator.inputs[0], operator.inputs[1], operator.outputs[0]))
    outputs, inputs = w.shape
    rows = x.size // inputs
    assert w.data is not None
    scale, picture = w.scale, x
    if len(scale) == 1:
        picture = replace(x, scale=x.scale[:1].astype(np.float32) * scale.astype(np.float32))
        scale = np.ones(1, np.float32)
    data = w.data.reshape(outputs, 1, 1, inputs)
    filters = rewritten.add(w, shape=data.shape, data=data, axis=0, scale=scale)
    bias = operator.inputs[2] if len(operator.inputs) > 2 else -1
    values = np.zeros(outputs, np.int32) if bias < 0 else graph.tensors[bias].data  # a convolution must have a bias
    assert values is not None
    sums = rewritten.constant(values, picture.scale[0] * scale)
    shapes = (1, 1, rows, inputs), (1, 1, rows, outputs)
    rewritten.add_convolution("CONV_2D", (picture, y), shapes, (filters, sums), fused=operator.options.get("fused", 0))


def _sum(rewritten: _Rewritten, graph: Graph, operator: Operator) -> None:
    x, y = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    rows, count, channels = reduced(graph, operator)
    unit_filters = rewritten.constant(np.ones((1, count, 1, channels), x.dtype), np.ones(1))
    bias = rewritten.constant(np.zeros(channels, np.int32), x.scale)
    shapes = (rows, count, 1, channels), (rows, 1, 1, channels)
    rewritten.add_convolution("DEPTHWISE_CONV_2D", (x, y), shapes, (unit_filters, bias), multiplier=1)
