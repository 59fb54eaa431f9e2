"""Streams of scores, labels and features, in order: a small local model is trained on the first samples and meets the others.

They need the data sets weather, chest_xray and chest_ct, whose loaders say where these come from, and scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from h2t2_tools.common.errors import UserError
from h2t2_tools.common.npz import arrays
from h2t2_tools.common.score_rules import Q14

from . import in_order, scikit
from .data import find, pooled

CALIBRATION = 300  # samples whose features are whitened to variance 1; no label is used
SIZE = 16  # whitened features
SMOOTHING = 1e-2  # added to the variances
LARGEST = 127 / 32


@dataclass(frozen=True)
class Featured:
    """score: (n,) of class 1, or (n, K) of all classes; label: (n,) class numbers; features: (n, d), about variance 1."""

    score: np.ndarray
    label: np.ndarray
    features: np.ndarray

    def samples(self) -> np.ndarray:
        """The integers that a policy with heads takes, features in 1/32: (n, 1 + d) with the score in 1/256, or (n, K + d)."""
        if self.score.ndim == 2:
            score = np.round(self.score * Q14).astype(np.int64)
        else:
            score = np.minimum((self.score * 256).astype(np.int64), 255)
        return np.column_stack([score, np.round(np.clip(self.features, -LARGEST, LARGEST) * 32).astype(np.int64)])

    def with_noise(self, seed: int) -> Featured:
        """The same scores and labels, with features that tell nothing."""
        noise = np.random.default_rng(seed).normal(size=(len(self.label), SIZE))
        return Featured(self.score, self.label, noise)

    def draw(self, samples: int, seed: int) -> Featured:
        """Samples drawn uniformly with replacement."""
        picked = np.random.default_rng([seed, 1]).integers(0, len(self.label), samples)
        return Featured(self.score[picked], self.label[picked], self.features[picked])

    def shifted(self) -> Featured:
        """Every label of the second half the next class, which is the other one of two."""
        classes = 2 if self.score.ndim == 1 else self.score.shape[1]
        label = self.label.copy()
        label[len(label) // 2 :] = (label[len(label) // 2 :] + 1) % classes
        return Featured(self.score, label, self.features)


def whitened(features: np.ndarray) -> np.ndarray:
    """(n, d) features as at most SIZE uncorrelated ones, by the covariance of the first CALIBRATION rows."""
    first = features[:CALIBRATION]
    mean = first.mean(0)
    values, vectors = np.linalg.eigh(np.cov((first - mean).T) + SMOOTHING * np.eye(features.shape[1]))
    order = np.argsort(-values)[:SIZE]
    result: np.ndarray = (features - mean) @ vectors[:, order] / np.sqrt(values[order])
    return result


@dataclass(frozen=True)
class Days:
    """The days of the weather in their order, as a device meets them.

    Attributes:
        x_train, y_train: (n, 8) measurements and (n,) labels of the first 1,000 days.
        x, label: Of the days that follow.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x: np.ndarray
    label: np.ndarray

    def first(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the score of a local model that knows the first days."""
        return fitted(self.x_train, self.y_train, np.ones(len(self.y_train)))

    def featured(self) -> Featured:
        """Return the stream of that local model; features: the eight measurements."""
        return Featured(self.first()(self.x), self.label, whitened(self.x.astype(float)))


def fitted(x: np.ndarray, label: np.ndarray, weight: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the score, (n, d) -> (n,), of a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=2000).fit(x, label, sample_weight=weight)
    return lambda rows: np.asarray(model.predict_proba(rows)[:, 1])


def days() -> Days:
    """Load the days of the weather. UserError, which says what is missing."""
    _need_scikit()
    data = in_order.weather()
    train, test = np.clip(data.x_train, -4, 4), np.clip(data.x_test, -4, 4)
    return Days(train, data.y_train, test, data.y_test.astype(np.int64))


def weather() -> Featured:
    """A logistic regression on the first 1,000 days; features: its eight inputs."""
    return days().featured()


def pneumonia() -> Featured:
    """A network of 16 hidden units that knows 300 X-rays meets the others; features: its hidden units."""
    x, y = _x_rays()
    order = np.random.default_rng(0).permutation(4708)
    later = np.r_[order[300:], 4708 : len(y)]
    return _network(x[order[:300]], y[order[:300]], x[later], y[later], 16)


def x_ract() -> Featured:
    """A network of 16 hidden units that knows CT scans meets X-rays; features: its hidden units."""
    images, labels = arrays(find(None, "chest_ct*.npz"), "images", "labels")
    scans = images.astype(float) / 255
    scans = pooled(scans, 4).reshape(-1, 16, 16)[:, 1:15, 1:15].reshape(len(scans), -1)
    x, y = _x_rays()
    order = np.random.default_rng(1).permutation(len(y))
    return _network(scans, labels.reshape(-1).astype(int), x[order], y[order], 16)


def digits() -> Featured:
    """A network of 8 hidden units that knows 100 digits tells the 8 from the others; features: its hidden units."""
    images, digit = scikit.digits().all_samples()
    x, y = images.reshape(-1, 64) / 16, (digit == 8).astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    return _network(x[order[:100]], y[order[:100]], x[order[100:]], y[order[100:]], 8)


def ten_digits() -> Featured:
    """The logistic regression of the trace digits_10, on a quarter of the pixels, meets the other half of all digits.

    Features: its inputs.
    """
    from sklearn.linear_model import LogisticRegression

    _need_scikit()
    data = scikit.digits()
    train, test = (x[:, ::2, ::2].reshape(len(x), -1) / 16 for x in (data.x_train, data.x_test))
    model = LogisticRegression(C=1e4, max_iter=5000).fit(train, data.y_train)
    features = whitened(np.concatenate([train, test]))[len(train) :]
    return Featured(model.predict_proba(test), data.y_test.astype(np.int64), features)


STREAMS: dict[str, Callable[[], Featured]] = {"weather": weather, "x_ract": x_ract, "pneumonia": pneumonia, "digits": digits}


def streams() -> Iterator[tuple[str, Featured | UserError]]:
    """Yield each of STREAMS with its name; in place of one whose data set is not here, the error that says what is missing."""
    for name, load in STREAMS.items():
        try:
            _need_scikit()
            yield name, load()
        except UserError as error:  # the data set is not among those that the product ships
            yield name, error


def _need_scikit() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise UserError("streams with features need scikit-learn: pip install scikit-learn") from None


def _x_rays() -> tuple[np.ndarray, np.ndarray]:
    """All X-rays as (n, 196) grey levels of 0..1, and their labels, in the order of the file."""
    path = find(None, "pneumoniamnist*.npz")
    columns = [arrays(path, *(f"{subset}_{kind}" for subset in ("train", "val", "test"))) for kind in ("images", "labels")]
    images, labels = (np.concatenate(column) for column in columns)
    x = images.astype(float) / 255
    return pooled(x, 2), labels.reshape(-1).astype(int)


def _network(x_train: Any, y_train: Any, x: Any, y: Any, hidden: int) -> Featured:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 500 steps are the model, converged or not
        model = MLPClassifier((hidden,), alpha=1.0, max_iter=500, random_state=0).fit(x_train, y_train)

    def units(rows: np.ndarray) -> np.ndarray:
        active: np.ndarray = np.maximum(0, rows @ model.coefs_[0] + model.intercepts_[0])
        return active

    first = units(x_train)
    scaled = np.clip((units(x) - first.mean(0)) / (first.std(0) + 1e-6), -4, 4)
    return Featured(model.predict_proba(x)[:, 1], y.astype(np.int64), whitened(scaled))
