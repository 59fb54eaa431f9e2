"""Reads values of a message: JSON paths such as after.camera, levels of the topic such as $topic.1, URLs with places in them.

Messages come from strangers.
"""

import math
import re
from typing import Any
from urllib.parse import quote

from ...common.score_rules import are_scores
from ...common.untrusted import one_line

TOPIC = "$topic."
PLACE = re.compile(r"\{([^{}]+)\}")


class Missing(ValueError):
    """A message has no such entry."""


def value(content: Any, topic: str, path: str) -> Any:
    """The value at a path.

    Args:
        content: the parsed JSON.
        topic: of the message.
        path: names and list indices with dots between them; "": the content itself; $topic.N: level N of the topic, from 0.

    Raises:
        Missing: there is no such value.
    """
    if path.startswith(TOPIC):
        levels = topic.split("/")
        number = path.removeprefix(TOPIC)
        if number.isdecimal() and int(number) < len(levels):
            return levels[int(number)]
        raise Missing(f"{path}: the topic has {len(levels)} levels")
    for name in path.split(".") if path else ():
        if isinstance(content, dict) and name in content:
            content = content[name]
        elif isinstance(content, list) and name.isascii() and name.isdecimal() and int(name[:9]) < len(content):
            content = content[int(name[:9])]
        else:
            raise Missing(f"{path}: there is no {name[:40]}")
    return content


def text(content: Any, topic: str, path: str, longest: int) -> str:
    """A short printable text at a path; numbers become text. ValueError for anything else."""
    entry = value(content, topic, path)
    if isinstance(entry, bool) or not isinstance(entry, (str, int, float)):
        raise ValueError(f"{path}: want a text")
    words = one_line(str(entry))
    if not words or len(words.encode(errors="replace")) > longest:
        raise ValueError(f"{path}: want 1 to {longest} bytes of text")
    return words


def label(content: Any, topic: str, path: str, longest: int) -> str:
    """A detector's words at a path, cut to so many characters; "" where it has none. They decide nothing."""
    try:
        entry = value(content, topic, path)
    except Missing:
        return ""
    return one_line(str(entry))[:longest] if isinstance(entry, (str, int, float)) and not isinstance(entry, bool) else ""


def share(entry: Any, top: float) -> float:
    """A number from 0 to `top` as a share of it, 0 to 1. ValueError for anything else."""
    if isinstance(entry, bool) or not isinstance(entry, (int, float)) or not are_scores(entry / top, entry / top):
        raise ValueError(f"score {str(entry)[:40]!r}: want a number from 0 to {top:g}")
    return min(1.0, max(0.0, entry / top))


def numbers(entry: Any, longest: int) -> tuple[float, ...]:
    """A list of finite numbers. ValueError for anything else."""
    if not isinstance(entry, list) or not 0 < len(entry) <= longest:
        raise ValueError(f"want a list of 1 to {longest:,} numbers")
    for number in entry:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise ValueError(f"want numbers; one is {str(number)[:40]!r}")
    return tuple(map(float, entry))


def filled(template: str, content: Any, topic: str, longest: int) -> str:
    """A URL whose {places} hold values of the message. Values are quoted, so that none changes host or path."""
    return PLACE.sub(lambda place: quote(text(content, topic, place[1], longest), safe=""), template)
