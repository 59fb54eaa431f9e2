"""Stores the table that the adaptive policy starts from. Commands write it; nodes, boards and commands read it."""

import json
from pathlib import Path
from typing import Any

from .errors import UserError
from .untrusted import parse_json


def write(path: Path, trace: str, samples: int, table: list[float]) -> dict[str, Any]:
    """Write a table.

    Args:
        path: the file.
        trace: name of the trace that the labels come from.
        samples: number of the labels.
        table: P(event) of each bin.

    Returns:
        The content of the file.
    """
    values = {"trace": trace, "samples": samples, "bits": len(table).bit_length() - 1, "prior": [round(p, 4) for p in table]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values) + "\n")
    return values


def read(path: Path, bits: int = 0) -> list[float]:
    """Read a table.

    Args:
        path: the file.
        bits: score bits that the table must fit; 0: any.

    Raises:
        UserError: the file holds no table, or one of other bits.
    """
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
