"""A remote model as a Python function: here the mean of the measurement, squashed. Put yours in its place."""

import numpy as np

SCALE, ZERO_POINT = 0.02663755975663662, -23  # `remote` in models/breast_cancer/pair.json


def scores(batch: np.ndarray) -> np.ndarray:
    """int8 (n, 30) to the scores of class 1, (n,), in [0, 1]."""
    real = (batch.astype(np.float32) - ZERO_POINT) * SCALE
    return 1 / (1 + np.exp(-real.mean(axis=1)))
