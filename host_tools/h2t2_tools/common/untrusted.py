"""Text that others wrote (devices, workers, servers, files): shown as text, read as a number, read as JSON."""

from __future__ import annotations

import json
from typing import Any


def printable(text: str, keep: str = "") -> str:
    r"""The text with an escape in place of every character that a terminal would obey instead of showing it.

    Args:
        keep: control characters that stay as they are.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def parse_integer(text: str, largest: int) -> int | None:
    """The number that a text of ASCII digits spells; None for any other text, and for a number above `largest`.

    str.isdigit() accepts "²", which int() refuses, and int() itself refuses more than 4300 digits.
    """
    if not text.isascii() or not text.isdigit() or len(text) > max(20, len(str(largest))):
        return None
    value = int(text)
    return value if value <= largest else None


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is no JSON, no UTF-8, or nested deeper than Python's parser goes.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
