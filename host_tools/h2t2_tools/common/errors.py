"""The two ways a command ends badly, as exceptions the command line prints without a traceback."""

from __future__ import annotations

from typing import Any


class UserError(Exception):
    """Wrong use: a bad option, a missing file. Exit status 2."""


class Failure(Exception):
    """Right use that did not work out: a broker that vanished, a check that failed. Exit status 1."""


def plain(error: Exception) -> str:
    """An error in a line: of pydantic's ValidationError the first entry that is wrong, and why."""
    errors: Any = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    first = errors()[0]
    where = ".".join(map(str, first["loc"]))
    why = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {why}" if where else why
