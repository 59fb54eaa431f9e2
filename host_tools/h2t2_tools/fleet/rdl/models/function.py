"""A function of the user's own, FILE.py:FUNCTION."""

import numpy as np

from ....common.functions import load_user_function
from .source import Source
from .tensors import Batch, floats


class Function:
    """FILE.py:FUNCTION, called with an array (n, *sample), as sent or restored to float32, or with a list of n RAW bytes. It
    returns n scores, or (n, K)."""

    raw = True

    def __init__(self, source: Source) -> None:
        self._call = load_user_function(source.path)
        self.shape: tuple[int, ...] | None = None
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        tensors = not isinstance(batch, list)
        scores = np.asarray(self._call(floats(batch, self._source) if tensors and self._source.floats else batch), dtype=float)
        return scores if self._source.event is None else scores.reshape(-1)
