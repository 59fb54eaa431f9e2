"""An .onnx file, by onnxruntime."""

from typing import Any

import numpy as np

from ....common.errors import UserError
from ....common.extras import install_hint
from .source import Source
from .tensors import Batch, Model, floats, integers, picked


class Onnx(Model):
    """A model of any input and output type. It runs a whole batch at once where its first dimension is free.

    Of several outputs, the first of floats holds the scores: skl2onnx puts the labels before the probabilities.
    """

    raw = False

    def __init__(self, source: Source) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise UserError(f"{source.path}: needs onnxruntime; {install_hint('onnx')}") from None
        try:
            self._session = onnxruntime.InferenceSession(source.path, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise UserError(f"{source.path}: not a model onnxruntime can run: {str(error).splitlines()[0]}") from None
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            raise UserError(f"{source.path}: {len(inputs)} inputs, want one")
        self._name, self._integers = inputs[0].name, inputs[0].type == "tensor(int8)"
        dimensions = inputs[0].shape[1:]
        fixed = all(isinstance(n, int) for n in dimensions)
        self.shape: tuple[int, ...] | None = tuple(dimensions) if fixed else None
        self._one_by_one = isinstance(inputs[0].shape[0], int)
        self._output = _scores_output(self._session)
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        s = self._source
        x = integers(batch, s) if self._integers else floats(batch, s)
        parts = [x[n : n + 1] for n in range(len(x))] if self._one_by_one else [x]
        outputs = [_rows(self._session.run([self._output], {self._name: samples})[0]) for samples in parts]
        return picked(np.concatenate(outputs).reshape(len(batch), -1), s.event)


def _scores_output(session: Any) -> str:
    """The name of the output that holds the scores: the first of floats, or of dictionaries (skl2onnx's zipmap)."""
    outputs = session.get_outputs()
    for output in outputs:
        if "float" in output.type or "double" in output.type:
            return str(output.name)
    return str(outputs[0].name)


def _rows(scores: Any) -> np.ndarray:
    """An output as an array; a list of {class: probability} has its classes in order."""
    if isinstance(scores, list):
        return np.array([[row[label] for label in sorted(row)] for row in scores], np.float32)
    return np.asarray(scores)
