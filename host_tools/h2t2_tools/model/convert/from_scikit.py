"""scikit-learn's logistic regression and MLP, alone or behind scalers: written as a float .tflite, then quantised as one.

Scalers stay outside the int8 model: inside, one int8 scale would have to serve features of unlike ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from ..tflite_write import write
from .from_tflite import quantise
from .quiet import quiet
from .source import Source

ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda z: np.maximum(z, 0),
    "logistic": lambda z: np.asarray(1 / (1 + np.exp(-z))),
    "": lambda z: z,
}  # of hidden units
SUPPORTED = "LogisticRegression or MLPClassifier, alone or in a Pipeline behind StandardScaler, MinMaxScaler or MaxAbsScaler"


def joblib_file(path: Path) -> Source:
    """Open a model that joblib or pickle saved. Loading runs code from the file: load only files that you trust."""
    try:
        import joblib
        import sklearn  # noqa: F401
    except ImportError:
        raise UserError("scikit-learn sources need the extra `convert`: pip install 'h2t2-edge[convert]'") from None
    try:
        with quiet():
            model = joblib.load(path)
    except Exception as error:  # a pickle raises any error
        raise UserError(f"{path}: not a model saved by joblib: {type(error).__name__}: {error}") from None
    return from_object(model, path)


def from_object(model: Any, path: Path = Path("model.joblib")) -> Source:
    """The source of a fitted estimator; path: what messages call it."""
    factor, offset, layers = _layers(model, path)
    content = _tflite(layers)
    shape = (layers[0][0].shape[1],)

    def scores(x: np.ndarray) -> np.ndarray:
        probability = np.asarray(model.predict_proba(x), float)
        return probability[:, 1:] if layers[-1][2] == "logistic" else probability

    size = path.stat().st_size if path.exists() else len(content)
    return Source(
        f"scikit-learn {type(_steps(model)[-1]).__name__}", path, shape, size, scores,
        lambda x: quantise(content, x, path), factor=factor, offset=offset,
    )  # fmt: skip


def _steps(model: Any) -> list[Any]:
    return [step for _, step in model.steps] if type(model).__name__ == "Pipeline" else [model]


def _layers(model: Any, path: Path) -> tuple[Any, Any, list[tuple[np.ndarray, np.ndarray, str]]]:
    """factor and offset of the scalers; then [(weights (outputs, inputs), bias (outputs,), activation)]."""
    scale: np.ndarray | float = 1.0
    shift: np.ndarray | float = 0.0
    steps = _steps(model)
    for step in steps[:-1]:
        factor, offset = _scaler(step, path)
        scale, shift = scale * factor, shift * factor + offset
    last = steps[-1]
    if not hasattr(last, "classes_"):
        raise UserError(f"{path}: {type(last).__name__} is not a fitted classifier; {SUPPORTED} can be converted")
    if type(last).__name__ == "LogisticRegression":
        if len(last.classes_) > 2 and getattr(last, "multi_class", "auto") == "ovr":
            raise UserError(f"{path}: one-versus-rest logistic regression has no softmax; fit it as multinomial")
        layers = [(last.coef_, last.intercept_, "logistic" if len(last.classes_) == 2 else "softmax")]
    elif type(last).__name__ == "MLPClassifier":
        hidden = "" if last.activation == "identity" else last.activation
        if hidden not in ACTIVATIONS:
            raise UserError(
                f"{path}: MLPClassifier with {last.activation} hidden units; relu, logistic and identity are supported"
            )
        names = [hidden] * (len(last.coefs_) - 1) + [last.out_activation_]
        layers = [(w.T, b, name) for w, b, name in zip(last.coefs_, last.intercepts_, names)]
    else:
        raise UserError(f"{path}: {type(last).__name__} cannot be converted; {SUPPORTED} can")
    return scale, shift, _without_dead_units(layers)


def _without_dead_units(layers: list[tuple[np.ndarray, np.ndarray, str]]) -> list[tuple[np.ndarray, np.ndarray, str]]:
    """Move hidden units that training switched off (all their weights vanish) into the next layer's bias: they are constants.

    Otherwise their weights' scale would be so small that their bias leaves int32.
    """
    live_layers = [layers[0]]
    for w, b, name in layers[1:]:
        before, bias, activation = live_layers[-1]
        dead = np.abs(before).max(1) < 1e-6 * np.abs(before).max()
        if dead.any() and not dead.all():
            b = b + w[:, dead] @ ACTIVATIONS[activation](bias[dead])
            w = w[:, ~dead]
            live_layers[-1] = (before[~dead], bias[~dead], activation)
        live_layers.append((w, b, name))
    return live_layers


def _scaler(step: Any, path: Path) -> tuple[Any, Any]:
    """(factor, offset) of a fitted scaler: it gives x * factor + offset."""
    name = type(step).__name__
    if name == "StandardScaler":
        factor = 1 / step.scale_ if step.scale_ is not None else 1.0
        return factor, -(step.mean_ if step.mean_ is not None else 0.0) * factor
    if name == "MinMaxScaler":
        return step.scale_, step.min_
    if name == "MaxAbsScaler":
        return 1 / step.scale_, 0.0
    raise UserError(f"{path}: the pipeline's {name} is not a scaler of one number each; {SUPPORTED} can be converted")


def _tflite(layers: list[tuple[np.ndarray, np.ndarray, str]]) -> bytes:
    tensors: list[Tensor] = []
    operators: list[Operator] = []

    def tensor(name: str, shape: tuple[int, ...], data: np.ndarray | None = None) -> int:
        stored = None if data is None else np.ascontiguousarray(data, np.float32)
        tensors.append(Tensor(len(tensors), name, shape, "float32", stored))
        return len(tensors) - 1

    x = first = tensor("x", (1, layers[0][0].shape[1]))
    for n, (w, b, name) in enumerate(layers):
        inputs = (x, tensor(f"w{n}", w.shape, w), tensor(f"b{n}", b.shape, b))
        x = tensor(f"sum{n}", (1, len(b)))
        operators.append(Operator("FULLY_CONNECTED", 1, inputs, (x,), {"fused": int(name == "relu")}))
        if name in ("logistic", "softmax"):
            y = tensor(f"{name}{n}", (1, len(b)))
            operators.append(Operator(name.upper(), 1, (x,), (y,), {"beta": 1.0} if name == "softmax" else {}))
            x = y
    return write(Graph("scikit-learn", 0, tuple(tensors), tuple(operators), (first,), (x,)))
