"""The kernels of the integer interpreter (h2t2.ldl), compiled by numba: the same source, and so the same integers."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from h2t2.ldl import kernels, kernels_rare, lstm
from h2t2.ldl.steps import name_of

from ..common.jit import njit

Kernel = Callable[..., None]


class _ForNumba(ast.NodeTransformer):
    """Adapts a kernel to numba.

    `_product(x, y)` leaves its two halves in a global array, so that a board allocates nothing. Compiled code may not write to
    globals: it gets the halves as a local pair. A byte that is shifted would become unsigned: every number is read as int64.
    """

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "_product"):
            return node
        return ast.copy_location(ast.Assign([ast.Name("_half", ast.Store())], call), node)

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


def _wide_product(x: int, y: int) -> tuple[int, int]:
    """As kernels._product, which splits its factors because a board's small ints have 31 bits."""
    return x * y >> 30, x * y & (1 << 30) - 1


@cache
def _names() -> dict[str, Any]:
    """The functions that kernels call, by name."""
    names: dict[str, Any] = {"_product": njit(_wide_product), "_int64": np.int64}
    for function in (kernels.requantise, kernels._put, kernels._high, kernels.reciprocal, kernels.share):
        _compiled(function, names)
    for name in ("_dot", "_fits", "_mul", "_exp", "_newton", "sigmoid", "tanh", "_rounded", "_gate", "_scaled"):
        _compiled(getattr(lstm, name), names)
    return names


@cache
def kernel(code: int) -> Kernel:
    """The kernel of a step's code. It takes (arena, blob, p, k): two arrays of uint8, a tuple of int, three arrays of int64."""
    name = name_of(code)
    module = next(module for module in (kernels, kernels_rare, lstm) if hasattr(module, name))
    compiled: Kernel = _compiled(getattr(module, name), _names())
    return compiled
