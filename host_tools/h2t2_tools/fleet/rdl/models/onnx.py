"""An .onnx file, by onnxruntime."""

from __future__ import annotations

import numpy as np

from ....common.errors import UserError
from .source import Source
from .tensors import Batch, floats, integers, picked


class Onnx:
    """Any input and output type; a whole batch at once where its first dimension is free."""

    raw = False

    def __init__(self, source: Source) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise UserError(f"{source.path}: needs onnxruntime; run: pip install h2t2-edge[onnx]") from None
        try:
            self._session = onnxruntime.InferenceSession(source.path, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a dozen kinds of its own
            raise UserError(f"{source.path}: not a model onnxruntime can run: {str(error).splitlines()[0]}") from None
        given = self._session.get_inputs()
        if len(given) != 1:
            raise UserError(f"{source.path}: {len(given)} inputs, want one")
        self._name, self._integers = given[0].name, given[0].type == "tensor(int8)"
        dimensions = given[0].shape[1:]
        fixed = all(isinstance(n, int) for n in dimensions)
        self.shape: tuple[int, ...] | None = tuple(dimensions) if fixed else None
        self._one_by_one = isinstance(given[0].shape[0], int)
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        s = self._source
        x = integers(batch, s) if self._integers else floats(batch, s)
        parts = [x[n : n + 1] for n in range(len(x))] if self._one_by_one else [x]
        made = np.concatenate([np.asarray(self._session.run(None, {self._name: part})[0]) for part in parts])
        return picked(made.reshape(len(batch), -1), s.event)
