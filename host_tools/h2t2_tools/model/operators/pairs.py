"""Operators on two inputs, number by number."""

from __future__ import annotations

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from .step import Step, ends, multiplier, parameters, zero_byte


def _pair(graph: Graph, operator: Operator) -> tuple[Tensor, Tensor, Tensor, list[int]]:
    x, y, fused = ends(graph, operator)
    other = graph.tensors[operator.inputs[1]]
    if other.shape != x.shape or other.data is not None or x.data is not None:
        raise UserError(f"{graph.path}: {operator.name}: only of two activations of one shape")
    kernel = {"ADD": "add", "MUL": "multiply"}[operator.name]
    return x, other, y, parameters(kernel, x, y, fused, other_zero=zero_byte(other), count=x.size)


def add(graph: Graph, operator: Operator) -> list[Step]:
    x, other, y, p = _pair(graph, operator)
    twice = 2 * max(float(x.scale[0]), float(other.scale[0]))
    real = [float(x.scale[0]) / twice, float(other.scale[0]) / twice, twice / (2**20 * float(y.scale[0]))]
    return [Step("add", p, y.index, multipliers=[multiplier(r) for r in real], other=other.index)]


def multiply(graph: Graph, operator: Operator) -> list[Step]:
    x, other, y, p = _pair(graph, operator)
    real = float(np.float32(x.scale[0]) * np.float32(other.scale[0])) / float(y.scale[0])
    return [Step("multiply", p, y.index, multipliers=[multiplier(real)], other=other.index)]
