"""Models whose scores train others: a .joblib of scikit-learn, a booster's file, a network, each run by its own library."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...common.errors import UserError
from ...common.places import temporary_folder
from ...fleet.rdl import models
from . import from_scikit
from .from_boosters import best_rounds, library, no_missing
from .readers import OF_XGBOOST, PICKLES, READERS
from .scalers import Columns


class Teacher(NamedTuple):
    """A model that gives scores.

    Attributes:
        kind: The model, in words.
        scores: Samples (n, numbers) -> (n, classes), or (n,) of class 1.
        branches: The columns that it makes of a sample, or that each part of an ensemble makes.
    """

    kind: str
    scores: Callable[[np.ndarray], np.ndarray]
    branches: list[Columns] = []


def teacher(path: Path, missing_value: float | None = None) -> Teacher:
    """Open a model to train others by. UserError for a file of another kind, or where its library is missing.

    missing_value: As open_source() takes it.
    """
    ending = path.suffix.lower()
    if missing_value is not None:
        if ending not in OF_XGBOOST or (ending == ".json" and "learner" not in json.loads(path.read_text())):
            raise no_missing(path)
        return _xgboost(path, missing_value)
    if ending in PICKLES:
        return _scikit(path)
    if ending == ".json":
        return _of_json(path)
    if ending in BOOSTERS:
        return BOOSTERS[ending](path)
    if ending == ".pt2":
        with temporary_folder("torch") as folder:
            return _served(import_module(".from_onnx.exported_program", __package__).exported(path, Path(folder)))
    if ending == ".onnx":
        return _served(path)
    if ending in READERS or path.is_dir():
        module, reader = READERS[ending or "folder"]
        source = getattr(import_module(f".{module}", __package__), reader)(path)
        return Teacher(source.kind, lambda x: source.scores(x.reshape(-1, *source.shape)))
    raise UserError(f"{path}: --distil wants a .joblib, a booster's file or a network")


def _scikit(path: Path) -> Teacher:
    model = from_scikit.trusted(path)
    if not from_scikit.is_teacher(model):
        raise UserError(f"{path}: --distil wants a fitted classifier with predict_proba or decision_function")

    def scores(x: np.ndarray) -> np.ndarray:
        rows = from_scikit.named(model, x)
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(rows), float)
        distance = np.asarray(model.decision_function(rows), float)
        logits = distance if distance.ndim == 2 else np.column_stack([np.zeros(len(x)), distance])
        shares = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(shares / shares.sum(1, keepdims=True))

    return Teacher(from_scikit.class_name(model), scores, from_scikit.branch_columns(model))


def _lightgbm(path: Path) -> Teacher:
    return Teacher("LightGBM", library(path, "lightgbm").Booster(model_file=str(path)).predict)


def _xgboost(path: Path, missing: float | None = None) -> Teacher:
    xgboost = library(path, "xgboost")
    booster = xgboost.Booster(model_file=str(path))
    own = {"missing": missing, "feature_names": booster.feature_names, "feature_types": booster.feature_types}
    rounds = 0, best_rounds(booster.attributes())
    return Teacher("XGBoost", lambda x: booster.predict(xgboost.DMatrix(x, **own), iteration_range=rounds))


def _catboost(path: Path) -> Teacher:
    model = library(path, "catboost").CatBoost().load_model(str(path), format=path.suffix[1:].lower())
    return Teacher("CatBoost", lambda x: model.predict(x, prediction_type="Probability"))


def _of_json(path: Path) -> Teacher:
    content = json.loads(path.read_text())
    if "tree_info" in content:
        raise UserError(f"{path}: LightGBM does not read what dump_model() wrote: save_model('model.txt'), then --distil")
    return _xgboost(path) if "learner" in content else _catboost(path)


BOOSTERS = {".txt": _lightgbm, ".ubj": _xgboost, ".cbm": _catboost}


def _served(path: Path) -> Teacher:
    """A network as a worker runs it."""
    model = models.load(models.Source(str(path), event=None))
    shape = model.shape
    if shape is None:
        raise UserError(f"{path}: its input has free sizes: export it with fixed ones")
    return Teacher("a network", lambda x: model.scores(x.reshape(-1, *shape).astype(np.float32)))
