"""The exceptions that the command line prints without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class UserError(Exception):
    """The use is wrong: a bad option, a missing file. Exit status 2."""


class Failure(Exception):
    """The use is right, but the command failed: a broker vanished, a check found a difference. Exit status 1."""


class InvalidMessage(ValueError):
    """What somebody else sent is not what it must be. The text says why."""


@contextmanager
def as_user_error(where: object = "") -> Iterator[None]:
    """Turn a ValueError of the block into a UserError.

    For a block that checks what a user gave with functions of the runtime or of a library, which know no UserError.

    Args:
        where: what the user gave, for the message; "" where the text names it.
    """
    try:
        yield
    except ValueError as error:
        text = describe_error(error)
        raise UserError(f"{where}: {text}" if where else text) from error


@contextmanager
def file_errors(path: object) -> Iterator[None]:
    """Turn an OSError of the block, about a file, into a UserError that names the file."""
    try:
        yield
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise UserError(f"{path}: {'no such file' if missing else error.strerror or error}") from None


def describe_error(error: Exception) -> str:
    """Describe an error in a line; of pydantic's ValidationError, the first wrong entry and the reason."""
    errors: Any = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    first = errors()[0]
    where = ".".join(map(str, first["loc"]))
    why = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {why}" if where else why


def first_few(reasons: list[str], limit: int = 3) -> str:
    """The first reasons in one line, and how many more there are."""
    excess = len(reasons) - limit
    return "; ".join(reasons[:limit]) + (f"; and {excess} more, which h2t2 inspect lists" if excess > 0 else "")
