"""A board's commented config.toml for a pair, with a user's own entries in it; what it says beside them stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..common import pairs


def configuration(folder: Path, about: pairs.PairInfo, entries: dict[str, Any]) -> str:
    """The text of a board's configuration for a pair. folder: of the board, in firmware/boards. entries: name -> number, string
    or list, besides what the pair says; one that the board has not is left out.
    """
    text = (folder / "config.toml").read_text()
    described: dict[str, Any] = {
        "event": about.event_output("ldl"),
        "remote_shape": about.remote.shape,
        "remote_dtype": about.remote.dtype,
        "remote_media": about.remote.media,
        "remote_limit": about.remote.limit,
        "model_id": about.model_id,
        "beta": about.beta,
    }
    if about.costs:
        described["class_costs"] = about.costs
    for name, value in {**described, **entries}.items():
        found = re.search(rf"(?m)^(?:# )?{name} = [^#\n]*", text)
        if found:
            entry = f"{name} = {json.dumps(value)}"
            if text[found.end() : found.end() + 1] == "#":
                entry = f"{entry}  ".ljust(len(found[0]))
            text = text[: found.start()] + entry + text[found.end() :]
    return text
