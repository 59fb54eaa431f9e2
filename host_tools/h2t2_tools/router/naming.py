"""The names that models give to classes, and their numbers, which the policy knows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .models import RouterModel


class Naming:
    """Turns answers of the remote model, and people's labels, into numbers of classes, and back.

    Args:
        remote: The remote model.
        names: In the order of the local model's scores; None: numbers from 0.

    Attributes:
        names: As given.
        count: Number of classes; 0 before the first decision.
    """

    def __init__(self, remote: RouterModel, names: Sequence[Any] | None) -> None:
        self.remote = remote
        self.names = None if names is None else list(names)
        self.count = 0

    def name(self, number: int) -> Any:
        """Return the name of a class, or its number."""
        return self.names[number] if self.names else number

    def number(self, label: Any) -> int:
        """Return the number of a class as the models name it. ValueError: it is none of the classes."""
        label = label.item() if hasattr(label, "item") else label
        names = self.names if self.names is not None else list(range(self.count))
        if isinstance(label, int) and all(isinstance(name, str) for name in names) and 0 <= label < len(names):
            return label
        if label not in names:
            raise ValueError(f"label {label!r} is none of the classes {names}")
        return names.index(label)

    def of_answer(self, row: Any) -> int:
        """Return the class of the remote model's scores, or of its answer in words. InvalidAnswer: it fits no class."""
        try:
            if np.ndim(row) == 0 and (not isinstance(row, (float, np.floating)) or self._is_name(row)):
                return self.number(row)
        except (ValueError, TypeError) as error:
            raise self.remote.invalid(str(error), row) from None
        scores = self.remote.within(np.asarray(row, float), row)
        if scores.ndim == 0:
            if self.count > 2:
                raise self.remote.invalid(f"one score for {self.count} classes", row)
            return int(scores >= 0.5)
        known = self.remote.classes if self.names is not None else None
        if len(scores) != (len(known) if known is not None else self.count):
            raise self.remote.invalid(f"{len(scores)} scores for {self.count} classes", row)
        best = int(np.argmax(scores))
        return best if known is None else self.number(known[best])

    def _is_name(self, number: object) -> bool:
        """Whether a number is a class of a model whose classes are such numbers, and no score: arrays of objects hold them."""
        return type(number) is float and self.names is not None and number in self.names
