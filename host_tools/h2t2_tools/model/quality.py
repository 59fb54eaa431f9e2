"""What is suspicious about a converted model, or about the two models of a pair: an error, or warnings."""

from collections.abc import Sequence

import numpy as np

from ..common.errors import Failure
from ..common.quality_limits import FEWEST_SAMPLES
from ..lab.scoring import confusion

REMEDY = (
    "a Normalization or Rescaling inside the model is quantised with it: take it out and scale the samples before, or "
    "calibrate with samples of the whole range (--calibration); --max-loss {loss:.0f} accepts it"
)


def check_loss(model: str, exact: float, rounded: float, limit: float) -> None:
    """Raise a Failure if int8 loses more accuracy than the limit.

    Args:
        model: Name, for the message.
        exact, rounded: Accuracies of the float and of the int8 model on the same samples, 0..1.
        limit: Percentage points.
    """
    loss = 100 * (exact - rounded)
    if loss > limit + 1e-9:
        remedy = REMEDY.format(loss=-(-loss // 1))
        raise Failure(
            f"{model}: int8 loses {loss:.1f} points of accuracy, {exact:.1%} to {rounded:.1%}, more than {limit:g}: {remedy}"
        )


def class_name(number: int, names: Sequence[str] | None) -> str:
    """Return a class in words."""
    return f"class {number}" + (f" ({names[number]})" if names and str(number) != names[number] else "")


def sample_warnings(y: np.ndarray, classes: int, names: Sequence[str] | None = None) -> list[str]:
    """Return a warning for each class with too few samples to judge a model by. y: (n,) class numbers."""
    counts = np.bincount(y, minlength=classes)
    return [
        f"{class_name(n, names)} has {count} samples; with fewer than {FEWEST_SAMPLES} its figures are chance"
        for n, count in enumerate(counts.tolist())
        if count < FEWEST_SAMPLES
    ]


def silence_warnings(scores: np.ndarray, y: np.ndarray, names: Sequence[str] | None = None) -> list[str]:
    """Return a warning for each class that has samples and that the local model never says.

    Args:
        scores: (n,) of class 1, or (n, K).
        y: (n,) class numbers.
        names: Of the classes.
    """
    if scores.ndim == 1:
        largest, smallest = float(scores.max()), float(scores.min())
        if largest < 0.5 and y.max() == 1:
            return [f"the local model never says {class_name(1, names)}: its largest score is {largest:.2f}"]
        if smallest >= 0.5 and y.min() == 0:
            return [f"the local model never says {class_name(0, names)}: its smallest score is {smallest:.2f}"]
        return []
    unspoken = sorted(set(y.tolist()) - set(scores.argmax(1).tolist()))
    return [f"the local model never says {class_name(n, names)}" for n in unspoken]


def pair_warnings(local: np.ndarray, remote: np.ndarray, y: np.ndarray, identical: bool) -> list[str]:
    """Return warnings about a remote model that is no help.

    Args:
        local, remote: Scores of both models, (n,) or (n, K).
        y: (n,) true classes.
        identical: Both models are one file.
    """
    if identical:
        return ["both models are the same file: asking can never pay"]
    if local.shape == remote.shape and np.array_equal(local, remote):
        return ["both models give the same scores on each sample: asking can never pay"]
    correct = [confusion(scores, y)["accuracy"] for scores in (local, remote)]
    if correct[1] <= correct[0]:
        return [f"the remote model is right on {correct[1]:.1%}, the local one on {correct[0]:.1%}: asking does not pay"]
    return []
