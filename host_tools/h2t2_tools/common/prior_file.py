"""A table to start from, as a file: what `h2t2 prior` and `h2t2 convert` write, and nodes, boards and commands read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import UserError
from .untrusted import parse_json


def write(path: Path, trace: str, samples: int, table: list[float]) -> dict[str, Any]:
    """Write it; what was written. trace: where its labels come from; table: P(event) of every bin."""
    values = {"trace": trace, "samples": samples, "bits": len(table).bit_length() - 1, "prior": [round(p, 4) for p in table]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values) + "\n")
    return values


def read(path: Path, bits: int = 0) -> list[float]:
    """The table in a file. UserError for one that is none, or of other bits; bits 0: any."""
    try:
        content = parse_json(path.read_text())
        values = [float(p) for p in content["prior"]]
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError(f"{path}: not a table of `h2t2 prior`: {error}") from None
    if not all(0 <= p <= 1 for p in values):
        raise UserError(f"{path}: a number that is not between 0 and 1")
    if bits and len(values) != 2**bits:
        raise UserError(f"{path}: {len(values)} numbers; {bits} bits want {2**bits}")
    return values
