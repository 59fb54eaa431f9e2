"""Finds traces by name: the user's, those in models/, synthetic ones of the rows in the paper's table."""

from pathlib import Path

from ..common import places
from ..common.errors import UserError
from . import synthetic, traces
from .traces import Trace


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
    own = [] if folder is None else [folder / f"{name}.npz", folder / f"{name}.csv", folder / name / "trace.npz"]
    return next((path for path in (*own, places.models() / name / "trace.npz") if path.exists()), None)
