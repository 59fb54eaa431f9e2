"""A user's app.py: its source, checked, and the integers by which what it measures becomes the models' int8."""

import ast
from pathlib import Path
from typing import Any

from ..common import pairs
from ..common.errors import UserError, as_user_error

PLAIN = "setup", "remote", "context", "link"  # functions that a node calls and does not await


def source(path: Path, raw: bool = False) -> bytes:
    """The app's source. raw: it must make the bytes of an offload itself.

    UserError where it is not there, is no Python, or lacks a function that an app must have.
    """
    try:
        text = path.read_bytes()
        body = ast.parse(text).body
    except OSError:
        raise UserError(f'{path}: no such app; `app = "FILE"` in h2t2.toml names one') from None
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    waiting = sorted(node.name for node in body if isinstance(node, ast.AsyncFunctionDef) and node.name in PLAIN)
    if waiting:
        raise UserError(f"{path}: async def {waiting[0]}(): a node awaits sense() and act() alone; write def, without await")
    names = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    if not {"sense", "act"} <= names:
        has = ", ".join(sorted(names)) or "none"
        raise UserError(f"{path}: an app has the functions sense() and act(decision); this one has {has}")
    if raw and "remote" not in names:
        raise UserError(f'{path}: remote_dtype = "raw": its function remote(measured) makes what an offload sends; it has none')
    return text


def is_async(source: bytes) -> bool:
    """Whether an app awaits something, so that a board needs the module for it."""
    return any(isinstance(node, ast.AsyncFunctionDef) for node in ast.parse(source).body)


def has_link(source: bytes) -> bool:
    """Whether an app makes the link to the remote model itself, on a board."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "link" for node in ast.parse(source).body)


def measured(folder: Path, info: pairs.PairInfo) -> dict[str, Any]:
    """How the numbers of a sample of a pair become both models' int8, in the integers of h2t2.node.measured.Measured."""
    from h2t2.cpython import pair as pair_node
    from h2t2.ldl.open import open_ldl

    with as_user_error():
        ldl = open_ldl(str(folder / pairs.LDL), event=info.event_output("ldl"))
        return pair_node.measured(info.model_dump(), ldl)
