"""A function of the user's own, FILE.py:FUNCTION."""

import numpy as np

from ....common.user_function import load_user_function
from .model_source import Source
from .tensors import Batch, Model, floats, picked


class Function(Model):
    """FILE.py:FUNCTION, called with an array (n, *sample), as sent or restored to float32, or with a list of n RAW bytes.

    It returns n scores of the event, or (n, K) of all classes, as predict_proba does.
    """

    raw = True

    def __init__(self, source: Source) -> None:
        self._call = load_user_function(source.path)
        self.shape: tuple[int, ...] | None = None
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        tensors = not isinstance(batch, list)
        source = self._source
        scores = np.asarray(self._call(floats(batch, source) if tensors and source.floats else batch), dtype=float)
        if scores.ndim < 2 or source.event is None:
            return scores if source.event is None else scores.reshape(-1)
        if 1 < scores.shape[1] <= source.event:
            raise ValueError(f"{source.path}: {scores.shape[1]} scores a sample, none of them of class {source.event}")
        return picked(scores, source.event)
