"""The names that models give to classes, and their numbers, which the policy knows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.event import event_names, plain_event
from .models import RouterModel


class Naming:
    """Turns scores, answers of the remote model and people's labels into what the policy knows, and back.

    Where a class is the event, it is class 1 of the policy, and any other class is class 0.

    Args:
        local, remote: The models.
        classes: Names in the order of the local model's scores; None: its own, the remote model's, or numbers from 0.
        event: The class that is the event; None: 1 of 0 and 1, True of False and True, none of three classes or more.
        costs: Whether a matrix of costs takes the place of an event.

    Attributes:
        order: Names in the order of the local model's scores, or None.
        event: The number of the event in that order; None: the policy decides between all classes.
        names: Names in the order of the policy's numbers; None: they are numbers.
        count: Number of the policy's classes; 0 before the first decision.

    Raises:
        ValueError: The classes contradict the local model's, there is no such event, or two named classes have none.
    """

    def __init__(
        self, local: RouterModel, remote: RouterModel, classes: Sequence[Any] | None, event: Any = None, costs: bool = False
    ) -> None:
        self.remote = remote
        names = classes if classes is not None else local.classes or remote.classes
        self.order = None if names is None else list(names)
        if classes is not None and local.classes is not None and _contradict(self.order or [], local.classes):
            raise ValueError(f"classes {self.order}: local model {local.name} scores {local.classes}, in this order")
        self.event = self._event(event, costs)
        self.names = self.order
        if self.event == 0 and self.order is None:
            self.names = [1, 0]
        elif self.event is not None and (self.event == 0 or len(self.order or ()) > 2):
            self.names = event_names(self.order, self.event)
        self.count = 0

    def _event(self, event: Any, costs: bool) -> int | None:
        """The number of the event in the local model's order."""
        if event is not None and costs:
            raise ValueError(f"event {event!r}: with costs, no class is the event")
        if event is None:
            plain = plain_event(self.order, 2) if not costs and len(self.order or (0, 1)) == 2 else None
            if plain is None and len(self.order or ()) == 2 and not costs:
                raise ValueError(f"event: which of the classes {self.order} is it? Name the one whose miss costs delta_fn")
            return plain if self.order is not None else None
        known = self.order if self.order is not None else [0, 1]
        if event not in known:
            raise ValueError(f"event {event!r}: want one of the classes {known}")
        return known.index(event)

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return the scores that the policy decides by: (n,) of the event, or (n, K). ValueError: the outputs do not fit."""
        if outputs.ndim == 1 or (outputs.shape[1] == 2 and self.event is None):
            second = outputs if outputs.ndim == 1 else outputs[:, 1]
            if len(self.order or (0, 1)) > 2 and self.event is not None:
                raise ValueError(f"one score for the classes {self.order}")
            return 1 - second if self.event == 0 else second
        if self.event is None:
            return outputs
        if outputs.shape[1] != len(self.order or (0, 1)):
            raise ValueError(f"classes: {len(self.order or (0, 1))} names; the local model scores {outputs.shape[1]} classes")
        return outputs[:, self.event]

    def name(self, number: int) -> Any:
        """Return the name of a class, or its number."""
        return self.names[number] if self.names else number

    def number(self, label: Any) -> int:
        """Return the policy's number of a class as the models name it. ValueError: it is none of the classes."""
        label = label.item() if hasattr(label, "item") else label
        order = self.order if self.order is not None else list(range(self.count or 2))
        if isinstance(label, int) and all(isinstance(name, str) for name in order) and 0 <= label < len(order):
            return self._of_class(label)
        if label in order:
            return self._of_class(order.index(label))
        if self.names is None or label not in self.names:
            raise ValueError(f"label {label!r} is none of the classes {order}")
        return self.names.index(label)

    def of_answer(self, row: Any) -> int:
        """Return the class of the remote model's scores, or of its answer in words. InvalidAnswer: it fits no class."""
        try:
            if np.ndim(row) == 0 and (not isinstance(row, (float, np.floating)) or self._is_name(row)):
                return self.number(row)
        except (ValueError, TypeError) as error:
            raise self.remote.invalid(str(error), row) from None
        scores = self.remote.within(np.asarray(row, float), row)
        classes = len(self.order) if self.order is not None else self.count
        if scores.ndim == 0:
            if classes > 2:
                raise self.remote.invalid(f"one score for {classes} classes", row)
            return self._of_class(int(scores >= 0.5))
        known = self.remote.classes if self.order is not None else None
        if len(scores) != (len(known) if known is not None else classes):
            raise self.remote.invalid(f"{len(scores)} scores for {classes} classes", row)
        best = int(np.argmax(scores))
        return self._of_class(best) if known is None else self.number(known[best])

    def of_classes(self, numbers: np.ndarray) -> np.ndarray:
        """Return classes of the local model's order, (n,), of the policy's numbers; of several that are no event, the first."""
        if self.event is None:
            return numbers
        return np.where(numbers == 1, self.event, int(self.event == 0))

    def _of_class(self, place: int) -> int:
        """The policy's number of a class in the local model's order."""
        return place if self.event is None else int(place == self.event)

    def _is_name(self, number: object) -> bool:
        """Whether a number is a class of a model whose classes are such numbers, and no score: arrays of objects hold them."""
        return type(number) is float and self.order is not None and number in self.order


def _contradict(classes: list[Any], own: list[Any]) -> bool:
    """Whether names contradict a model's own: they may give words to its numbers, but no other order or other words."""
    renamed = not set(classes) & set(own) and not any(isinstance(name, str) for name in own)
    return classes != own and not (renamed and len(classes) == len(own))
