"""What is suspicious about a converted model, or about the two models of a pair: an error, or warnings."""

from collections.abc import Callable, Sequence

import numpy as np

from ..common.errors import Failure
from ..common.quality_limits import FEWEST_SAMPLES
from ..replay.scoring import confusion

NETWORK_REMEDY = (
    "its numbers have unlike ranges, or a Normalization or Rescaling inside the model is quantised with it: scale the samples "
    "before the model, as StandardScaler does"
)
TREES_REMEDY = (
    "the thresholds of a number lie closer together than the steps of its int8 inputs: train fewer or shallower trees, or "
    "leave out numbers with samples far outside"
)
OUTLIER = 50.0  # times the distance of most samples from the middle: a sample that says nothing of the others
CHANCE = 4.0  # standard errors: a difference of means beyond them is no chance
MOST_NAMED = 3  # of such samples


def check_loss(
    model: str, exact: float, rounded: float, limit: float, causes: Sequence[str] = (), remedy: str = NETWORK_REMEDY
) -> None:
    """Raise a Failure if int8 loses more accuracy than the limit.

    Args:
        model: Name, for the message.
        exact, rounded: Accuracies of the float and of the int8 model on the same samples, 0..1.
        limit: Percentage points.
        causes: What calibration_warnings() says.
        remedy: What such a model usually loses by, and what to do; said where there are no causes.
    """
    loss = 100 * (exact - rounded)
    if loss > limit + 1e-9:
        raise Failure(
            f"{model}: int8 loses {loss:.1f} points of accuracy, {exact:.1%} to {rounded:.1%}, more than {limit:g}: "
            f"{'; '.join(causes) or remedy}, or calibrate with samples of the whole range (--calibration); "
            f"--max-loss {-(-loss // 1):.0f} accepts it"
        )


def calibration_warnings(x: np.ndarray, scores: np.ndarray) -> list[str]:
    """Return warnings about calibration samples of one decision, and about samples that lie far outside.

    Args:
        x: (n, ...) samples.
        scores: (n,), (n, 1) of class 1, or (n, K), as the float model gives them.
    """
    warnings = []
    decisions = decided(scores)
    if len(set(decisions.tolist())) == 1:
        warnings.append(
            f"all {len(x)} calibration samples get the decision {decisions[0]}: int8 has seen none of the others; "
            "calibrate with samples of every class"
        )
    distance = distances(x)
    for n in np.flatnonzero(distance > OUTLIER)[:MOST_NAMED].tolist():
        warnings.append(f"calibration sample {n} lies {distance[n]:.3g} times as far outside as the others: leave it out")
    return warnings


def decided(scores: np.ndarray) -> np.ndarray:
    """The class that scores (n,), (n, 1) of class 1, or (n, K) decide for, (n,)."""
    return (scores.reshape(-1) >= 0.5).astype(int) if scores.size == len(scores) else scores.argmax(1)


def rounding_warnings(x: np.ndarray, scores: Callable[[np.ndarray], np.ndarray]) -> list[str]:
    """Return a warning where floats of 32 bits, as most boards have, change decisions.

    Args:
        x: (n, ...) samples, float64 where float32 would merge some.
        scores: The float model: samples -> scores as decided() takes them.
    """
    if x.dtype != np.float64:
        return []
    rounded = x.astype(np.float32)
    changed = int((decided(scores(x)) != decided(scores(rounded))).sum())
    if not changed:
        return []
    rows = x.reshape(len(x), -1)
    largest, widths = np.nan_to_num(np.abs(rows)).max(0), spread(rows)
    number = int(np.argmax(np.divide(largest, widths, out=np.zeros(len(widths)), where=widths > 0)))
    step = np.spacing(np.float32(largest[number]))
    return [
        f"number {number} of a sample lies near {largest[number]:.3g}, where floats of 32 bits are {step:g} apart: on a board "
        f"that measures it as such a float, {changed} of {len(x)} samples get another decision; measure it as a whole number, "
        "or subtract a constant from it before the training"
    ]


def spread(x: np.ndarray) -> np.ndarray:
    """The range of most numbers of each column of samples (n, numbers): (numbers,). NaN is left out."""
    known = np.isfinite(x)
    filled = np.where(known, x, x[known.argmax(0), np.arange(x.shape[1])])
    low, high = np.quantile(filled.astype(float), (0.05, 0.95), axis=0)
    return np.asarray(np.nan_to_num(high - low))


def distances(x: np.ndarray) -> np.ndarray:
    """How far outside each sample (n, ...) lies, (n,), in distances of most samples from the middle. NaN lies in the middle."""
    numbers = x.astype(np.float64) if x.ndim == 2 else x.reshape(len(x), -1).astype(np.float64)
    low, middle, high = np.nanpercentile(numbers, (1, 50, 99), axis=0 if x.ndim == 2 else None)
    spread = np.maximum(high - middle, middle - low)
    far = np.divide(np.abs(numbers - middle), spread, out=np.zeros(numbers.shape), where=spread > 0)
    return np.asarray(np.nan_to_num(far, posinf=np.inf).max(1))


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


def is_inverted(scores: np.ndarray, y: np.ndarray) -> bool:
    """Return whether scores (n,) of class 1 are lower for class 1 than for class 0, by more than chance tells."""
    held, others = scores[y == 1], scores[y == 0]
    if not len(held) or not len(others):
        return False
    spread = np.sqrt(held.var() / len(held) + others.var() / len(others))
    return bool(others.mean() - held.mean() > CHANCE * spread)


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
