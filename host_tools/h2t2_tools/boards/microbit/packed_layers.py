"""Packs a bundle of dense layers for the micro:bit, where firmware/boards/microbit/ldl.py reads it."""

from collections.abc import Sequence
from struct import pack

from h2t2.ldl.bundle import Int8Model

from ...common.dense_models import dense_only
from ...common.errors import UserError

NO_CLASS = 255  # instead of the opposite class, if no softmax follows
MAX_TOTAL = 1 << 29  # limit of a sum of products
DENSE = "FULLY_CONNECTED layers and a LOGISTIC or SOFTMAX behind the last"


def pack_model(model: Int8Model) -> bytes:
    """Return the file that ldl.load() reads. Raise UserError if the model is not dense_only()."""
    if not dense_only(model):
        raise UserError(f"the micro:bit runs {DENSE}, for two classes; h2t2 inspect shows this model's operators")
    layers = [(p, k) for step, p, k in model.steps if k is not None and step.__name__ == "fully_connected"]
    softmax = model.steps[-1][0].__name__ == "softmax"
    content = bytes([len(layers), model.event, 1 - model.event if softmax else NO_CLASS]) + pack(
        "<15h", *_edges(model, softmax)
    )
    for p, k in layers:
        _, _, zero, offset, low, high, place, inputs, outputs, weight_zero = p
        bias, limbs, shifts = map(bytes, k)
        weights = bytes(model.blob[place : place + inputs * outputs])
        biases = memoryview(bias).cast("i")
        content += pack("<6H", inputs, outputs, offset, low, high, weight_zero)
        content += pack(f"<{outputs}i", *_with_zero_point(biases, weights, zero, weight_zero))
        content += limbs + shifts + weights
    return content


def _with_zero_point(biases: Sequence[int], weights: bytes, zero: int, weight_zero: int) -> list[int]:
    """Fold the zero point of the inputs into the biases. Raise UserError if a sum could reach MAX_TOTAL."""
    inputs = len(weights) // len(biases)
    rows = [[weight - weight_zero for weight in weights[o * inputs : (o + 1) * inputs]] for o in range(len(biases))]
    shifted = [bias - zero * sum(row) for bias, row in zip(biases, rows)]
    if any(abs(bias) + 255 * sum(map(abs, row)) >= MAX_TOTAL for bias, row in zip(shifted, rows)):
        raise UserError(f"a layer of {inputs} inputs is too large for the micro:bit's integers")
    return shifted


def _edges(model: Int8Model, softmax: bool) -> list[int]:
    """Return the smallest score of each bin 1 to 15.

    A score is the event's output of the last layer; before a softmax, the difference from the other output.

    Raises:
        UserError: A larger score has a smaller bin.
    """
    scores = range(-255 if softmax else 0, 256)
    bins = [_bin_of(model, max(score, 0), max(-score, 0)) for score in scores]
    if bins != sorted(bins):
        raise UserError("the micro:bit needs a local model whose score never falls when the output of its last layer rises")
    return [next((score for score, k in zip(scores, bins) if k >= edge), scores[-1] + 1) for edge in range(1, 16)]


def _bin_of(model: Int8Model, event: int, opposite: int) -> int:
    """Return the bin of two outputs (bytes) of the last layer."""
    step, p, k = model.steps[-1]
    arena = bytearray(len(model.arena))
    place = p[1] if step.__name__ == "fully_connected" else p[0]
    if model.classes > 1:
        arena[place + 1 - model.event] = opposite
    arena[place + model.event] = event
    if step.__name__ != "fully_connected":
        step(arena, model.blob, p, k)
    return model.level(arena[model.output + model.event] - 128) >> 4
