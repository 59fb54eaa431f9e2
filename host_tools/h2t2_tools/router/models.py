"""Scores of whatever a Python program holds as a model: an object, a function, a file, a URL."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..common.errors import UserError
from ..common.score_rules import are_scores, within
from ..fleet.rdl import models as served
from ..model.convert.readers import PICKLES

Scores = Callable[[np.ndarray], Any]  # samples (n, ...) -> (n,) of the event, (n, K) of all classes, or (n,) names
FILES = (".keras", ".h5", *PICKLES, ".tflite", ".onnx", ".toml")
ACCEPTED = "an object with predict_proba, a Keras model, a function of a batch, a path, FILE.py:FUNCTION, or a URL"


class InvalidAnswer(ValueError):
    """What a model returned is no answer.

    Args:
        text: What is wrong with it.
        returned: What the model returned.

    Attributes:
        kind: Its type, in words.
    """

    def __init__(self, text: str, returned: Any) -> None:
        name = type(returned).__name__
        super().__init__(f"{text} ({name})")
        self.kind = f"an answer of type {name}"


class RouterModel:
    """A model of any kind.

    Args:
        model: What ACCEPTED says. A function takes a batch (n, ...) and returns n scores of class 1, or (n, K).
        role: "local" or "remote", for messages.
        columns: Indices of the numbers of a sample that it reads; None: all.

    Attributes:
        model: As it was given.
        opened: What a file held; otherwise `model`.
        name: What it is, in words.
        classes: Its class names in the order of its outputs, or None.
        is_async: Whether it is an async function of a batch, which a remote model may be.
    """

    def __init__(self, model: Any, role: str, columns: Sequence[int] | None = None) -> None:
        self.role = role
        self.model: Any = model
        self.opened: Any = model
        self.columns = None if columns is None else list(columns)
        if isinstance(model, (str, Path)):
            self.name = str(model)
            model = self.opened = _opened(str(model))
            scores = model
            if hasattr(model, "predict_proba") or hasattr(model, "predict"):
                scores = _of_object(model, role)
        else:
            self.name = type(model).__name__ if not hasattr(model, "__name__") else str(model.__name__)
            scores = _of_object(model, role)
        self._scores: Scores = scores
        self.is_async = inspect.iscoroutinefunction(model)
        names = getattr(model, "classes_", None)
        self.classes: list[Any] | None = None if names is None else np.asarray(names).tolist()

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Return the scores of samples (n, ...): (n,) or (n, K); or (n,) class names of a model without scores.

        Those of a local model are within 0 and 1. Naming.of_answer() judges each answer of a remote model.

        Raises:
            InvalidAnswer: It returns something else.
        """
        return self._checked(self._scores(self._samples(x)), len(x))

    async def ascores(self, x: np.ndarray) -> np.ndarray:
        """As scores(), while other tasks go on: an async function is awaited, any other model runs in a thread."""
        if self.is_async:
            return self._checked(await self._scores(self._samples(x)), len(x))
        return await asyncio.to_thread(self.scores, x)

    def answers(self, x: np.ndarray) -> tuple[list[Any], dict[int, Exception]]:
        """Return the row of scores() of each sample, None without an answer, and the failures by their place.

        Of a model in a file or behind a URL, one bad sample leaves the others their answers.

        Raises:
            Exception: As the model does where no sample has an answer.
        """
        if not isinstance(self._scores, _Served):
            return list(self.scores(x)), {}
        scores, errors = served.answered(self._scores.model, np.asarray(self._samples(x), np.float32))
        places = [n for n in range(len(x)) if n not in errors]
        rows = dict(zip(places, self._checked(scores[places], len(places)))) if places else {}
        return [rows.get(n) for n in range(len(x))], errors

    def _samples(self, x: np.ndarray) -> np.ndarray:
        return x if self.columns is None else x[:, self.columns]

    def _checked(self, returned: Any, count: int) -> np.ndarray:
        """What a model returned for so many samples, as an array. InvalidAnswer: it is none of the forms."""
        scores = np.asarray(returned)
        is_remote = self.role == "remote"
        if scores.shape == (count,) and (scores.dtype.kind in "USO" or (is_remote and scores.dtype.kind in "iu")):
            return scores.astype(object)
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.ndim not in (1, 2) or len(scores) != count:
            raise self.invalid(f"{scores.shape} for {count} samples; want (n,) or (n, classes)", returned)
        if scores.dtype.kind not in "fiubO":
            raise self.invalid(f"it gives {scores.dtype}; want scores", returned)
        scores = scores.astype(float)
        return scores if is_remote else self.within(scores, returned)

    def within(self, scores: np.ndarray, returned: Any) -> np.ndarray:
        """Return scores cut to 0 to 1. InvalidAnswer, which `returned` is for: some lie outside, or are NaN."""
        if scores.size and not are_scores(scores.min(), scores.max()):
            span = f"{scores.min():.3g} to {scores.max():.3g}"
            raise self.invalid(f"its scores span {span}; want 0 to 1: end it with a softmax or a sigmoid", returned)
        return within(scores)

    def invalid(self, text: str, returned: Any) -> InvalidAnswer:
        """Return the exception for what the model returned. text: what is wrong with it."""
        return InvalidAnswer(f"{self.role} model {self.name}: {text}", returned)


def _of_object(model: Any, role: str) -> Scores:
    """Return the scores of a model that a program holds."""
    if hasattr(model, "predict_proba"):
        return lambda x: model.predict_proba(x)
    if type(model).__module__.partition(".")[0] == "torch":
        raise UserError(
            f"{role}: a PyTorch module takes tensors and often ends with logits: give a function of an array that returns "
            "scores, or export the module to ONNX (docs/from-pytorch.md)"
        )
    if hasattr(model, "predict") and hasattr(model, "layers"):
        return lambda x: model(np.asarray(x, np.float32), training=False)
    if role == "remote" and hasattr(model, "predict"):
        return lambda x: np.asarray(model.predict(x)).astype(object)  # class names, also where they are numbers
    if callable(model):
        return lambda x: model(x)
    raise UserError(f"{role}: {type(model).__name__} is no model that gives scores; want {ACCEPTED}")


def _opened(path: str) -> Any:
    """Return the model in a file or behind a URL: an estimator, or a function of a batch."""
    suffix = Path(path.partition(":")[0] if ".py:" in path else path).suffix.lower()
    if not served.is_url(path) and suffix not in (*FILES, ".py") and not Path(path).is_dir():
        raise UserError(f"{path}: no model that is known by its name; want {', '.join(FILES)}, FILE.py:FUNCTION, or a URL")
    if suffix in PICKLES:
        from ..model.convert.from_scikit import unpickled

        return unpickled(Path(path))
    if suffix in (".keras", ".h5") or Path(path).is_dir():
        from ..model.convert.readers import open_source

        return open_source(Path(path)).scores
    if suffix == ".tflite":
        return _tflite(Path(path))
    return _Served(path)


class _Served:
    """A model that `h2t2 rdl` serves, as a function of a batch."""

    def __init__(self, path: str) -> None:
        self.model = served.load(served.Source(path, None, floats=True))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.model.scores(np.asarray(x, np.float32))


def _tflite(path: Path) -> Scores:
    """Return the scores of a .tflite, int8 or float."""
    from ..model import tflite
    from ..model.convert.readers import open_source
    from ..model.exact import open_local

    graph = tflite.load(path)
    if graph.tensors[graph.inputs[0]].dtype not in ("int8", "uint8"):
        source = open_source(path)
        return lambda x: source.scores(np.asarray(x, np.float32).reshape(-1, *source.shape))
    model = open_local(path)
    return lambda x: np.array([model.scores(model.quantise(row)) for row in x])
