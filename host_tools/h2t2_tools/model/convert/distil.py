"""Trees trained on the scores of a model that has no int8 form, such as an SVC with an rbf kernel: `--distil`."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from . import int8_trees
from .quiet import quiet
from .scalers import encoding, numbered
from .scikit_trees import forest
from .teachers import teacher
from .trained_model import Source, checked

COPIES, SPREAD = 8, 0.3  # noisy copies of each sample, so that the trees see between them; of each number's deviation
TREES, LEAVES = 60, 8  # of each class
BINS = 64  # of a number; scikit-learn seeks the ends of 255 for longer than it trains, and the trees are no better
MOST_CATEGORIES = 16  # whole numbers of a column that get no noise


def student(path: Path, x: np.ndarray, missing_value: float | None = None) -> Source:
    """The source of boosted trees, whose scores are compared with those of the model.

    Args:
        path: The model, as teacher() opens it.
        x: Samples (n, numbers).
        missing_value: As open_source() takes it.

    Raises:
        UserError: teacher() refuses it, or it gives no scores.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    own, rng = teacher(path, missing_value), np.random.default_rng(1)
    branches = own.branches

    def teacher_scores(rows: np.ndarray) -> np.ndarray:
        with quiet():
            given = checked(np.asarray(own.scores(rows), float), path).reshape(len(rows), -1)
        return given if given.shape[1] > 1 else np.column_stack([1 - given, given])

    encoded = encoding(branches, path)[1] if branches else None
    categories = {n for branch in branches for n, equal in zip(branch.index, branch.equal) if equal is not None}
    categories |= {n for n, column in enumerate(x.T) if _is_category(column)}
    numbers = [n for n in range(x.shape[1]) if n not in {*categories, *numbered(branches)}]
    samples = np.tile(x, (COPIES + 1, 1))
    noise = rng.normal(0, SPREAD, (COPIES * len(x), len(numbers))) * np.nanstd(x[:, numbers], 0)
    samples[len(x) :, numbers] += noise.astype(np.float32)
    scores = teacher_scores(samples)
    classes = scores.shape[1]
    model = HistGradientBoostingClassifier(
        max_iter=TREES, max_leaf_nodes=LEAVES, max_bins=BINS, early_stopping=False, random_state=0
    )
    rows = encoded.apply(samples) if encoded else samples
    with quiet():  # each sample counts for a class as much as the model says
        model.fit(np.repeat(rows, classes, axis=0), np.tile(np.arange(classes), len(rows)), sample_weight=scores.ravel())
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    return replace(
        int8_trees.source(forest(model, path), path, size, encoded), kind=f"trees distilled from {own.kind}",
        scores=lambda rows: teacher_scores(rows)[:, int(classes == 2) :], shape=x.shape[1:],
    )  # fmt: skip


def _is_category(column: np.ndarray) -> bool:
    """Whether a column has a few whole numbers alone."""
    values = np.unique(column[~np.isnan(column)])
    return len(values) <= MOST_CATEGORIES and bool((values == np.rint(values)).all())
