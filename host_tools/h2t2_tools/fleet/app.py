"""A user's app.py: its source, checked, and the integers by which what it measures becomes the models' int8."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np

from h2t2 import units

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
        raise UserError(f'{path}: no such app; `h2t2 flash --app FILE` or `app = "FILE"` names one') from None
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
    from h2t2.ldl.open import open_ldl

    remote = pair.info.remote
    ldl = open_ldl(str(pair.ldl), event=pair.info.event_output("ldl"))
    sizes = {"ldl": ldl.input_size, "rdl": int(np.prod(remote.shape))}
    ends = {"ldl": ldl.input_quantisation(), "rdl": (remote.scale, remote.zero_point)}
    names = {"ldl": "local", "rdl": "remote"}
    measured: dict[str, Any] = {names[name]: fixed(pair.info, name, sizes[name], *ends[name]) for name in names}
    if pair.info.window:
        measured["window"] = pair.info.window.model_dump()
    if pair.info.picture:
        measured["picture"] = pair.info.picture.model_dump()
    return measured


def fixed(about: pairs.PairInfo, model: str, size: int, scale: float, zero_point: int) -> dict[str, Any]:
    """The arguments of Measured: `size` numbers as int8 of that scale and zero point."""
    preparation = about.prepared.get(model)
    factor = preparation.factor if preparation else [1.0] * size
    offset = preparation.offset if preparation else [0.0] * size
    if len(factor) != size:
        raise UserError(f"pair.json: prepared.{model}: {len(factor)} numbers, the model takes {size}")
    return {"columns": about.columns[model], **units.measured(factor, offset, scale, zero_point)}
