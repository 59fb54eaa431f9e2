"""Shows and reads text from strangers (devices, workers, servers, files): as text, as a number, as JSON."""

import json
import unicodedata
from pathlib import Path
from typing import Any

from .errors import UserError

JOINERS = "\u200c\u200d"  # between the parts of a word, or of an emoji
COMMANDING = ("Cc", "Cf", "Cs")  # Unicode's categories of control characters, format characters and halves of characters


def printable(text: str, keep: str = "") -> str:
    r"""Escape every character that a terminal would obey instead of showing it.

    Args:
        text: the text.
        keep: control characters to leave alone.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    r"""A text as one line: blanks of any kind are single spaces, and what commands a terminal or turns the text around is gone.

    What joins the parts of an emoji or of a word stays.

    >>> one_line("Great\u00a0Tit\n\u202e")
    'Great Tit'
    """
    if text.isprintable():
        return " ".join(text.split())
    categories = ((c, unicodedata.category(c)) for c in text)
    characters = (" " if c.isspace() else c for c, kind in categories if c in JOINERS or c.isspace() or kind not in COMMANDING)
    return " ".join("".join(characters).split())


def parse_integer(text: str, largest: int) -> int | None:
    """Read a number of ASCII digits; None for any other text, and for a number above `largest`.

    str.isdigit() accepts "²", which int() refuses, and int() itself refuses more than 4300 digits.
    """
    if not text.isascii() or not text.isdigit() or len(text) > max(20, len(str(largest))):
        return None
    value = int(text)
    return value if value <= largest else None


def parse_json(text: str | bytes) -> Any:
    """Read a JSON text.

    Raises:
        ValueError: the text is no JSON, no UTF-8, or nested deeper than Python's parser goes.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def is_inside(folder: Path, name: str) -> bool:
    """Whether the file of that name lies in a folder or below it, also where links lead elsewhere. ValueError: no name."""
    return (folder / name).resolve().is_relative_to(folder.resolve())


def check_format(number: object, known: int, path: Path, remedy: str) -> None:
    """Raise a UserError for a file of another format than the known one. remedy: what makes the file again, in words."""
    if number != known:
        other = f"use the version of h2t2-edge that wrote it, or make {remedy}"
        raise UserError(f"{path}: format {number!r}, this version reads {known}; {other}")
