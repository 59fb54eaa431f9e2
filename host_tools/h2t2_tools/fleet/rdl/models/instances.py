"""A remote model behind a URL, as TensorFlow Serving and KServe have it: POST {"instances": []} gives {"predictions": []}."""

import base64
from typing import Any

import numpy as np

from .source import Source
from .tensors import Batch, floats, picked
from .web import Web


class Instances:
    """A server's model. It takes the floats of a sample, or RAW bytes as {"b64": ...}."""

    raw = True
    shape: tuple[int, ...] | None = None

    def __init__(self, source: Source) -> None:
        self._source, self._web = source, Web.of(source)

    def scores(self, batch: Batch) -> np.ndarray:
        s = self._source
        samples: list[Any]
        if isinstance(batch, list):
            samples = [{"b64": base64.b64encode(data).decode()} for data in batch]
        else:
            samples = floats(batch, s).tolist()
        answer = self._web.json(s.path, {"instances": samples})
        if "predictions" not in answer:
            raise ValueError(f'{s.path}: no "predictions" in its answer')
        scores = np.asarray(answer["predictions"], dtype=float)
        return scores if scores.ndim < 2 else picked(scores.reshape(len(batch), -1), s.event)
