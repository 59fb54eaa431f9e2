"""A user's app.py: its source, checked, and the integers by which what it measures becomes the models' int8."""

import ast
from pathlib import Path
from typing import Any

from ..common import pairs
from ..common.errors import UserError


def source(path: Path, raw: bool = False) -> bytes:
    """The app's source. raw: it must make the bytes of an offload itself.

    UserError where it is not there, is no Python, or lacks a function that an app must have.
    """
    try:
        text = path.read_bytes()
        names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    except OSError:
        raise UserError(f'{path}: no such app; `app = "FILE"` in h2t2.toml names one') from None
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    if not {"sense", "act"} <= names:
        has = ", ".join(sorted(names)) or "none"
        raise UserError(f"{path}: an app has the functions sense() and act(decision); this one has {has}")
    if raw and "remote" not in names:
        raise UserError(f'{path}: remote_dtype = "raw": its function remote(measured) makes what an offload sends; it has none')
    return text


def measured(pair: pairs.Pair) -> dict[str, Any]:
    """How the numbers of a sample become both models' int8, in the integers of h2t2.node.measured.Measured."""
    from h2t2.cpython import pair as pair_node
    from h2t2.ldl.open import open_ldl

    ldl = open_ldl(str(pair.ldl), event=pair.info.event_output("ldl"))
    try:
        return pair_node.measured(pair.info.model_dump(), ldl)
    except ValueError as error:
        raise UserError(str(error)) from None
