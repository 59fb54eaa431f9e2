"""The two data sets that scikit-learn contains."""

from pathlib import Path
from typing import Any

import numpy as np

from h2t2_tools.common.errors import UserError

from .data import Data, split


def _module() -> Any:
    try:
        from sklearn import datasets
    except ImportError:
        raise UserError("this data set comes with scikit-learn: pip install scikit-learn") from None
    return datasets


def breast_cancer(folder: Path | None = None) -> Data:
    """Load Breast Cancer Wisconsin (Diagnostic): 569 samples of 30 features, 40 % for the test; class 1 is malignant."""
    data = _module().load_breast_cancer()
    y = (data.target == 0).astype(np.uint8)
    x = data.data.astype(np.float32)
    return Data("breast_cancer", *split(x, y, 228), ("benign", "malignant"), "scikit-learn")


def digits(folder: Path | None = None) -> Data:
    """Load handwritten digits (Optical Recognition): 1,797 grey images of 8 x 8 (0..16), ten classes, half for the test."""
    data = _module().load_digits()
    x = data.images.astype(np.uint8)
    return Data("digits", *split(x, data.target.astype(np.uint8), 898), tuple("0123456789"), "scikit-learn")
