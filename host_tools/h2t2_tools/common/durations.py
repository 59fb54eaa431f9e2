"""Times as people write them: 2s, 500ms, 5min."""

from __future__ import annotations

import re

UNITS = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000}
MAX_US = 1_000_000_000  # what the runtime's clocks can schedule


def parse_microseconds(text: str) -> int:
    """Microseconds of a time, 0 for "". ValueError, with an example, for anything else, and for one beyond 16 minutes."""
    if not text:
        return 0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min)", text.strip())
    duration_us = round(float(match[1]) * UNITS[match[2]]) if match else 0
    if not 0 < duration_us <= MAX_US:
        raise ValueError(f"{text!r}: want a time such as 2s, 500ms or 5min, at most 16min")
    return duration_us


def check_duration(text: str) -> str:
    """The time as it stands. ValueError as microseconds()."""
    parse_microseconds(text)
    return text
