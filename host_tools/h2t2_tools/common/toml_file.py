"""Reads a .toml file into a checked model. Errors name the wrong entry, but never the value of a secret."""

import sys
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .errors import UserError, file_errors
from .fields import reason, stated

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Checked = TypeVar("Checked", bound=BaseModel)


def load(path: Path, model: type[Checked], secrets: tuple[str, ...] = ()) -> Checked:
    """Read a file into a model.

    Args:
        path: the file.
        model: its pydantic model.
        secrets: entries whose values no message shows.

    Raises:
        UserError: the file cannot be read, or an entry is wrong. The message names both.
    """
    return validate(read_entries(path), path, model, secrets)


def read_entries(path: Path) -> dict[str, Any]:
    """Read the entries of a file. UserError if it is no readable TOML."""
    with file_errors(path):
        return parse_entries(path.read_bytes(), path)


def by_name(path: Path) -> dict[str, str]:
    """Read texts by name, from a file whose keys are one name or several ones between spaces."""
    return {name: text for names, text in read_entries(path).items() for name in names.split()}


def parse_entries(data: bytes, path: Path) -> dict[str, Any]:
    """Read the entries from the bytes of a file; `path` appears in errors."""
    try:
        return dict(tomllib.loads(data.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None


def validate(entries: dict[str, Any], path: Path, model: type[Checked], secrets: tuple[str, ...] = ()) -> Checked:
    """Check the entries of a file as load() does."""
    try:
        return model.model_validate(entries)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        silent = not name or wrong["type"] in ("missing", "extra_forbidden") or name in secrets
        value = "" if silent else f" {stated(entries.get(name, []), wrong)!r}"
        where = f"{name}{value}: " if name else ""
        text = reason(wrong, model)
        raise UserError(f"{path}: {where}{text[:1].lower()}{text[1:]}") from None
