"""What a model to convert is, whatever it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common.errors import UserError


@dataclass(frozen=True)
class Source:
    """kind: in words; shape: of one sample; file_bytes: of the file or folder.

    scores: (n, *shape) float32 -> (n, classes) float, the model's own outputs. quantise: calibration samples
    (n, *shape) float32 -> the bytes of a full-int8 .tflite. factor, offset: *shape or 1, 0: what the int8 model takes is
    x * factor + offset (a scaler of the source that stays outside: one int8 scale cannot serve unlike features).
    """

    kind: str
    path: Path
    shape: tuple[int, ...]
    file_bytes: int
    scores: Callable[[np.ndarray], np.ndarray]
    quantise: Callable[[np.ndarray], bytes]
    factor: np.ndarray | float = 1.0
    offset: np.ndarray | float = 0.0

    def prepared(self, x: np.ndarray) -> np.ndarray:
        """(n, *shape) float32: samples as the int8 model takes them, before quantising."""
        return (x * self.factor + self.offset).astype(np.float32)

    def checked_scores(self, x: np.ndarray) -> np.ndarray:
        """(n, classes): scores(x). UserError where they are no scores from 0 to 1."""
        made = self.scores(x)
        if not np.isfinite(made).all():
            raise UserError(f"{self.path}: the float model itself gives NaN or infinity on this data")
        low, high = float(made.min()), float(made.max())
        if low < -0.01 or high > 1.01:
            raise UserError(
                f"{self.path}: its outputs span {low:.3g} to {high:.3g}; the policy needs scores from 0 to 1: end the model "
                "with a softmax or a sigmoid, and give it the samples as it was trained (--scale)"
            )
        return made
