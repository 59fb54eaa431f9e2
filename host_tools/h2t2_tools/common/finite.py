"""Refuses NaN and infinity in samples."""

from pathlib import Path

import numpy as np

from .errors import UserError


def check_finite(x: np.ndarray, path: Path | str) -> None:
    """Raise UserError, which names the first such sample, if samples (n, ...) hold NaN or infinity."""
    bad = ~np.isfinite(x.reshape(len(x), -1)).all(1)
    if bad.any():
        first = int(np.argmax(bad))
        raise UserError(f"{path}: {int(bad.sum())} of {len(x)} samples hold NaN or infinity, the first is sample {first}")
