"""docs/operators.md, from the code: `make pages`."""

from __future__ import annotations

from .footprint import MACHINE_CODE
from .operators import INSTEAD, SUPPORTED
from .plan import SIGNED

OPENING = """# Operators

What the integer interpreter runs of a quantised .tflite (`h2t2 bundle`, `h2t2 inspect`): activations int8, a scale and a zero
point each; weights int8 around zero, a scale a channel or one; biases int32. Or all of it uint8, weights around a zero point,
as converters made it before int8. Ends may be int8, uint8 or float (QUANTIZE and DEQUANTIZE, which stay outside: a node
quantises). One input and one output: `h2t2 pick`. State may be kept in variables. Every byte of every layer is that of TFLite's
reference kernels, `h2t2 ldl-check MODEL --layers`; where those are wrong (SUM, dense layers over a sequence), that of the same
sums written otherwise.

*machine code*: by MicroPython's viper emitter, where the port has one; else as bytecode. [C](native.md) is faster.
The micro:bit runs FULLY_CONNECTED layers, one after the other, and one LOGISTIC or SOFTMAX behind the last.

| operator | of | types | machine code |
|---|---|---|---|
"""
CLOSING = """
Everything else is refused by name, all at once, when a bundle is made. What to do instead of some of them:

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
