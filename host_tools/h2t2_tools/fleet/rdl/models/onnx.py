"""An .onnx file, by onnxruntime."""

from typing import Any

import numpy as np

from ....common.errors import UserError
from ....common.extras import install_hint
from .model_source import Source
from .tensors import Batch, Model, floats, integers, picked

# numbers that an input may hold, by its type
INPUTS = {"float": np.float32, "double": np.float64, "float16": np.float16, "int8": np.int8}


class Onnx(Model):
    """A model with one input of INPUTS. It runs a whole batch at once where its first dimension is free."""

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
        self._name, self._type = inputs[0].name, inputs[0].type.removeprefix("tensor(").removesuffix(")")
        if self._type not in INPUTS:
            raise UserError(f"{source.path}: its input is {inputs[0].type}, want one of {', '.join(INPUTS)}")
        sizes = inputs[0].shape  # [] where the file does not say it
        if len(sizes) == 1:
            raise UserError(f"{source.path}: its input has no batch dimension: export it with an example of the shape (1, ...)")
        fixed = bool(sizes) and all(isinstance(n, int) for n in sizes[1:])
        self.shape: tuple[int, ...] | None = tuple(sizes[1:]) if fixed else None
        self._batch = sizes[0] if sizes and isinstance(sizes[0], int) else None
        self._output = _scores_output(self._session, source)
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        s = self._source
        x = (integers if self._type == "int8" else floats)(batch, s).astype(INPUTS[self._type], copy=False)
        size = self._batch or len(x)
        outputs = []
        for start in range(0, len(x), size):
            part = x[start : start + size]
            filled = part if len(part) == size else np.resize(part, (size, *part.shape[1:]))  # the model's batch is fixed
            rows = _rows(self._session.run([self._output], {self._name: filled})[0]).reshape(size, -1)
            outputs.append(rows[: len(part)])
        return picked(np.concatenate(outputs), s.event)


def _scores_output(session: Any, source: Source) -> str:
    """The name of the output that holds the scores: the named one, the only one, or the only one beside labels.

    skl2onnx puts labels (whole numbers or words) before the probabilities, which zipmap turns into dictionaries.
    """
    types = {str(output.name): str(output.type) for output in session.get_outputs()}
    real = [name for name, kind in types.items() if "float" in kind or "double" in kind]
    wanted = [source.output] if source.output else real if len(types) > 1 else list(types)
    if len(wanted) != 1 or wanted[0] not in types:
        raise UserError(
            f"{source.path}: its outputs are {', '.join(types)}: --output NAME says which holds the scores (of a gate: "
            "output), or export the model with that one alone"
        )
    return wanted[0]


def _rows(scores: Any) -> np.ndarray:
    """An output as an array; a list of {class: probability} has its classes in order."""
    if isinstance(scores, list):
        return np.array([[row[label] for label in sorted(row)] for row in scores], np.float32)
    return np.asarray(scores)
