"""Finds traces by name (the user's, those in models/, synthetic ones), and holds the paper's table of them."""

from dataclasses import dataclass
from pathlib import Path

from ..common import places
from ..common.errors import UserError
from . import traces
from .datasets import synthetic
from .traces import Trace


@dataclass(frozen=True)
class Row:
    """A row of the paper's table.

    Attributes:
        name: Name of our trace.
        title: Name in the paper.
        samples: Test samples.
        accuracy, fp, fn: Shares of all samples, as the paper prints them.
        weak: A second model of ours whose errors are closer to the paper's; "": none.
    """

    name: str
    title: str
    samples: int
    accuracy: float
    fp: float
    fn: float
    weak: str = ""


ROWS = (
    Row("breakhis", "BreakHis", 3365, 0.72, 0.10, 0.18),
    Row("chest", "Chest", 278, 0.64, 0.16, 0.20, "chest_weak"),
    Row("phishing", "Phishing", 1106, 0.75, 0.12, 0.13, "phishing_weak"),
    Row("synthetic", "Synthetic", 100_000, 0.66, 0.15, 0.19),
    Row("chest_xray", "ChestXRay", 624, 0.78, 0.18, 0.04, "chest_xray_weak"),
    Row("resnet_dogs", "ResnetDogs", 2000, 0.73, 0.15, 0.11, "resnet_dogs_weak"),
    Row("logistic_dogs", "LogisticDogs", 2000, 0.56, 0.22, 0.22),
    Row("breach", "BreaCh", 7909, 0.45, 0.17, 0.38),
    Row("x_ract", "X-RaCT", 5856, 0.35, 0.01, 0.64),
)


def names() -> list[str]:
    """Return the name of every trace that find() knows."""
    return sorted({path.parent.name for path in places.models().glob("*/trace.npz")} | set(synthetic.PRESETS))


def is_real(name: str, folder: Path | None = None) -> bool:
    """Return whether the trace comes from a model and data; otherwise it is synthetic."""
    return _file(name, folder) is not None


def find(name: str, folder: Path | None = None) -> Trace:
    """Return a trace by name.

    It searches the user's folder (NAME.npz, NAME.csv or NAME/trace.npz), then models/, then the presets.

    Raises:
        UserError: No trace has this name, or the folder does not exist.
    """
    path = _file(name, folder)
    if path is not None:
        return traces.load(path)
    if name in synthetic.PRESETS:
        return synthetic.make(name)
    raise UserError(f"trace {name}: neither a file nor one of {', '.join(names())}")


def _file(name: str, folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder}: no such folder of traces")
    for place in [folder] if folder is not None else []:
        for path in (place / f"{name}.npz", place / f"{name}.csv", place / name / "trace.npz"):
            if path.exists():
                return path
    path = places.models() / name / "trace.npz"
    return path if path.exists() else None
