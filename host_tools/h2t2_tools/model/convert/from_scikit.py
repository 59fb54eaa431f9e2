"""scikit-learn's models, alone or behind scalers. Linear models and MLP become a float .tflite, which is quantised as one.

Scalers stay outside the int8 model: inside, one int8 scale would have to serve features of unlike ranges.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from ..tflite import Graph, Operator, Tensor
from ..tflite_write import write
from . import int8_trees
from .from_tflite import quantise
from .quiet import quiet
from .scalers import SCALERS, Columns, behind, identity
from .scikit_trees import TREES, forest
from .source import Source

ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda z: np.maximum(z, 0),
    "logistic": lambda z: np.asarray(1 / (1 + np.exp(-z))),
    "": lambda z: z,
}  # of hidden units
SUPPORTED = (
    f"{', '.join(TREES)}, LogisticRegression, LinearSVC, SVC with a linear kernel or MLPClassifier, the last four also inside "
    f"CalibratedClassifierCV, each also in a search such as GridSearchCV, alone or in a Pipeline behind {SCALERS}"
)
LINEAR = ("LogisticRegression", "LinearSVC", "SVC")
Layer = tuple[np.ndarray, np.ndarray, str]  # weights (outputs, inputs), bias (outputs,), activation


@dataclass(frozen=True)
class Network:
    """A classifier as layers.

    Attributes:
        layers: In order; the last ends with "logistic" or "softmax". Where it is logistic and has more outputs than one, the
            score is their mean.
        factor, offset: What is done to a sample before, as Source says.
    """

    layers: list[Layer]
    factor: np.ndarray | float
    offset: np.ndarray | float

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Samples (n, inputs) to scores (n, outputs), in floats."""
        z = x * self.factor + self.offset
        for weights, bias, activation in self.layers:
            z = z @ weights.T + bias
            if activation == "softmax":
                z = np.exp(z - z.max(1, keepdims=True))
                z /= z.sum(1, keepdims=True)
            else:
                z = ACTIVATIONS[activation](z)
        return z.mean(1, keepdims=True) if self.layers[-1][2] == "logistic" else z


def joblib_file(path: Path) -> Source:
    """Open a model that joblib or pickle saved. Loading runs code from the file: load only files that you trust."""
    return from_object(unpickled(path), path)


def unpickled(path: Path) -> Any:
    """Return what joblib or pickle saved in a file, as joblib_file() does."""
    try:
        import joblib
        import sklearn  # noqa: F401
    except ImportError:
        raise UserError("scikit-learn sources need the extra `convert`: pip install 'h2t2-edge[convert]'") from None
    try:
        with quiet():
            return joblib.load(path)
    except Exception as error:  # a pickle raises any error
        raise UserError(f"{path}: not a model saved by joblib: {type(error).__name__}: {error}") from None


def class_name(model: Any) -> str:
    """The class of an estimator, of a Pipeline or a search that of the classifier in it."""
    return type(_steps(model)[-1]).__name__


def has_layers(model: Any) -> bool:
    """Whether an estimator's scores are those of layers, which a .tflite can express."""
    try:
        return type(_steps(model)[-1]).__name__ not in TREES and bool(_network(model, Path("model.joblib")).layers)
    except UserError:
        return False


def from_object(model: Any, path: Path = Path("model.joblib")) -> Source:
    """The source of a fitted estimator; path: what messages call it."""
    *before, last = _steps(model)
    if type(last).__name__ in TREES and hasattr(last, "classes_"):
        return _trees(model, before, last, path)
    network = _network(model, path)
    content = _tflite(network.layers)
    shape = (network.layers[0][0].shape[1],)

    def scores(x: np.ndarray) -> np.ndarray:
        if not hasattr(_chosen(model), "predict_proba"):
            return network.scores(x)
        probability = np.asarray(_chosen(model).predict_proba(_named(model, x)), float)
        return probability[:, 1:] if network.layers[-1][2] == "logistic" else probability

    size = path.stat().st_size if path.exists() else len(content)
    return Source(
        f"scikit-learn {class_name(model)}", path, shape, size, scores,
        lambda x: quantise(content, x, path), factor=network.factor, offset=network.offset,
    )  # fmt: skip


def _trees(model: Any, before: list[Any], last: Any, path: Path) -> Source:
    """The source of a tree or a forest."""
    own = forest(last, path).behind(_columns(before, last, path))

    def scores(x: np.ndarray) -> np.ndarray:
        probability = np.asarray(_chosen(model).predict_proba(_named(model, x)), float)
        return probability[:, 1:] if len(own.base) == 1 else probability

    read = int8_trees.source(own, path, path.stat().st_size if path.exists() else 0)
    return replace(read, scores=scores)


def _columns(before: list[Any], last: Any, path: Path) -> Columns:
    """The columns that the classifier behind these steps reads."""
    columns = identity(next(step.n_features_in_ for step in (*before, last) if hasattr(step, "n_features_in_")))
    for step in before:
        columns = behind(columns, step, path)
    return columns


def _chosen(model: Any) -> Any:
    """The model itself, or the best that a search (GridSearchCV, RandomizedSearchCV, ...) found."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def _named(model: Any, x: np.ndarray) -> Any:
    """Samples as the model was fitted with: a data frame where its columns have names and pandas is installed."""
    names = getattr(_chosen(model), "feature_names_in_", None)
    try:
        import pandas
    except ImportError:
        return x
    return x if names is None else pandas.DataFrame(x, columns=list(names))


def _steps(model: Any) -> list[Any]:
    """The steps of a model, the classifier last."""
    model = _chosen(model)
    steps = [step for _, step in model.steps] if type(model).__name__ == "Pipeline" else [model]
    return [*steps[:-1], *_steps(steps[-1])] if hasattr(steps[-1], "best_estimator_") else steps


def _network(model: Any, path: Path) -> Network:
    *before, last = _steps(model)
    if not hasattr(last, "classes_"):
        raise UserError(f"{path}: {type(last).__name__} is not a fitted classifier; {SUPPORTED} can be converted")
    branches = _branches(last, _columns(before, last, path), path)
    factor, offset = branches[0][0].first_scaling()
    folded = [(*own.folded(*layers[0][:2], factor, offset), layers[0][2]) for own, layers in branches]
    first = np.concatenate([w for w, _, _ in folded]), np.concatenate([b for _, b, _ in folded]), folded[0][2]
    return Network(_without_dead_units([first, *branches[0][1][1:]]), factor, offset)


def _branches(last: Any, columns: Columns, path: Path) -> list[tuple[Columns, list[Layer]]]:
    """(the columns that it reads, its layers) of a classifier, or of each classifier whose scores have a mean."""
    if type(last).__name__ != "CalibratedClassifierCV":
        return [(columns, _layers(last, path))]
    branches = [_calibrated(member, columns, path) for member in last.calibrated_classifiers_]
    if len(branches) > 1 and any(len(layers) > 1 for _, layers in branches):
        raise UserError(f"{path}: CalibratedClassifierCV of {len(branches)} networks: fit it with ensemble=False")
    return branches


def _calibrated(member: Any, columns: Columns, path: Path) -> tuple[Columns, list[Layer]]:
    """(columns, layers) of one classifier that CalibratedClassifierCV has calibrated."""
    if len(member.classes) > 2 or member.method != "sigmoid":
        raise UserError(
            f"{path}: CalibratedClassifierCV with {member.method} calibration of {len(member.classes)} classes: only sigmoid "
            "calibration of two classes can be converted; a softmax needs none"
        )
    estimator = getattr(member.estimator, "estimator", member.estimator)  # FrozenEstimator holds another
    *before, last = _steps(estimator)
    for step in before:
        columns = behind(columns, step, path)
    slope, offset = -member.calibrators[0].a_, -member.calibrators[0].b_
    *layers, (weights, bias, activation) = _layers(last, path)
    if hasattr(last, "decision_function"):  # the distance is calibrated, else the probability
        return columns, [*layers, (weights * slope, bias * slope + offset, "logistic")]
    return columns, [*layers, (weights, bias, activation), (np.array([[slope]]), np.array([offset]), "logistic")]


def _layers(last: Any, path: Path) -> list[Layer]:
    """The layers of a classifier without what stands before it. Distances become scores by a logistic function or a softmax."""
    name = type(last).__name__
    if name in LINEAR:
        weights, bias = (np.asarray(numbers, float) for numbers in _linear(last, path))
        if getattr(last, "probability", False) is True:  # Platt's, which libsvm fits to minus the distance
            weights, bias = weights * -last.probA_[0], bias * -last.probA_[0] + last.probB_[0]
        return [(weights, bias, "logistic" if len(last.classes_) == 2 else "softmax")]
    if name != "MLPClassifier":
        raise UserError(f"{path}: {name} cannot be converted; {SUPPORTED} can")
    hidden = "" if last.activation == "identity" else last.activation
    if hidden not in ACTIVATIONS:
        raise UserError(f"{path}: MLPClassifier with {last.activation} hidden units; relu, logistic and identity are supported")
    names = [hidden] * (len(last.coefs_) - 1) + [last.out_activation_]
    return [(w.T, b, name) for w, b, name in zip(last.coefs_, last.intercepts_, names)]


def _linear(last: Any, path: Path) -> tuple[Any, Any]:
    """(weights (outputs, inputs), bias) of a linear classifier. UserError where they are no one score a class."""
    classes = len(last.classes_)
    if type(last).__name__ == "LogisticRegression" and classes > 2 and getattr(last, "multi_class", "auto") == "ovr":
        raise UserError(f"{path}: one-versus-rest logistic regression has no softmax; fit it as multinomial")
    if type(last).__name__ == "SVC" and (last.kernel != "linear" or classes > 2):
        raise UserError(
            f"{path}: SVC with the kernel {last.kernel} for {classes} classes: only a linear kernel and two classes can be "
            "converted; LinearSVC has one score a class"
        )
    return last.coef_, last.intercept_


def _without_dead_units(layers: list[Layer]) -> list[Layer]:
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


def _tflite(layers: list[Layer]) -> bytes:
    tensors: list[Tensor] = []
    operators: list[Operator] = []

    def tensor(name: str, shape: tuple[int, ...], data: np.ndarray | None = None, dtype: str = "float32") -> int:
        stored = None if data is None else np.ascontiguousarray(data, dtype)
        tensors.append(Tensor(len(tensors), name, shape, dtype, stored))
        return len(tensors) - 1

    def reshaped(x: int, name: str, shape: tuple[int, ...]) -> int:
        y = tensor(name, shape)
        operators.append(
            Operator("RESHAPE", 1, (x, tensor(f"{name} shape", (len(shape),), np.array(shape), "int32")), (y,), {})
        )
        return y

    x = first = tensor("x", (1, layers[0][0].shape[1]))
    for n, (w, b, name) in enumerate(layers):
        inputs = (x, tensor(f"w{n}", w.shape, w), tensor(f"b{n}", b.shape, b))
        x = tensor(f"sum{n}", (1, len(b)))
        operators.append(Operator("FULLY_CONNECTED", 1, inputs, (x,), {"fused": int(name == "relu")}))
        if name in ("logistic", "softmax"):
            y = tensor(f"{name}{n}", (1, len(b)))
            operators.append(Operator(name.upper(), 1, (x,), (y,), {"beta": 1.0} if name == "softmax" else {}))
            x = y
    count = len(layers[-1][1])
    if layers[-1][2] == "logistic" and count > 1:  # their mean keeps the scale and the zero point of scores
        y = tensor("mean", (1, 1, 1, 1))
        window = {"padding": 1, "stride_w": 1, "stride_h": 1, "filter_w": count, "filter_h": 1, "fused": 0}
        operators.append(Operator("AVERAGE_POOL_2D", 1, (reshaped(x, "row", (1, 1, count, 1)),), (y,), window))
        x = reshaped(y, "score", (1, 1))
    return write(Graph("scikit-learn", 0, tuple(tensors), tuple(operators), (first,), (x,)))
