"""A board's commented config.toml with a user's own entries in it; what it says beside them stays."""

from __future__ import annotations

import json
import re
from typing import Any

from ..common import places


def configuration(board: str, entries: dict[str, Any]) -> str:
    """The text of that board's configuration; entries: name -> number, string or list. One the board has not is left out."""
    text = (places.boards() / board / "config.toml").read_text()
    for name, value in entries.items():
        found = re.search(rf"(?m)^(?:# )?{name} = [^#\n]*", text)
        if found:
            entry = f"{name} = {json.dumps(value)}"
            if text[found.end() : found.end() + 1] == "#":
                entry = f"{entry}  ".ljust(len(found[0]))
            text = text[: found.start()] + entry + text[found.end() :]
    return text
