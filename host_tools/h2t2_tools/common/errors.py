"""The two ways a command ends badly, as exceptions the command line prints without a traceback."""

from __future__ import annotations

import dis
import json
from pathlib import Path
from typing import Any

OWN_PACKAGES = ("h2t2", "h2t2_tools")  # packages whose `raise` is meant for the user
RAISES = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE")}


class UserError(Exception):
    """Wrong use: a bad option, a missing file. Exit status 2."""


class Failure(Exception):
    """Right use that did not work out: a broker that vanished, a check that failed. Exit status 1."""


def is_deliberate(error: BaseException) -> bool:
    """Whether an exception is one that this code raises for its user: by a `raise` statement of its own, or about data.

    A ValueError of anything else (int("x"), an array of another shape) is a defect of ours that no user can do anything about.
    """
    if isinstance(error, (UnicodeError, json.JSONDecodeError)) or callable(getattr(error, "errors", None)):  # pydantic's
        return True
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None or not any(folder in OWN_PACKAGES for folder in Path(trace.tb_frame.f_code.co_filename).parts):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] in RAISES


def describe_error(error: Exception) -> str:
    """An error in a line: of pydantic's ValidationError the first entry that is wrong, and why."""
    errors: Any = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    first = errors()[0]
    where = ".".join(map(str, first["loc"]))
    why = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {why}" if where else why
