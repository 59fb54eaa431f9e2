"""The range of what the last LOGISTIC or SOFTMAX takes, for samples unlike those that calibrated the model."""

import numpy as np

from ..operators import SAME_BYTES
from ..tflite import Graph, Operator, read
from ..tflite_edit import with_constants, with_quantisation

SMALLEST = 6.0  # its logistic is 255/256, rounded
LARGEST = 8.0  # of a LOGISTIC: a score within half of an 8-bit step of 0 or 1
# they compute a product or a sum, whose range is free; other operators want the range of their inputs
FREE = "FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "SUB", "MUL"

UNSURE, FEWEST_DOUBTFUL = 0.02, 5  # scores between this and 1 minus this tell a difference of logits, if there are so many
BEHIND = *SAME_BYTES, "AVERAGE_POOL_2D"  # may stand between the scores and the output


def opposed(content: bytes) -> bytes:
    """The float .tflite whose logits have a sum of 0, where a dense layer makes them for a SOFTMAX: two are opposites.

    Of a SOFTMAX's numbers only the differences count. What all of them have in common would take int8's steps.
    """
    graph = read(content)
    end, _, layer = _logits(graph, "float32")
    if not end or not layer or end.name != "SOFTMAX" or layer.name != "FULLY_CONNECTED" or not are_own(graph, layer):
        return content
    numbers = {n: np.asarray(graph.tensors[n].data) for n in layer.inputs[1:]}
    return with_constants(content, {n: (data - data.mean(0, dtype=data.dtype), np.zeros(0)) for n, data in numbers.items()})


def are_opposed(graph: Graph, tensor: int) -> bool:
    """Whether opposed() made a float tensor's numbers."""
    layer = next((o for o in graph.operators if tensor in o.outputs and o.name == "FULLY_CONNECTED"), None)
    numbers = [graph.tensors[n].data for n in layer.inputs[1:]] if layer else [None]
    return all(data is not None and np.allclose(data.sum(0), 0, atol=1e-5) for data in numbers)


def are_own(graph: Graph, operator: Operator) -> bool:
    """Whether an operator's weights and bias are constants that no other reads."""
    constants = [n for n in operator.inputs[1:3] if n >= 0 and graph.tensors[n].data is not None]
    return [sum(list(o.inputs).count(n) for o in graph.operators) for n in constants] == [1, 1]


def reach_both_signs(content: bytes) -> bytes:
    """The int8 .tflite whose logits reach from -m to m where the calibration samples gave a range of one sign, or nearly.

    Such are samples of one class. With their range every score would be on one side: samples of the other class would get the
    class of those that were seen. m is at least SMALLEST, and half of it for a SOFTMAX.
    """
    graph = read(content)
    end, tensors, _ = _logits(graph)
    if not end:
        return content
    scale, zero = graph.tensors[tensors[0]].quantisation
    low, high = scale * (128 + zero), scale * (127 - zero)
    if min(low, high) >= max(low, high) / 2 and not (end.name == "LOGISTIC" and max(low, high) > LARGEST):
        return content
    # of a SOFTMAX's numbers the differences count
    reach = min(max(SMALLEST, low, high), LARGEST) if end.name == "LOGISTIC" else max(SMALLEST / 2, low, high)
    return with_quantisation(content, dict.fromkeys(tensors, (float(np.float32(reach / 127)), 0)))


def centred(content: bytes, exact: np.ndarray, rounded: np.ndarray) -> bytes:
    """The int8 .tflite whose logits are on average those of the float model.

    Layers before them round to one side, since ranges begin at 0 behind a ReLU. The last layer's bias takes the difference.

    Args:
        content: The .tflite.
        exact, rounded: Scores (n, classes) of the calibration samples, of the float model and of this one.
    """
    graph = read(content)
    end, _, layer = _logits(graph)
    biases = [graph.tensors[n] for n in layer.inputs[2:] if n >= 0] if layer and layer.name == "FULLY_CONNECTED" else []
    if not end or not biases or biases[0].data is None or biases[0].size != exact.shape[1]:
        return content
    doubtful = (exact > UNSURE).all(1) & (exact < 1 - UNSURE).all(1)
    if doubtful.sum() < FEWEST_DOUBTFUL:
        return content
    real, found = (np.clip(scores[doubtful], 1 / 256, 255 / 256) for scores in (exact, rounded))
    if end.name == "LOGISTIC":
        real, found = real / (1 - real), found / (1 - found)
    difference = (np.log(found) - np.log(real)).mean(0) / biases[0].scale
    moved = (biases[0].data - np.round(difference).astype(np.int32).reshape(biases[0].shape)).astype(np.int32)
    return with_constants(content, {biases[0].index: (moved, biases[0].scale)})


def _logits(graph: Graph, dtype: str = "int8") -> tuple[Operator | None, list[int], Operator | None]:
    """The LOGISTIC or SOFTMAX that gives the scores, the tensors that hold its input, the last as its layer makes it, and this.

    (None, [], None) where another operator gives the scores, reads the logits, or sets their range.
    """
    makers = {n: operator for operator in graph.operators for n in operator.outputs}
    n = graph.outputs[0]
    while n in makers and makers[n].name in BEHIND:
        n = makers[n].inputs[0]
    end = makers.get(n)
    if end is None or end.name not in ("LOGISTIC", "SOFTMAX"):
        return None, [], None
    tensors = [end.inputs[0]]
    while tensors[-1] in makers and makers[tensors[-1]].name in SAME_BYTES:
        tensors.append(makers[tensors[-1]].inputs[0])
    alone = all(sum(list(o.inputs).count(n) for o in graph.operators) == 1 and n not in graph.outputs for n in tensors)
    layer = makers.get(tensors[-1])
    free = layer is not None and layer.name in FREE and not layer.options.get("fused")
    return (end, tensors, layer) if alone and free and graph.tensors[tensors[-1]].dtype == dtype else (None, [], None)
