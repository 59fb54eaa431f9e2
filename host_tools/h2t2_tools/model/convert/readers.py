"""Opens a model to convert with the reader of its kind."""

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ...common.errors import UserError
from .trained_model import Source

PICKLES = ".joblib", ".pkl", ".pickle"
OF_XGBOOST = ".json", ".ubj"

# kind of file -> (module, function); a module is imported when it is needed, for its libraries are optional
READERS = {
    **dict.fromkeys((".keras", ".h5"), ("from_keras", "keras_file")),
    **dict.fromkeys(PICKLES, ("from_scikit", "joblib_file")),
    ".json": ("from_boosters", "json_file"),
    ".txt": ("from_boosters", "text_file"),
    ".ubj": ("from_boosters", "binary_file"),
    ".cbm": ("from_boosters", "catboost_file"),
    ".onnx": ("from_onnx.onnx_network", "onnx_file"),
    ".pt2": ("from_onnx.exported_program", "program_file"),
    ".tflite": ("from_tflite", "tflite_file"),
    "folder": ("from_keras", "saved_model"),
}


# kind of file -> function that gives the names of the columns that a model was fitted on, or None
COLUMN_NAMES = {
    **dict.fromkeys(PICKLES, ("from_scikit", "column_names")),
    ".json": ("from_boosters", "json_columns"),
    ".ubj": ("from_boosters", "binary_columns"),
    ".cbm": ("from_boosters", "catboost_columns"),
    ".txt": ("from_boosters", "text_columns"),
}


def column_names(path: Path) -> list[str] | None:
    """The names of the columns that the model at a path was fitted on, in its order; None where it knows none."""
    if path.suffix.lower() not in COLUMN_NAMES or not path.is_file():
        return None
    module, reader = COLUMN_NAMES[path.suffix.lower()]
    names: list[str] | None = getattr(import_module(f".{module}", __package__), reader)(path)
    return names


class Table(NamedTuple):
    """What a model says of the table that it was fitted on.

    Attributes:
        texts: Name of a column of words -> the words that its numbers from 0 up stand for.
        missing: Whether its numbers may be NaN.
        classes: The classes in the order of its scores, where they are words; None: numbers.
        columns: The names of the columns that it reads; () where it knows none.
    """

    texts: dict[str, list[str]] = {}
    missing: bool = False
    classes: list[str] | None = None
    columns: tuple[str, ...] = ()


def fitted_table(path: Path) -> Table:
    """What the model at a path says of the table that it was fitted on."""
    if path.suffix.lower() not in PICKLES or not path.is_file():
        return Table(columns=tuple(column_names(path) or ()))
    return Table(*import_module(".from_scikit", __package__).fitted_table(path))


def open_source(path: Path, missing_value: float | None = None) -> Source:
    """Open the model at a path. UserError where it is missing, of an unknown kind, or needs an extra that is not installed.

    missing_value: The number that counts as missing for a file of XGBoost, which does not say it; UserError for another file.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if path.is_dir() and not (path / "saved_model.pb").exists():
        raise UserError(f"{path}: a folder without saved_model.pb is no SavedModel")
    kind = "folder" if path.is_dir() else path.suffix.lower()
    if kind not in READERS:
        raise UserError(
            f"{path}: want a .keras, .h5, SavedModel folder (TensorFlow), .joblib (scikit-learn), .json or .txt (XGBoost, "
            "LightGBM), .onnx (PyTorch and others), .pt2 (torch.export) or a float .tflite; export other frameworks' models to "
            "one of these"
        )
    module, name = READERS[kind]
    reader = getattr(import_module(f".{module}", __package__), name)
    if missing_value is not None and kind not in OF_XGBOOST:
        from .from_boosters import no_missing

        raise no_missing(path)
    source: Source = reader(path) if missing_value is None else reader(path, missing_value)
    return source
