"""Durations as people write them: 2h, 5 min, 500ms. Inside they are seconds."""

import re
from collections.abc import Callable

Clock = Callable[[], float]  # the time in seconds
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
EXAMPLES = "want a time such as 500ms, 2s, 5 min or 2h"


def parse(value: object) -> float:
    """Seconds of a duration.

    Args:
        value: a text such as 2h or 5 min, or a number of seconds. An empty text is 0.

    Raises:
        ValueError: the text is no duration. The message has examples.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if value == "":
        return 0.0
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *(us|ms|s|min|h|d)?", value.strip()) if isinstance(value, str) else None
    if not match:
        raise ValueError(EXAMPLES)
    return float(match[1]) * SECONDS[match[2] or "s"]


def text(seconds: float) -> str:
    """A duration in the largest unit that makes its number whole, such as 2h or 1500ms; 0 for none."""
    microseconds = round(seconds * 1e6)
    for unit, size in reversed(SECONDS.items()):
        if microseconds and microseconds % round(size * 1e6) == 0:
            return f"{microseconds // round(size * 1e6)}{unit}"
    return "0"


def rounded(seconds: float) -> tuple[float, str]:
    """A duration as people say it: (number, unit), in the largest unit of which it has one, with a decimal below ten."""
    for unit in ("d", "h", "min"):
        if seconds >= SECONDS[unit]:
            number = seconds / SECONDS[unit]
            return round(number, 1 if number < 10 else None), unit
    return round(max(0.0, seconds)), "s"


def in_words(seconds: float) -> str:
    """A duration as people say it: 40 s, 1.5 h, 12 d."""
    number, unit = rounded(seconds)
    return f"{number:g} {unit}"
