"""Reading a .toml file into a checked model, with errors that name the entry and never a secret's value."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Checked = TypeVar("Checked", bound=BaseModel)


def load(path: Path, model: type[Checked], secrets: tuple[str, ...] = ()) -> Checked:
    """The file as that model. UserError naming file and entry; the value of one named in `secrets` is never in it."""
    return validate(read_entries(path), path, model, secrets)


def read_entries(path: Path) -> dict[str, Any]:
    """The entries of a file. UserError where it cannot be read, or is no TOML."""
    try:
        return parse_entries(path.read_bytes(), path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def parse_entries(data: bytes, path: Path) -> dict[str, Any]:
    """As read_entries(), of the bytes of a file."""
    try:
        return dict(tomllib.loads(data.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None


def validate(entries: dict[str, Any], path: Path, model: type[Checked], secrets: tuple[str, ...] = ()) -> Checked:
    """As load(), of the entries of a file."""
    try:
        return model.model_validate(entries)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        silent = not name or wrong["type"] in ("missing", "extra_forbidden") or name in secrets
        value = "" if silent else f" {wrong['input']!r}"
        where = f"{name}{value}: " if name else ""
        reason = wrong["msg"].removeprefix("Value error, ") if wrong["type"] == "value_error" else wrong["msg"].lower()
        raise UserError(f"{path}: {where}{reason}") from None
