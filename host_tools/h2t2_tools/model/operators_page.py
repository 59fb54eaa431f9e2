"""docs/operators.md, from the code: `make pages`."""

from __future__ import annotations

import ast
import inspect

from h2t2.ldl import kernels, steps

from .operators import INSTEAD, SUPPORTED

OPENING = """# Operators

What the integer interpreter runs of an int8 .tflite (`h2t2 bundle`, `h2t2 inspect`): activations int8, a scale and a zero
point each; weights int8 around zero, a scale a channel or one; biases int32. Ends may be int8, uint8 (QUANTIZE) or float
(QUANTIZE and DEQUANTIZE, which stay outside: a node quantises). One input and one output. Every byte of every layer is that of
TFLite's reference kernels: `h2t2 ldl-check MODEL --layers`.

*machine code*: by MicroPython's viper emitter, where the port has one; else as bytecode. *micro:bit*: among what its build can
take along, room permitting.

| operator | of | machine code | micro:bit |
|---|---|---|---|
"""
CLOSING = """
Everything else is refused by name, all at once, when a bundle is made. What to do instead of some of them:

| operator | instead |
|---|---|
"""


def page() -> str:
    """The page."""
    small = {node.name for node in ast.parse(inspect.getsource(kernels)).body if isinstance(node, ast.FunctionDef)}
    rows = []
    for name, each in sorted(SUPPORTED.items()):
        fast = "nothing to do" if not each.kernel else "yes" if each.kernel in steps.FAST else "no"
        of = f"one picture (height, width, channels): {each.of}" if each.picture else each.of
        rows.append(f"| {name} | {of} | {fast} | {'yes' if not each.kernel or each.kernel in small else 'no'} |\n")
    return OPENING + "".join(rows) + CLOSING + "".join(f"| {name} | {what} |\n" for name, what in sorted(INSTEAD.items()))


if __name__ == "__main__":
    print(page(), end="")
