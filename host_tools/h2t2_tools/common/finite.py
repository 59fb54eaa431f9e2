"""Refuses NaN and infinity in samples."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .errors import UserError

REMEDY = "; a SimpleImputer in the pipelines of both models says what stands for it, or leave these samples out"


def check_finite(x: np.ndarray, path: Path | str, *, missing: bool = False, columns: Sequence[str] | None = None) -> None:
    """Raise UserError, which names the first, if samples (n, ...) hold infinity or NaN.

    Args:
        x: The samples.
        path: What they come from.
        missing: NaN is allowed.
        columns: Names of the numbers of a sample.
    """
    rows = (np.isinf(x) | (np.isnan(x) & (not missing))).reshape(len(x), -1)
    bad = rows.any(1)
    if bad.any():
        first = int(np.argmax(bad))
        place = int(np.argmax(rows[first]))
        name = columns[place] if columns else f"number {place}"
        is_missing = bool(np.isnan(x[first].ravel()[place]))
        raise UserError(
            f"{path}: {int(bad.sum())} of {len(x)} samples hold NaN or infinity, the first is sample {first}: {name} is "
            f"{f'missing{REMEDY}' if is_missing else 'infinite'}"
        )
