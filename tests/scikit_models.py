"""Models that a user has trained with scikit-learn, in files."""

import numpy as np
import pytest


def scaled(classifier, x, y):
    """Fit a StandardScaler with a classifier behind it."""
    pipeline, preprocessing = (pytest.importorskip(f"sklearn.{name}") for name in ("pipeline", "preprocessing"))
    return pipeline.make_pipeline(preprocessing.StandardScaler(), classifier).fit(x, y)


def logistic(x, y, **options):
    return scaled(pytest.importorskip("sklearn.linear_model").LogisticRegression(**options), x, y)


def network(x, y):
    kind = pytest.importorskip("sklearn.neural_network").MLPClassifier
    return scaled(kind((16,), solver="lbfgs", max_iter=2000, random_state=1), x, y)


def save(folder, x, y, **models):
    """Write test.npz, and each model as NAME.joblib."""
    for name, model in models.items():
        pytest.importorskip("joblib").dump(model, folder / f"{name}.joblib")
    np.savez(folder / "test.npz", x=x, y=y)
