"""Bounds of the tensors that functions read: beyond them a function is constant, to less than a step of its int8 output."""

import math

from ..operators import SAME_BYTES
from ..tflite import Graph
from .logits import LARGEST, are_opposed

NONE = -math.inf, math.inf
# operator -> (lowest, highest) number whose function differs from that of every number beyond
CONSTANT_BEYOND = {
    "LOGISTIC": (-LARGEST, LARGEST), "TANH": (-4.0, 4.0), "GELU": (-4.0, math.inf), "HARD_SWISH": (-3.0, math.inf),
    "RELU": (0.0, math.inf), "RELU6": (0.0, 6.0),
}  # fmt: skip
VIEWS = *SAME_BYTES, "TRANSPOSE", "SLICE", "STRIDED_SLICE", "SPLIT"  # their outputs have the scale of what they read


def bounds(graph: Graph, tensor: int) -> tuple[float, float]:
    """(lowest, highest) number of a tensor that its readers tell from those beyond."""
    readers = [operator for operator in graph.operators if tensor in operator.inputs]
    gates = [operator.outputs[0] for operator in readers if operator.name == "LOGISTIC"]
    found = []
    for reader in readers:
        if reader.name in VIEWS:
            found += [bounds(graph, output) for output in reader.outputs]
        elif reader.name == "MUL" and any(gate in reader.inputs for gate in gates):
            found.append((-LARGEST, math.inf))  # x times its logistic is nearly 0 below
        elif reader.name == "SOFTMAX" and graph.tensors[tensor].shape[-1] == 2 and are_opposed(graph, tensor):
            found.append((-LARGEST / 2, LARGEST / 2))
        else:
            found.append(CONSTANT_BEYOND.get(reader.name, NONE))
    if not found or tensor in graph.outputs:
        return NONE
    return min(low for low, _ in found), max(high for _, high in found)
