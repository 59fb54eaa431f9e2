"""The kernels of the integer interpreter (h2t2.ldl), compiled by numba: the same source, and so the same integers."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from h2t2.ldl import kernels, log_softmax, lstm, trees
from h2t2.ldl.steps import name_of

from ..common.jit import njit
from .operators.step import MODULES

Kernel = Callable[..., None]


class _ForNumba(ast.NodeTransformer):
    """Reads each number as int64: numba makes a shifted byte unsigned."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Call(ast.Name("_int64", ast.Load()), [node], []), node)


def _compiled(function: Any, names: dict[str, Any]) -> Any:
    """Compile a kernel, or a function that it calls, under its own path, which numba's cache needs; names: its globals."""
    lines, first = inspect.getsourcelines(function)
    tree = _ForNumba().visit(ast.parse(textwrap.dedent("".join(lines))))
    tree = ast.increment_lineno(ast.fix_missing_locations(tree), first - 1)
    namespace = {**function.__globals__, **names}
    exec(compile(tree, inspect.getfile(function), "exec"), namespace)
    names[function.__name__] = njit(namespace[function.__name__])
    return names[function.__name__]


@cache
def _names() -> dict[str, Any]:
    """What the kernels call, by its name there."""
    names: dict[str, Any] = {"_int64": np.int64}
    for name in (
        "requantise", "_store", "product_high", "product_low", "_doubling_high", "reciprocal_of", "reciprocal", "share"
    ):  # fmt: skip
        _compiled(getattr(kernels, name), names)
    for name in (
        "_dot", "_saturate", "_mul", "_exp", "_reciprocal", "sigmoid", "tanh", "_rounding_shift", "_gate", "_requantise_product"
    ):  # fmt: skip
        _compiled(getattr(lstm, name), names)
    for name in ("_high", "_wide_high", "_both_wide_high", "_sum", "logarithm"):
        _compiled(getattr(log_softmax, name), names)
    _compiled(trees._add, names)
    return names


@cache
def kernel(code: int) -> Kernel:
    """The kernel of a step's code. It takes (arena, blob, p, k): two arrays of uint8, a tuple of int, three arrays of int64."""
    name = name_of(code)
    module = next(module for module in MODULES if hasattr(module, name))
    compiled: Kernel = _compiled(getattr(module, name), _names())
    return compiled
