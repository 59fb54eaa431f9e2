"""A remote model behind a URL, as TensorFlow Serving and KServe have it: POST {"instances": []} gives {"predictions": []}."""

import base64

import numpy as np

from ....common.fields import COMPLEMENT
from ...failures import Misconfigured
from .tensors import Batch, floats, picked
from .web import WebModel


class Instances(WebModel):
    """A server's model. It takes the floats of a sample, or RAW bytes as {"b64": ...}."""

    def scores(self, batch: Batch, timeout_s: float = 0.0) -> np.ndarray:
        s = self._source
        encoded = isinstance(batch, list)
        samples = [{"b64": base64.b64encode(x).decode()} for x in batch] if encoded else floats(batch, s).tolist()
        answer = self._web.json(s.path, {"instances": samples}, timeout_s=timeout_s)
        if "predictions" not in answer:
            raise Misconfigured(f'{s.path}: no "predictions" in its answer')
        scores = np.asarray(answer["predictions"], dtype=float)
        return picked(scores.reshape(len(batch), -1), s.event) if scores.ndim > 1 or s.event == COMPLEMENT else scores
