"""Which reader a model to convert belongs to, by its path."""

from __future__ import annotations

from pathlib import Path

from ...common.errors import UserError
from .source import Source


def open_source(path: Path) -> Source:
    """The model at a path. UserError for one that is not there, of no known kind, or whose extra is not installed."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if path.is_dir():
        if not (path / "saved_model.pb").exists():
            raise UserError(f"{path}: a folder without saved_model.pb is no SavedModel")
        from . import from_keras as keras_source

        return keras_source.saved_model(path)
    suffix = path.suffix.lower()
    if suffix in (".keras", ".h5"):
        from . import from_keras as keras_source

        return keras_source.keras_file(path)
    if suffix in (".joblib", ".pkl", ".pickle"):
        from . import from_scikit as scikit_source

        return scikit_source.joblib_file(path)
    if suffix == ".tflite":
        from . import from_tflite as tflite_source

        return tflite_source.tflite_file(path)
    if suffix == ".onnx":
        from .from_onnx.source import onnx_file

        return onnx_file(path)
    raise UserError(
        f"{path}: want a .keras, .h5, SavedModel folder (TensorFlow), .joblib (scikit-learn), .onnx (PyTorch and others) or a "
        "float .tflite; export other frameworks' models to one of these"
    )
