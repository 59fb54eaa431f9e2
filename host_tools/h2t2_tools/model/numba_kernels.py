"""The kernels of the integer interpreter (h2t2.ldl), compiled by numba: the same source, and so the same integers."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from h2t2.ldl import fixed_point, kernels
from h2t2.ldl.steps import NAMES, name_of

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
    for module in (fixed_point, kernels, *MODULES):
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and name not in NAMES.split():
                _compiled(function, names)
    return names


@cache
def kernel(code: int) -> Kernel:
    """The kernel of a step's code. It takes (arena, blob, p, k): two arrays of uint8, a tuple of int, three arrays of int64."""
    name = name_of(code)
    module = next(module for module in MODULES if hasattr(module, name))
    compiled: Kernel = _compiled(getattr(module, name), _names())
    return compiled
