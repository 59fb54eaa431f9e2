"""What a model to convert is, whatever it comes from; and which reader a path belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UserError


@dataclass(frozen=True)
class Source:
    """kind: in words; shape: of one sample; file_bytes: of the file or folder.

    scores: (n, *shape) float32 -> (n, classes) float, the model's own outputs. quantise: calibration samples
    (n, *shape) float32 -> the bytes of a full-int8 .tflite. factor, offset: (features,) or 1, 0: what the int8 model takes is
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


def open_source(path: Path) -> Source:
    """The model at a path. UserError for one that is not there, of no known kind, or whose extra is not installed."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if path.is_dir():
        if not (path / "saved_model.pb").exists():
            raise UserError(f"{path}: a folder without saved_model.pb is no SavedModel")
        from . import keras_source

        return keras_source.saved_model(path)
    suffix = path.suffix.lower()
    if suffix in (".keras", ".h5"):
        from . import keras_source

        return keras_source.keras_file(path)
    if suffix in (".joblib", ".pkl", ".pickle"):
        from . import scikit_source

        return scikit_source.joblib_file(path)
    if suffix == ".tflite":
        from . import tflite_source

        return tflite_source.tflite_file(path)
    raise UserError(
        f"{path}: want a .keras, .h5, SavedModel folder (TensorFlow), .joblib (scikit-learn) or a float .tflite; "
        "export other frameworks' models to one of these"
    )
