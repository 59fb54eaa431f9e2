"""Refuses NaN and infinity in samples."""

from pathlib import Path

import numpy as np

from .errors import UserError


def check_finite(x: np.ndarray, path: Path | str, *, missing: bool = False) -> None:
    """Raise UserError, which names the first, if samples (n, ...) hold infinity or NaN; missing: NaN is allowed."""
    bad = (np.isinf(x) | (np.isnan(x) & (not missing))).reshape(len(x), -1).any(1)
    if bad.any():
        first = int(np.argmax(bad))
        raise UserError(f"{path}: {int(bad.sum())} of {len(x)} samples hold NaN or infinity, the first is sample {first}")
