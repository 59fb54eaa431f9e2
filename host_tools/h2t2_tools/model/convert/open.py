"""Opens a model to convert with the reader of its kind."""

from importlib import import_module
from pathlib import Path

from ...common.errors import UserError
from .source import Source

PICKLES = ".joblib", ".pkl", ".pickle"

# kind of file -> (module, function); a module is imported when it is needed, for its libraries are optional
READERS = {
    **dict.fromkeys((".keras", ".h5"), ("from_keras", "keras_file")),
    **dict.fromkeys(PICKLES, ("from_scikit", "joblib_file")),
    ".json": ("from_boosters", "json_file"),
    ".txt": ("from_boosters", "text_file"),
    ".ubj": ("from_boosters", "binary_file"),
    ".onnx": ("from_onnx.source", "onnx_file"),
    ".tflite": ("from_tflite", "tflite_file"),
    "folder": ("from_keras", "saved_model"),
}


def open_source(path: Path) -> Source:
    """Open the model at a path. UserError where it is missing, of an unknown kind, or needs an extra that is not installed."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if path.is_dir() and not (path / "saved_model.pb").exists():
        raise UserError(f"{path}: a folder without saved_model.pb is no SavedModel")
    kind = "folder" if path.is_dir() else path.suffix.lower()
    if kind not in READERS:
        raise UserError(
            f"{path}: want a .keras, .h5, SavedModel folder (TensorFlow), .joblib (scikit-learn), .json or .txt (XGBoost, "
            "LightGBM), .onnx (PyTorch and others) or a float .tflite; export other frameworks' models to one of these"
        )
    module, reader = READERS[kind]
    source: Source = getattr(import_module(f".{module}", __package__), reader)(path)
    return source
