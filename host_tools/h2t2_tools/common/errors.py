"""The exceptions that the command line prints without a traceback."""

import dis
import json
from typing import Any

OWN_PACKAGES = ("h2t2", "h2t2_tools")  # packages whose `raise` is meant for the user
RAISES = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE")}


class UserError(Exception):
    """The use is wrong: a bad option, a missing file. Exit status 2."""


class Failure(Exception):
    """The use is right, but the command failed: a broker vanished, a check found a difference. Exit status 1."""


def is_deliberate(error: BaseException) -> bool:
    """Whether an exception addresses the user: a `raise` statement of this project raised it, or it reports malformed data.

    Any other ValueError (int("x"), an array of a wrong shape) is a defect of this project.
    """
    if isinstance(error, (UnicodeError, json.JSONDecodeError)) or callable(getattr(error, "errors", None)):  # pydantic's
        return True
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None or str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] not in OWN_PACKAGES:
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] in RAISES


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
    more = len(reasons) - limit
    return "; ".join(reasons[:limit]) + (f"; and {more} more, which h2t2 inspect lists" if more > 0 else "")
