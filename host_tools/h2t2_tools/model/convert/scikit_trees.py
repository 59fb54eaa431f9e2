"""scikit-learn's trees: random forests, extra trees, gradient boosting, single trees."""

from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from .forest import Forest, Link, Tree, ordered

FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
BOOSTED = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
TREES = (*FORESTS, *BOOSTED, "DecisionTreeClassifier", "ExtraTreeClassifier")


def forest(model: Any, path: Path) -> Forest:
    """The trees of a fitted classifier of one of the classes TREES; path: what messages call it."""
    name = type(model).__name__
    if name == "GradientBoostingClassifier":
        return _boosted(model, path)
    if name == "HistGradientBoostingClassifier":
        return _histograms(model, path)
    if getattr(model, "n_outputs_", 1) != 1:
        raise UserError(f"{path}: {name} with {model.n_outputs_} outputs: fit one for each")
    members = model.estimators_ if name in FORESTS else [model]
    classes = len(model.classes_)
    trees = [_tree(member.tree_, _shares(member.tree_, classes) / len(members)) for member in members]
    outputs = 1 if classes == 2 else classes
    return Forest(f"scikit-learn {name}", model.n_features_in_, trees, None, np.zeros(outputs), "none")


def _shares(tree: Any, classes: int) -> np.ndarray:
    """The share of each class at each node, (nodes, classes); of two classes that of the second alone."""
    value = tree.value[:, 0, :]
    shares = value / value.sum(1, keepdims=True)
    return np.asarray(shares[:, 1:] if classes == 2 else shares)


def _tree(tree: Any, value: np.ndarray) -> Tree:
    feature = np.where(tree.children_left < 0, -1, tree.feature)
    return ordered(feature, tree.threshold, tree.children_left, tree.children_right, value)


def _boosted(model: Any, path: Path) -> Forest:
    inputs, classes = model.n_features_in_, model.estimators_.shape[1]
    if type(model.init_).__name__ not in ("DummyClassifier", "str"):
        raise UserError(f"{path}: GradientBoostingClassifier that begins with a {type(model.init_).__name__}: leave `init` out")
    rate = model.learning_rate * (2 if model.loss == "exponential" else 1)  # of it the score is that of twice the sum
    trees = [_tree(member.tree_, member.tree_.value[:, 0, :] * rate) for row in model.estimators_ for member in row]
    output = list(range(classes)) * len(model.estimators_)
    link: Link = "logistic" if classes == 1 else "softmax"
    bare = Forest("scikit-learn GradientBoostingClassifier", inputs, trees, output, np.zeros(classes), link)
    at = np.zeros((1, inputs), np.float32)
    base = np.atleast_1d(model.decision_function(at)[0]) * (2 if model.loss == "exponential" else 1) - bare.sums(at)[0]
    return Forest(bare.kind, inputs, trees, output, base, link)


def _histograms(model: Any, path: Path) -> Forest:
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise UserError(f"{path}: HistGradientBoostingClassifier with categorical features: encode them as numbers before")
    trees, output = [], []
    for row in model._predictors:
        for n, predictor in enumerate(row):
            nodes = predictor.nodes
            feature = np.where(nodes["is_leaf"], -1, nodes["feature_idx"].astype(np.int64))
            trees.append(ordered(feature, nodes["num_threshold"], nodes["left"], nodes["right"], nodes["value"][:, None]))
            output.append(n)
    base = np.ravel(model._baseline_prediction).astype(float)
    kind = "scikit-learn HistGradientBoostingClassifier"
    return Forest(kind, model.n_features_in_, trees, output, base, "logistic" if len(base) == 1 else "softmax")
