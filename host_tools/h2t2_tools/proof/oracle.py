"""TFLite's reference kernels as the oracle of the integer interpreter, and the one place where they are wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.ldl.tflite import Interpreter, OpResolverType

from ..common.errors import UserError
from ..model.tflite import Graph, Operator, Tensor, load
from ..model.tflite_write import write


def name() -> str:
    """Which library's reference kernels are the oracle here."""
    return str(Interpreter.__module__).split(".")[0]


def interpreter(path: Path, layers: bool) -> Any:
    """The oracle on a model, ready to be asked; layers: it keeps every tensor. UserError where it cannot open the file."""
    graph = load(path)
    rewritten = stepwise(graph)
    content = path.read_bytes() if rewritten is graph else write(rewritten)
    try:
        made = Interpreter(
            model_content=content,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=layers,
            num_threads=1,
        )
        made.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{path}: {name()} cannot open this model: {' '.join(str(error).split())[:300]}") from None
    return made


def stepwise(graph: Graph) -> Graph:
    """The graph with every FULLY_CONNECTED over a sequence whose weights have a scale a channel written as a convolution.

    Of these the reference kernel (2.14) computes the first step only; NumPy and the optimised kernels compute them all. As a
    CONV_2D of one pixel over a picture of one row the reference kernels do, with the same multipliers and the same rounding.
    """
    tensors, operators = list(graph.tensors), []

    def put(tensor: Tensor, **changed: Any) -> int:
        tensors.append(replace(tensor, index=len(tensors), **changed))
        return len(tensors) - 1

    for operator in graph.operators:
        if operator.name != "FULLY_CONNECTED":
            operators.append(operator)
            continue
        x, w, y = (graph.tensors[n] for n in (operator.inputs[0], operator.inputs[1], operator.outputs[0]))
        outputs, inputs = w.shape
        if len(w.scale) == 1 or x.size == inputs:
            operators.append(operator)
            continue
        rows = x.size // inputs
        shapes = [(1, 1, rows, inputs), y.shape]
        wanted = [put(Tensor(0, "", (len(s),), "int32", np.array(s, np.int32), np.zeros(0), np.zeros(0), 0)) for s in shapes]
        wide, made = put(x, shape=shapes[0], name=""), put(y, shape=(1, 1, rows, outputs), name="")
        assert w.data is not None
        filters = put(w, shape=(outputs, 1, 1, inputs), data=w.data.reshape(outputs, 1, 1, inputs), axis=0, name="")
        bias = operator.inputs[2] if len(operator.inputs) > 2 else -1
        if bias < 0:  # which a convolution must have
            scale = x.scale[0] * w.scale
            bias = put(Tensor(0, "", (outputs,), "int32", np.zeros(outputs, np.int32), scale, np.zeros(outputs, np.int64), 0))
        window = {"padding": 1, "stride_w": 1, "stride_h": 1, "dilation_w": 1, "dilation_h": 1}
        conv = {**window, "fused": operator.options.get("fused", 0)}
        operators.append(Operator("RESHAPE", 1, (x.index, wanted[0]), (wide,), {}))
        operators.append(Operator("CONV_2D", 3, (wide, filters, bias), (made,), conv))
        operators.append(Operator("RESHAPE", 1, (made, wanted[1]), (y.index,), {}))
    if len(tensors) == len(graph.tensors):
        return graph
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))
