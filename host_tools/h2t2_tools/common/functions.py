"""A user's own function in a Python file, named FILE.py:FUNCTION."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from .errors import UserError


def is_user_function(path: str) -> bool:
    """Whether it names a function in a Python file."""
    return path.rpartition(":")[0].endswith(".py")


def load_user_function(path: str) -> Callable[..., Any]:
    """The function; its file is run. UserError, saying what it raised, where there is none."""
    file, _, name = path.rpartition(":")
    spec = importlib.util.spec_from_file_location("h2t2_rdl_model", file)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: want FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        user_function: Callable[..., Any] = getattr(module, name)
    except Exception as error:  # a user's own program
        raise UserError(f"{path}: {type(error).__name__}: {error}") from None
    return user_function
