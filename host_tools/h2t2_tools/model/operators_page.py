"""docs/operators.md, from the code: `make pages`."""

from __future__ import annotations

from .footprint import MACHINE_CODE
from .operators import INSTEAD, SUPPORTED
from .plan import SIGNED

OPENING = """# Operators

This page lists the operators of a quantised .tflite that the integer interpreter runs; `h2t2 inspect` checks a model against
it, and `h2t2 bundle` prepares the model for a board. Activations are int8, each tensor with a scale and a zero point.
Weights are int8 around zero, with one scale or a scale for each channel. Biases are int32. Older converters wrote uint8
everywhere, with weights around a zero point; the interpreter runs these models too. Input and output may be int8, uint8 or
float (QUANTIZE and DEQUANTIZE stay outside the bundle, because a node quantises). A model has one input and one output;
`h2t2 pick` chooses them. It may keep state in variables.

Each layer gives the same bytes as TFLite's reference kernels; `h2t2 ldl-check MODEL --layers` compares them. Where those
kernels are wrong (SUM, dense layers over a sequence), it gives the bytes of an equivalent formula.

The column *machine code* says whether MicroPython's viper emitter compiles the operator; a port without viper runs bytecode.
A [native module](native.md) in C is faster. The micro:bit runs FULLY_CONNECTED layers, one after the other, and one LOGISTIC
or SOFTMAX behind the last.

| operator | of | types | machine code |
|---|---|---|---|
"""
CLOSING = """
`h2t2 bundle` refuses every other operator and names all of them at once. This table says what to use instead of some:

| operator | instead |
|---|---|
"""
# operators that are no steps of their own
_DILATED = "around one convolution, which becomes a dilated one"
NO_STEP = dict.fromkeys(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), _DILATED)
NO_STEP |= {"ARG_MAX": "the last operator: a board's output is the scores before it"}


def page() -> str:
    """The page."""
    rows = []
    for name, supported in sorted(SUPPORTED.items()):
        fast = {"": "nothing to do", "lstm": "its sums", **dict.fromkeys(MACHINE_CODE, "yes")}.get(supported.kernel, "no")
        types = "int8" if name in SIGNED else "int8, uint8"
        inputs = f"one picture (height, width, channels): {supported.inputs}" if supported.picture else supported.inputs
        rows.append(f"| {name} | {inputs} | {types} | {fast} |\n")
    rows += [f"| {name} | {inputs} | int8, uint8 | nothing to do |\n" for name, inputs in NO_STEP.items()]
    advice = [f"| {name} | {instead} |\n" for name, instead in sorted(INSTEAD.items()) if name not in SUPPORTED]
    return "".join([OPENING, *sorted(rows), CLOSING, *advice])


if __name__ == "__main__":
    print(page(), end="")
