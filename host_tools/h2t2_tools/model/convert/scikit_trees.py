"""scikit-learn's trees: random forests, extra trees, gradient boosting, single trees."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from . import from_boosters
from .forest import Forest, Link, Tree, ordered

FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
BOOSTED = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
BOOSTERS = ("LGBMClassifier", "XGBClassifier", "CatBoostClassifier")
ENSEMBLES = ("BaggingClassifier", "AdaBoostClassifier", "VotingClassifier")  # of trees
SINGLE = ("DecisionTreeClassifier", "ExtraTreeClassifier")
TREES = (*FORESTS, *BOOSTED, *SINGLE, *BOOSTERS, *ENSEMBLES)


def forest(model: Any, path: Path) -> Forest:
    """The trees of a fitted classifier of one of the classes TREES; path: what messages call it."""
    name = type(model).__name__
    if name == "GradientBoostingClassifier":
        return _boosted(model, path)
    if name == "HistGradientBoostingClassifier":
        return _histograms(model, path)
    if name in BOOSTERS:
        return from_boosters.of_object(model, path)
    if name == "AdaBoostClassifier":
        return _ada_boost(model, path)
    if name in ENSEMBLES:
        return _ensemble(model, path)
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


def _ensemble(model: Any, path: Path) -> Forest:
    """The mean of the members' scores: BaggingClassifier, and VotingClassifier of probabilities."""
    name, classes = type(model).__name__, len(model.classes_)
    if name == "VotingClassifier" and model.voting != "soft":
        raise UserError(f"{path}: VotingClassifier that counts votes has no scores: fit it with voting='soft'")
    weights = np.ones(len(model.estimators_)) if getattr(model, "weights", None) is None else np.asarray(model.weights, float)
    features = getattr(model, "estimators_features_", [np.arange(model.n_features_in_)] * len(model.estimators_))
    trees: list[Tree] = []
    for member, weight, columns in zip(model.estimators_, weights / weights.sum(), features):
        own = forest(member, path) if type(member).__name__ in TREES else None
        if own is None or own.link != "none" or len(member.classes_) != classes:
            raise UserError(
                f"{path}: {name} of {type(member).__name__}: only of trees and forests, each fitted on all classes, or of "
                "linear classifiers alone, can be converted"
            )
        place = np.asarray(columns)
        trees += [
            replace(tree, feature=np.where(tree.feature < 0, -1, place[tree.feature]), value=tree.value * weight)
            for tree in own.trees
        ]
    return Forest(f"scikit-learn {name}", model.n_features_in_, trees, None, np.zeros(1 if classes == 2 else classes), "none")


def _ada_boost(model: Any, path: Path) -> Forest:
    """Each tree votes for one class, with its weight."""
    classes = len(model.classes_)
    trees, output = [], []
    for member, weight in zip(model.estimators_, model.estimator_weights_ / model.estimator_weights_.sum()):
        if type(member).__name__ not in SINGLE or len(member.classes_) != classes:
            raise UserError(f"{path}: AdaBoostClassifier of {type(member).__name__}: only of trees that know all classes")
        votes = member.tree_.value[:, 0, :].argmax(1)
        if classes == 2:
            trees.append(_tree(member.tree_, np.where(votes == 1, 2.0, -2.0)[:, None] * weight))
            output.append(0)
            continue
        for n in range(classes):
            share = np.where(votes == n, 1 / (classes - 1), -1 / (classes - 1) ** 2)
            trees.append(_tree(member.tree_, share[:, None] * weight))
            output.append(n)
    link: Link = "logistic" if classes == 2 else "softmax"
    kind, outputs = "scikit-learn AdaBoostClassifier", 1 if classes == 2 else classes
    return Forest(kind, model.n_features_in_, trees, output, np.zeros(outputs), link)


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
