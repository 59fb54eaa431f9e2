"""Which class is the event, the one whose miss costs delta_fn. Words have no order: of named classes a user names the event."""

import sys
from collections.abc import Sequence
from typing import Any

from .errors import UserError
from .fields import LONGEST_NAME, TITLE
from .labels import class_of

PLAIN = (("0", "1"), ("false", "true"))  # two classes of which nobody asks which is the event


def plain_event(names: Sequence[Any] | None, classes: int) -> int | None:
    """Return the number of the event where its name is plain: 1 of 0 and 1, True of False and True.

    Args:
        names: Of the classes, in their order; None: numbers from 0.
        classes: How many there are.

    Returns:
        The number, or None where somebody must name the event.
    """
    if names is None:
        return 1 if classes == 2 else None
    words = [str(name).strip().lower().removesuffix(".0") for name in names]
    return next((words.index(yes) for no, yes in PLAIN if sorted(words) == [no, yes]), None)


def named_event(event: int | str | None, names: list[str] | None, classes: int, where: object) -> int:
    """Return the number of the event of labelled samples; ask at a terminal where nothing tells it.

    Args:
        event: As the user names it, by name or number; None: not at all.
        names: Of the classes, in the order of their numbers; None: they are numbers.
        classes: Number of classes.
        where: The file of the samples, for messages.

    Raises:
        UserError: There is no such class, or nobody says which one it is.
    """
    if event is None and (plain := plain_event(names, classes)) is not None:
        return plain
    listed = ", ".join(names or [str(number) for number in range(classes)])
    if event is None and sys.stdin.isatty() and sys.stderr.isatty():
        question = f"h2t2: {where} has the classes {listed}. Which is the event, whose miss costs most? "
        print(question, end="", file=sys.stderr, flush=True)
        event = sys.stdin.readline().strip()
    if event is None:
        raise UserError(f"{where}: it has the classes {listed}; add --event CLASS, the one whose miss costs most")
    number = class_of("--event", str(event), names)
    if not 0 <= number < classes:
        raise UserError(f"--event {number}: the labels are 0..{classes - 1}")
    return number


def event_names(names: Sequence[Any] | None, event: int) -> list[Any] | None:
    """Return the names of class 0 and class 1 of a policy, where one of the named classes is the event."""
    if not names:
        return None
    return [names[1 - event] if len(names) == 2 else f"not {names[event]}"[:LONGEST_NAME], names[event]]


def titled_names(title: str) -> list[str]:
    """Return the names of class 0 and class 1 where only the event has a title."""
    return [f"not {title}", title]


def in_words(event: Any, delta_fp: float, delta_fn: float) -> str:
    """Say which class is the event, and what the mistakes cost.

    >>> in_words("broken", 0.7, 1.0)
    'Event: broken. A missed broken costs 1, a false alarm 0.7.'
    """
    name = "class 1" if event == TITLE else str(event)
    is_title = len(name.split()) > 2 or name.startswith(("a ", "an ", "the "))
    missed = "event" if is_title else name
    return f"Event: {name}. A missed {missed} costs {delta_fn:g}, a false alarm {delta_fp:g}."
