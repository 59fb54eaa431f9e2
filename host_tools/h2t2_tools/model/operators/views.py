"""Operators that only move bytes."""

from __future__ import annotations

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator
from .step import Step, parameters


def concatenate(graph: Graph, operator: Operator) -> list[Step]:
    y = graph.tensors[operator.outputs[0]]
    axis = operator.options["axis"] % len(y.shape)
    runs = int(np.prod(y.shape[:axis], dtype=np.int64))
    steps, start = [], 0
    for n in operator.inputs:
        x = graph.tensors[n]
        if x.scale[0] != y.scale[0] or x.zero[0] != y.zero[0] or x.data is not None:
            raise UserError(f"{graph.path}: CONCATENATION: only of activations with the output's quantisation")
        size = x.size // runs
        p = parameters("concatenate", x, y, 0, runs=runs, size=size, step=y.size // runs)
        steps.append(Step("concatenate", p, y.index, start=start))
        start += size
    return steps
