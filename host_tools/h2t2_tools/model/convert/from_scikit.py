"""scikit-learn's models, alone or behind scalers. Linear models and MLP become a float .tflite, which is quantised as one.

Scalers stay outside the int8 model: inside, one int8 scale would have to serve features of unlike ranges.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...common import trust
from ...common.errors import UserError
from ...common.extras import install_hint
from ..tflite import Graph, Operator, Tensor
from ..tflite_write import write
from . import int8_trees
from .ensembles import Member, Table, mean
from .from_boosters import own_names
from .from_tflite import of_network
from .quiet import quiet
from .scalers import SCALERS, Columns, behind, encoding, identity, numbered
from .scikit_trees import TREES, forest
from .trained_model import Encoding, NoInt8Form, Source

ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda z: np.maximum(z, 0),
    "logistic": lambda z: np.asarray(1 / (1 + np.exp(-z))),
    "tanh": np.tanh,
    "": lambda z: z,
}  # of hidden units
SUPPORTED = (
    f"{', '.join(TREES)}, LogisticRegression, LinearDiscriminantAnalysis, SGDClassifier, RidgeClassifier, LinearSVC, SVC "
    "with a linear kernel or MLPClassifier, the last four also inside CalibratedClassifierCV, each also in a search such as "
    f"GridSearchCV, alone or in a Pipeline behind {SCALERS}"
)
LINEAR = (
    *("LogisticRegression", "LogisticRegressionCV", "LinearSVC", "SVC", "LinearDiscriminantAnalysis", "SGDClassifier"),
    *("RidgeClassifier", "RidgeClassifierCV"),
)
MEANS = ("BaggingClassifier", "VotingClassifier")  # their scores are the mean of their parts' scores
MIXED = (*MEANS, "CalibratedClassifierCV", "AdaBoostClassifier")  # whose parts may be of unlike kinds
OF_ONE = "logistic", "isotonic"  # ends of a network that scores class 1 alone
REACH = 6.0  # of the numbers that an isotonic calibration takes
Layer = tuple[np.ndarray, np.ndarray, str]  # weights (outputs, inputs), bias (outputs,), activation


def ADA_BOOST(share: np.ndarray) -> np.ndarray:
    """The score that AdaBoostClassifier makes of the weights' share that votes for class 1."""
    return np.asarray(1 / (1 + np.exp(2 - 4 * share)))


@dataclass(frozen=True)
class Network:
    """A classifier as layers.

    Attributes:
        layers: In order; the last ends with "logistic" or "softmax". Where it is logistic and has more outputs than one, the
            score is their mean. "isotonic": each output is a function of its own of a number from -REACH to REACH.
        factor, offset, encoding: What is done to a sample before, as Source says.
        tables: The functions of "isotonic".
    """

    layers: list[Layer]
    factor: np.ndarray | float
    offset: np.ndarray | float
    encoding: Encoding | None = None
    tables: tuple[Table, ...] = ()

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Samples (n, inputs) to scores (n, outputs), in floats."""
        z = (self.encoding.apply(x) if self.encoding else x) * self.factor + self.offset
        for weights, bias, activation in self.layers:
            z = z @ weights.T + bias
            if activation == "softmax":
                z = np.exp(z - z.max(1, keepdims=True))
                z /= z.sum(1, keepdims=True)
            elif activation == "isotonic":
                z = np.column_stack([table(column) for table, column in zip(self.tables, z.T)])
            else:
                z = ACTIVATIONS[activation](z)
        return z.mean(1, keepdims=True) if self.layers[-1][2] in OF_ONE else z


def joblib_file(path: Path) -> Source:
    """Open a model that joblib or pickle saved."""
    return from_object(trusted(path), path)


def trusted(path: Path) -> Any:
    """Return what joblib or pickle saved in a file, as unpickled(). UserError where the user does not trust the file."""
    if path.is_file():
        trust.demand(str(path), ["loading it runs whatever program is in it"], [path.read_bytes()])
    return unpickled(path)


def unpickled(path: Path) -> Any:
    """Return what joblib or pickle saved in a file. Loading runs code from the file."""
    try:
        import joblib
        import sklearn  # noqa: F401
    except ImportError:
        raise UserError(f"{path}: needs scikit-learn; {install_hint('convert')}") from None
    try:
        with quiet():
            return joblib.load(path)
    except Exception as error:  # a pickle raises any error
        raise UserError(f"{path}: not a model saved by joblib: {type(error).__name__}: {error}") from None


def column_names(path: Path) -> list[str] | None:
    """The names of the columns that an estimator in a file was fitted on; None of one that was fitted on arrays."""
    return _names(trusted(path))


def _names(model: Any) -> list[str] | None:
    """The names of the columns that an estimator was fitted on; CatBoost has an attribute of its own for them."""
    model = _chosen(model)
    names = getattr(model, "feature_names_in_", None)
    if names is None and type(model).__name__ == "CatBoostClassifier":
        names = own_names(model.feature_names_)
    return None if names is None else [str(name).strip() for name in names]


def class_name(model: Any) -> str:
    """The class of an estimator, of a Pipeline or a search that of the classifier in it."""
    return type(_steps(model)[-1]).__name__


def has_layers(model: Any) -> bool:
    """Whether an estimator's scores are those of layers, which a .tflite can express."""
    try:
        return not _is_forest(_steps(model)[-1]) and not _network(model, Path("model.joblib")).tables
    except UserError:
        return False


def from_object(model: Any, path: Path = Path("model.joblib")) -> Source:
    """The source of a fitted estimator; path: what messages call it. A UserError names what works in its place."""
    try:
        return _source(model, path)
    except UserError as error:
        raise NoInt8Form(str(error)) if is_teacher(model) else error from None


def is_teacher(model: Any) -> bool:
    """Whether other models can be trained on the scores of a fitted estimator."""
    return hasattr(model, "classes_") and any(hasattr(model, name) for name in ("predict_proba", "decision_function"))


def _source(model: Any, path: Path) -> Source:
    *before, last = _steps(model)
    try:
        return _of_one_kind(model, before, last, path)
    except UserError:
        if type(last).__name__ not in MIXED or not hasattr(last, "classes_"):
            raise
        return _mixed(model, before, last, path)


def _mixed(model: Any, before: list[Any], last: Any, path: Path) -> Source:
    """The source of an ensemble of unlike members, or of a calibration of trees or of several classes."""
    from sklearn.pipeline import make_pipeline

    name, classes, final = type(last).__name__, len(last.classes_), None
    features = getattr(last, "estimators_features_", None)
    if before and features is not None and all(list(own) == list(range(last.n_features_in_)) for own in features):
        features = None
    if before and features is not None:
        raise UserError(f"{path}: {name} of parts that read some columns, behind other steps")

    def member_of(
        estimator: Any, columns: list[int] | None = None, weight: float = 1.0, tables: tuple[Table, ...] = ()
    ) -> Member:
        if len(estimator.classes_) != classes:
            raise UserError(f"{path}: {name} of parts that do not know all classes")
        if not tables and not hasattr(estimator, "predict_proba"):
            raise UserError(f"{path}: {name} of {class_name(estimator)}: its parts need predict_proba")
        pipeline = make_pipeline(*before, *_steps(estimator))
        own = _distances(pipeline, path) if tables else _source(pipeline, path)
        return Member(own, columns or list(range(own.shape[0])), weight, tables)

    if name == "CalibratedClassifierCV":
        members = [_calibrated_part(before, member, path) for member in last.calibrated_classifiers_]
    elif name == "AdaBoostClassifier":
        if classes > 2:
            raise UserError(f"{path}: {name} of {classes} classes: only of trees")
        weights = last.estimator_weights_ / last.estimator_weights_.sum()
        members = [member_of(own, weight=weight, tables=(_vote,)) for own, weight in zip(last.estimators_, weights)]
        final = ADA_BOOST
    else:
        if getattr(last, "voting", "soft") != "soft":
            raise UserError(f"{path}: VotingClassifier that counts votes has no scores: fit it with voting='soft'")
        weights = getattr(last, "weights", None)
        weights = [1.0] * len(last.estimators_) if weights is None else [float(w) for w in weights]
        places = [None] * len(weights) if features is None else [[int(n) for n in own] for own in features]
        members = [member_of(*entry) for entry in zip(last.estimators_, places, weights)]

    def scores(x: np.ndarray) -> np.ndarray:
        probability = np.asarray(_chosen(model).predict_proba(named(model, x)), float)
        return probability[:, 1:] if classes == 2 else probability

    size, shape = path.stat().st_size if path.exists() else 0, (_inputs(_steps(model)),)
    return mean(Source(f"scikit-learn {class_name(model)}", path, shape, size, scores, lambda x: b""), members, final)


def _calibrated_part(before: list[Any], member: Any, path: Path) -> Member:
    """One classifier that CalibratedClassifierCV has calibrated: a table behind each of its scores, or of its distances."""
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(*before, *_steps(_thawed(member.estimator)))
    last, classes = _steps(model)[-1], len(member.classes)
    if len(last.classes_) != classes or len(member.calibrators) != (classes if classes > 2 else 1):
        raise UserError(f"{path}: CalibratedClassifierCV of parts that do not know all classes")
    distances = hasattr(last, "decision_function")
    source = _distances(model, path) if distances and classes > 2 else _source(model, path)

    def table(calibrator: Any) -> Table:
        def of_scores(p: np.ndarray) -> np.ndarray:
            middle = np.clip(p, 1 / 512, 511 / 512)
            return np.asarray(calibrator.predict(np.log(middle / (1 - middle)) if distances and classes == 2 else p), float)

        return of_scores

    return Member(source, list(range(source.shape[0])), tables=tuple(table(own) for own in member.calibrators))


def _vote(distance: np.ndarray) -> np.ndarray:
    return np.asarray(distance > 0, float)


def _distances(model: Any, path: Path) -> Source:
    """The source of a linear classifier's distances. UserError for another classifier."""
    last = _steps(model)[-1]
    if type(last).__name__ not in LINEAR:
        raise UserError(f"{path}: distances of {type(last).__name__}: only those of {', '.join(LINEAR)} can be converted")
    network = _network(model, path)
    ((weights, bias, _),) = network.layers
    return of_network(
        "", path, (_inputs(_steps(model)),), 0, _tflite([(weights, bias, "")]), network.scores,
        factor=network.factor, offset=network.offset, encoding=network.encoding,
    )  # fmt: skip


def _thawed(estimator: Any) -> Any:
    """The estimator that a FrozenEstimator holds, or itself."""
    return estimator.estimator if type(estimator).__name__ == "FrozenEstimator" else estimator


def _of_one_kind(model: Any, before: list[Any], last: Any, path: Path) -> Source:
    if _is_forest(last):
        return _trees(model, before, last, path)
    network = _network(model, path)
    content = _tflite(network.layers)
    shape = (_inputs(_steps(model)),)

    def scores(x: np.ndarray) -> np.ndarray:
        if not hasattr(_chosen(model), "predict_proba"):
            return network.scores(x)
        probability = np.asarray(_chosen(model).predict_proba(named(model, x)), float)
        return probability[:, 1:] if network.layers[-1][2] in OF_ONE else probability

    size = path.stat().st_size if path.exists() else len(content)
    kind = f"scikit-learn {class_name(model)}"
    scaling = {"factor": network.factor, "offset": network.offset, "encoding": network.encoding}
    tables = list(network.tables)
    finish = partial(int8_trees.with_tables, tables=tables, reach=REACH) if tables else bytes
    return of_network(kind, path, shape, size, content, scores, finish, **scaling)


def _is_forest(last: Any) -> bool:
    """Whether a fitted classifier's scores are those of trees; of an ensemble's linear parts they are the mean of layers'."""
    name = type(last).__name__
    parts = last.estimators_ if name in MEANS and hasattr(last, "estimators_") else []
    linear = [type(_steps(part)[-1]).__name__ in LINEAR for part in parts]
    return name in TREES and hasattr(last, "classes_") and not (linear and all(linear))


def _trees(model: Any, before: list[Any], last: Any, path: Path) -> Source:
    """The source of a tree or a forest."""
    own, encoded = forest(last, path), None
    if before and own.encoding:
        raise UserError(f"{path}: XGBClassifier(missing={last.missing:g}) behind other steps: put NaN for what is missing")
    if before:
        (columns,), encoded = encoding([_columns(before, last, path)], path)
        own = own.behind(columns)

    def scores(x: np.ndarray) -> np.ndarray:
        probability = np.asarray(_chosen(model).predict_proba(named(model, x)), float)
        return probability[:, 1:] if len(own.base) == 1 else probability

    read = int8_trees.source(own, path, path.stat().st_size if path.exists() else 0, encoded)
    return replace(read, scores=scores, shape=(_inputs(_steps(model)),))


def _inputs(steps: list[Any]) -> int:
    """How many numbers of a sample these steps take; CatBoost's n_features_in_ is 0."""
    first = next(step for step in steps if hasattr(step, "n_features_in_"))
    return int(first.n_features_in_ or len(first.feature_names_))


def _columns(before: list[Any], last: Any, path: Path) -> Columns:
    """The columns that the classifier behind these steps reads."""
    columns = identity(_inputs([*before, last]))
    for step in before:
        columns = behind(columns, step, path)
    return columns


def _chosen(model: Any) -> Any:
    """The model itself, or the best that a search (GridSearchCV, RandomizedSearchCV, ...) found."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def named(model: Any, x: np.ndarray) -> Any:
    """Samples as the model was fitted with: a data frame where its columns have names and pandas is installed."""
    names = getattr(_chosen(model), "feature_names_in_", None)
    try:
        import pandas
    except ImportError:
        return x
    if names is None:
        return x
    frame = pandas.DataFrame(x, columns=list(names))
    for n, texts in numbered(branch_columns(model)).items():
        known = dict(enumerate(texts))
        frame[names[n]] = [number if number != number else known.get(round(number), "") for number in x[:, n].tolist()]
    return frame


def fitted_table(path: Path) -> tuple[dict[str, list[str]], bool, list[str] | None, tuple[str, ...]]:
    """(texts, missing, classes, columns) of an estimator in a file, as open.Table has them."""
    model = trusted(path)
    names = _names(model)
    branches = branch_columns(model)
    encoded = encoding(branches, path)[1] if branches else None
    classes = [*map(str, model.classes_)] if all(isinstance(name, str) for name in getattr(model, "classes_", [0])) else None
    texts = {names[n]: words for n, words in numbered(branches).items() if names}
    return texts, encoded is not None, classes, tuple(names or ())


def branch_columns(model: Any) -> list[Columns]:
    """The columns that a model, or each part of an ensemble, reads; [] of a model with steps that are not known."""
    *before, last = _steps(model)
    try:
        columns = _columns(before, last, Path("model.joblib"))
    except UserError:
        return []
    try:
        return [columns] if _is_forest(last) else [own for own, _ in _branches(last, columns, Path("model.joblib"))]
    except UserError:
        return [columns]


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
    columns, encoded = encoding([own for own, _ in branches], path)
    branches = [(own, layers) for own, (_, layers) in zip(columns, branches)]
    factor, offset = _first_scaling(columns)
    folded = [(*own.folded(*layers[0][:2], factor, offset), layers[0][2]) for own, layers in branches]
    first = np.concatenate([w for w, _, _ in folded]), np.concatenate([b for _, b, _ in folded]), folded[0][2]
    return Network(_without_dead_units([first, *branches[0][1][1:]]), factor, offset, encoded, _tables(last))


def _first_scaling(branches: list[Columns]) -> tuple[np.ndarray | float, np.ndarray | float]:
    """(factor, offset) for the numbers of a sample, of the first branch that reads each."""
    factor, offset = branches[0].first_scaling()
    for own in branches[1:]:
        unread = np.broadcast_to(factor == 0, own.inputs)
        if unread.any():
            later = [np.broadcast_to(numbers, own.inputs) for numbers in own.first_scaling()]
            factor, offset = np.where(unread, later[0], factor), np.where(unread, later[1], offset)
    return factor, offset


def _branches(last: Any, columns: Columns, path: Path) -> list[tuple[Columns, list[Layer]]]:
    """(the columns that it reads, its layers) of a classifier, or of each classifier whose scores have a mean."""
    if type(last).__name__ in MEANS:
        return _parts(last, columns, path)
    if type(last).__name__ != "CalibratedClassifierCV":
        return [(columns, _layers(last, path))]
    branches = [_calibrated(member, columns, path) for member in last.calibrated_classifiers_]
    if len(branches) > 1 and any(len(layers) > 1 for _, layers in branches):
        raise UserError(f"{path}: CalibratedClassifierCV of {len(branches)} networks: fit it with ensemble=False")
    return branches


def _parts(last: Any, columns: Columns, path: Path) -> list[tuple[Columns, list[Layer]]]:
    """(columns, layers) of the linear parts of an ensemble; a part with the weight 2 stands there twice."""
    name = type(last).__name__
    weights = [1.0] * len(last.estimators_) if getattr(last, "weights", None) is None else [float(w) for w in last.weights]
    features = getattr(last, "estimators_features_", [np.arange(last.n_features_in_)] * len(last.estimators_))
    branches: list[tuple[Columns, list[Layer]]] = []
    for part, weight, picked in zip(last.estimators_, np.array(weights) / min(weights), features):
        if len(last.classes_) > 2 or len(part.classes_) != 2 or not hasattr(part, "predict_proba") or weight != round(weight):
            raise UserError(
                f"{path}: {name} of {class_name(part)}: linear parts need predict_proba, two classes, and weights that are "
                "whole multiples of the smallest"
            )
        *before, tail = _steps(part)
        own = columns.picked([int(n) for n in picked])
        for step in before:
            own = behind(own, step, path)
        branches += [(own, _layers(tail, path))] * int(weight)
    return branches


def _calibrated(member: Any, columns: Columns, path: Path) -> tuple[Columns, list[Layer]]:
    """(columns, layers) of one classifier that CalibratedClassifierCV has calibrated."""
    if len(member.classes) > 2 or member.method not in ("sigmoid", "isotonic"):
        raise UserError(
            f"{path}: CalibratedClassifierCV with {member.method} calibration of {len(member.classes)} classes: only sigmoid "
            "and isotonic calibration of two classes can be converted; a softmax needs none"
        )
    *before, last = _steps(_thawed(member.estimator))
    for step in before:
        columns = behind(columns, step, path)
    end = "logistic" if member.method == "sigmoid" else "isotonic"
    calibrator = member.calibrators[0]
    if end == "logistic":
        slope, offset = -calibrator.a_, -calibrator.b_
    else:
        middle, half = _span(calibrator)
        slope, offset = REACH / half, -middle * REACH / half
    *layers, (weights, bias, activation) = _layers(last, path)
    if hasattr(last, "decision_function"):  # the distance is calibrated, else the probability
        return columns, [*layers, (weights * slope, bias * slope + offset, end)]
    return columns, [*layers, (weights, bias, activation), (np.array([[slope]]), np.array([offset]), end)]


def _tables(last: Any) -> tuple[Table, ...]:
    """The functions of a CalibratedClassifierCV with isotonic calibration, of numbers from -REACH to REACH; of others none."""
    members = [member for member in getattr(last, "calibrated_classifiers_", []) if member.method == "isotonic"]

    def table(calibrator: Any) -> Table:
        middle, half = _span(calibrator)
        return lambda z: np.asarray(calibrator.predict(middle + z * half / REACH), float)

    return tuple(table(member.calibrators[0]) for member in members)


def _span(calibrator: Any) -> tuple[float, float]:
    """(middle, half of the width) of the numbers between which an isotonic calibration is not constant."""
    low, high = float(calibrator.X_min_), float(calibrator.X_max_)
    return (low + high) / 2, max((high - low) / 2, 1e-6)


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
    names = [hidden] * (len(last.coefs_) - 1) + [last.out_activation_]
    return [(w.T, b, name) for w, b, name in zip(last.coefs_, last.intercepts_, names)]


def _linear(last: Any, path: Path) -> tuple[Any, Any]:
    """(weights (outputs, inputs), bias) of a linear classifier. UserError where they are no one score a class."""
    classes = len(last.classes_)
    if (
        type(last).__name__ in ("LogisticRegression", "LogisticRegressionCV")
        and classes > 2
        and getattr(last, "multi_class", "auto") == "ovr"
    ):
        raise UserError(f"{path}: one-versus-rest logistic regression has no softmax; fit it as multinomial")
    if type(last).__name__ == "SGDClassifier" and (last.loss not in ("log_loss", "hinge") or classes > 2):
        raise UserError(
            f"{path}: SGDClassifier with the loss {last.loss} for {classes} classes: only log_loss or hinge, of two"
        )
    if type(last).__name__ == "SVC" and (last.kernel != "linear" or classes > 2):
        raise UserError(
            f"{path}: SVC with the kernel {last.kernel} for {classes} classes: only a linear kernel and two classes can be "
            "converted; LinearSVC has one score a class"
        )
    return np.atleast_2d(last.coef_), np.atleast_1d(last.intercept_)


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

    def dense(x: int, name: str, w: np.ndarray, b: np.ndarray, activation: str) -> int:
        inputs = (x, tensor(f"w{name}", w.shape, w), tensor(f"b{name}", b.shape, b))
        y = tensor(f"sum{name}", (1, len(b)))
        operators.append(Operator("FULLY_CONNECTED", 1, inputs, (y,), {"fused": int(activation == "relu")}))
        if activation not in ("logistic", "softmax", "tanh"):
            return y
        z = tensor(f"{activation}{name}", (1, len(b)))
        operators.append(Operator(activation.upper(), 1, (y,), (z,), {"beta": 1.0} if activation == "softmax" else {}))
        return z

    x = first = tensor("x", (1, layers[0][0].shape[1]))
    count, end = len(layers[-1][1]), layers[-1][2]
    for n, (w, b, name) in enumerate(layers):
        if name != "isotonic":
            x = dense(x, str(n), w, b, name)
            continue
        rows = [dense(x, f"{n}row{k}", w[k : k + 1], b[k : k + 1], "logistic") for k in range(count)]  # with_tables() replaces
        x = rows[0] if count == 1 else tensor("rows", (1, count))
        if count > 1:
            operators.append(Operator("CONCATENATION", 1, tuple(rows), (x,), {"axis": 1, "fused": 0}))
    if end in OF_ONE and count > 1:  # their mean keeps the scale and the zero point of scores
        y = tensor("mean", (1, 1, 1, 1))
        window = {"padding": 1, "stride_w": 1, "stride_h": 1, "filter_w": count, "filter_h": 1, "fused": 0}
        operators.append(Operator("AVERAGE_POOL_2D", 1, (reshaped(x, "row", (1, 1, count, 1)),), (y,), window))
        x = reshaped(y, "score", (1, 1))
    return write(Graph("scikit-learn", 0, tuple(tensors), tuple(operators), (first,), (x,)))
