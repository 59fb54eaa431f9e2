"""A trained model to convert, of any kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from ...common.finite import check_finite
from ...common.pairs import encoded
from ...common.score_rules import are_scores
from ..quality import NETWORK_REMEDY

DISTIL = "--distil trains trees on its scores, and reports what they lose"


class NoInt8Form(UserError):
    """A sound model that has no int8 form. The message ends with what works in its place."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text}; {DISTIL}")


@dataclass(frozen=True)
class Encoding:
    """How a sample's numbers become those that a scaler takes.

    Attributes:
        columns: The number of the sample that each of them is.
        missing, equal: What stands for NaN, and the category of which each is 1, as InputScaling has them.
    """

    columns: list[int]
    missing: list[float | None] | None
    equal: list[float | None] | None

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Samples (n, numbers) encoded."""
        return encoded(x[:, self.columns], self.missing, self.equal)

    def picked(self, columns: list[int]) -> Encoding:
        """Some of the numbers, perhaps several times."""
        missing, equal = (rule and [rule[n] for n in columns] for rule in (self.missing, self.equal))
        return Encoding([self.columns[n] for n in columns], missing, equal)


@dataclass(frozen=True)
class Source:
    """A trained model of any kind.

    Attributes:
        kind: The kind, in words.
        path: Its file or folder.
        shape: Shape of one sample.
        file_bytes: Size of the file or folder.
        scores: Samples, float32 or float64 (n, *shape) -> the model's outputs (n, classes).
        quantise: Calibration samples, float32 (n, *shape) -> the bytes of a full-int8 .tflite.
        content: The float .tflite that is quantised, which takes x * factor + offset; None where another converter does it.
        factor, offset: Of shape *shape, or 1 and 0. The int8 model takes x * factor + offset: a scaler of the source stays
            outside, since one int8 scale cannot serve features of unlike ranges.
        encoding: What is done to a sample before that, or None. Factor and offset are then of the encoded numbers.
        finish: What is done to the int8 .tflite in the end, such as setting the tables of an isotonic calibration.
        rescaled: (factor, centre), one for each number -> `quantise` of the model that takes (x - centre) * factor. None where
            that has no meaning, or `content` serves.
        fitted: (the source, calibration samples) -> the source with the factor and offset that they set; None: this is it.
        remedy: Why int8 may lose accuracy, and what to do, as check_loss() takes it.
        complement: The same model of two classes whose only output scores class 0; None: its int8 .tflite is changed.
    """

    kind: str
    path: Path
    shape: tuple[int, ...]
    file_bytes: int
    scores: Callable[[np.ndarray], np.ndarray]
    quantise: Callable[[np.ndarray], bytes]
    _: KW_ONLY
    content: bytes | None = None
    factor: np.ndarray | float = 1.0
    offset: np.ndarray | float = 0.0
    encoding: Encoding | None = None
    finish: Callable[[bytes], bytes] = bytes
    rescaled: Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], bytes]] | None = None
    fitted: Callable[[Source, np.ndarray], Source] | None = None
    remedy: str = NETWORK_REMEDY
    complement: Callable[[], Source] | None = None

    def prepared(self, x: np.ndarray) -> np.ndarray:
        """Samples as the int8 model takes them before quantising, float32 (n, *shape), or (n, numbers) of encoded ones."""
        x = self.encoding.apply(x) if self.encoding else x
        return (x * self.factor + self.offset).astype(np.float32)

    def checked_scores(self, x: np.ndarray, columns: list[str] | None = None) -> np.ndarray:
        """The scores (n, classes). UserError where they are not within [0, 1], or the model takes no missing number.

        columns: names of the numbers of a sample, for this error.
        """
        try:
            scores = self.scores(x)
        except ValueError:
            check_finite(x, f"{self.path} takes no missing number", columns=columns)
            raise
        return checked(scores, self.path)


def checked(scores: np.ndarray, path: Path) -> np.ndarray:
    """The scores of the model at a path. UserError where they are not within [0, 1]."""
    if not np.isfinite(scores).all():
        raise UserError(f"{path}: the float model itself gives NaN or infinity on this data")
    low, high = float(scores.min()), float(scores.max())
    if not are_scores(low, high):
        raise UserError(
            f"{path}: its outputs span {low:.3g} to {high:.3g}; the policy needs scores from 0 to 1: end the model "
            "with a softmax or a sigmoid (--logits does), and give it the samples as it was trained (--scale)"
        )
    return scores
