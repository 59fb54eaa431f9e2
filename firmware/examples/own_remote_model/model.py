"""A remote model as a Python function: here the mean of the measurement, mapped to [0, 1]. Replace it by yours."""

import numpy as np

SCALE, ZERO_POINT = 0.02663755975663662, -23  # `remote` in models/breast_cancer/pair.json


def scores(batch: np.ndarray) -> np.ndarray:
    """Return the scores of class 1, (n,) in [0, 1], for int8 samples (n, 30)."""
    real = (batch.astype(np.float32) - ZERO_POINT) * SCALE
    return 1 / (1 + np.exp(-real.mean(axis=1)))
