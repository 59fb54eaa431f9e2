"""A full-int8 .tflite, by the real interpreter."""

import numpy as np

from h2t2.cpython.tflite import TFLiteModel

from .model_source import Source
from .tensors import Batch, Model, integers


class TFLite(Model):
    """A .tflite model. It runs sample after sample: TFLite's CPU kernels gain nothing from a batch."""

    raw = False

    def __init__(self, source: Source) -> None:
        self._model = TFLiteModel(source.path, event=source.event or 0, resolver=source.resolver)
        self._source = source
        self.shape: tuple[int, ...] | None = self._model.input_shape[1:]

    def scores(self, batch: Batch) -> np.ndarray:
        x = integers(batch, self._source)
        if self._source.event is None:
            return np.array([self._model.scores(sample) for sample in x])
        return np.array([self._model.score(self._model.run(sample)) for sample in x])
