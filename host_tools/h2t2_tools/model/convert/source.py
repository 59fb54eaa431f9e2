"""A trained model to convert, of any kind."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np

from ...common.errors import UserError


@dataclass(frozen=True)
class Source:
    """A trained model of any kind.

    Attributes:
        kind: The kind, in words.
        path: Its file or folder.
        shape: Shape of one sample.
        file_bytes: Size of the file or folder.
        scores: Samples, float32 (n, *shape) -> the model's outputs (n, classes).
        quantise: Calibration samples, float32 (n, *shape) -> the bytes of a full-int8 .tflite.
        factor, offset: Of shape *shape, or 1 and 0. The int8 model takes x * factor + offset: a scaler of the source stays
            outside, since one int8 scale cannot serve features of unlike ranges.
    """

    kind: str
    path: Path
    shape: tuple[int, ...]
    file_bytes: int
    scores: Callable[[np.ndarray], np.ndarray]
    quantise: Callable[[np.ndarray], bytes]
    _: KW_ONLY
    factor: np.ndarray | float = 1.0
    offset: np.ndarray | float = 0.0

    def prepared(self, x: np.ndarray) -> np.ndarray:
        """Samples as the int8 model takes them before quantising, float32 (n, *shape)."""
        return (x * self.factor + self.offset).astype(np.float32)

    def checked_scores(self, x: np.ndarray) -> np.ndarray:
        """The scores (n, classes). UserError where they are not within [0, 1]."""
        scores = self.scores(x)
        if not np.isfinite(scores).all():
            raise UserError(f"{self.path}: the float model itself gives NaN or infinity on this data")
        low, high = float(scores.min()), float(scores.max())
        if low < -0.01 or high > 1.01:
            raise UserError(
                f"{self.path}: its outputs span {low:.3g} to {high:.3g}; the policy needs scores from 0 to 1: end the model "
                "with a softmax or a sigmoid, and give it the samples as it was trained (--scale)"
            )
        return scores
