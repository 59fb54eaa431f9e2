"""Labels as people have them: class names, numbers from 0 or 1, one-hot rows. They become class numbers from 0."""

import re

import numpy as np

from .delimited import is_number
from .errors import UserError
from .fields import LONGEST_NAME
from .tables import SKIP, missing_labels

BOOLEANS = ["false", "true"]


def class_numbers(
    where: object, y: np.ndarray, classes: int = 0, names: list[str] | None = None
) -> tuple[np.ndarray, list[str] | None]:
    """Return labels as class numbers, int64 (n,), and the names of the classes.

    Names are numbered in alphabetical order, as scikit-learn and Keras do. Numbers from 0 stay as they are and have no names.
    Other numbers, such as 1 and 2, are numbered in their order, and are the names. The words true and false are 1 and 0.
    One-hot rows give their column.

    Args:
        where: What the labels come from, for messages.
        y: (n,) texts or whole numbers, or (n, K) of 0 and 1 with a single 1 in each row.
        classes: Number of classes of a model; numbers below it stay as they are, also without a 0. 0: unknown.
        names: Classes of a model in its order, which labels that are among them get.

    Raises:
        UserError: The labels are something else, one is missing, or two names differ in nothing but capitals.
    """
    y = np.asarray(y)
    if y.ndim and (missing := missing_labels(y)).any():
        raise UserError(f"{where}: sample {int(np.argmax(missing))} has no label; {SKIP}")
    if names and y.ndim == 1 and (found := _among(y.astype(str).tolist(), names)):
        return np.array(found), [plain_name(name) for name in names]
    if y.ndim == 2 and y.shape[1] > 1:
        if y.dtype.kind not in "fiub" or not np.isin(y, (0, 1)).all() or not (y.sum(1) == 1).all():
            raise UserError(f"{where}: labels of shape {y.shape} are not one-hot: want a single 1 in each row")
        return y.argmax(1).astype(np.int64), None
    y = y.ravel()
    if y.dtype.kind in "USO":
        words, numbers = np.unique([text.strip() for text in y.astype(str).tolist()], return_inverse=True)
        if len(words) and all(map(is_number, words.tolist())):
            return class_numbers(where, words.astype(float)[numbers], classes)
        if booleans := _among(words.tolist(), BOOLEANS):
            return np.array(booleans)[numbers], None
        spellings: dict[str, str] = {}
        for word in words.tolist():
            if (other := spellings.setdefault(word.casefold(), word)) != word:
                raise UserError(f"{where}: the labels {other!r} and {word!r} differ in capitals alone; write one of them")
        return numbers.astype(np.int64), [plain_name(word) for word in words]
    if y.dtype.kind not in "fiub" or not np.isfinite(y.astype(float)).all() or (y != np.round(y)).any():
        raise UserError(f"{where}: labels are class names or whole numbers; it holds {y[:5].tolist()}")
    y = y.astype(np.int64)
    if not len(y) or y.min() == 0 or y.min() == y.max() or (y.min() > 0 and y.max() < classes):
        return y, None
    values, numbers = np.unique(y, return_inverse=True)
    return numbers.astype(np.int64), [str(value) for value in values.tolist()]


def _among(words: list[str], names: list[str]) -> list[int] | None:
    """Return which of the names each word is; None unless each is one. Capitals count where names differ in them alone."""
    exact = {name.strip(): n for n, name in enumerate(names)}
    alike = {name.strip().casefold(): n for n, name in enumerate(names)}
    if len(alike) == len(names):
        exact, words = alike, [word.casefold() for word in words]
    numbers = [exact.get(word.strip(), -1) for word in words]
    return None if -1 in numbers else numbers


def plain_name(name: str) -> str:
    """Return a class's name with its unusual characters replaced by "_", cut to LONGEST_NAME."""
    return re.sub(r"[^\w .+-]", "_", name)[:LONGEST_NAME] or "_"


def class_of(option: str, text: str, names: list[str] | None) -> int:
    """Return the number of a class that a user names, or numbers. UserError, naming the option, for no class."""
    if names and text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 6:
        return int(text)
    if not names and (truth := _among([text], BOOLEANS)):
        return truth[0]
    known = f"; want one of {', '.join(names)}" if names else "; want its number, from 0"
    raise UserError(f"{option} {text}: there is no such class{known}")


def described(names: list[str]) -> str:
    """Return class names in words: "0 cat, 1 dog"."""
    return ", ".join(f"{n} {name}" for n, name in enumerate(names))
