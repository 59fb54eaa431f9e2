"""The data files of this package."""

from pathlib import Path

PACKAGE = Path(__file__).parent
ON_DEVICE = PACKAGE / "on_device"  # scripts that run on a board or an emulated one


def text(path: str) -> str:
    """A data file of this package, such as "programs/field.py.txt", as text."""
    return (PACKAGE / path).read_text(encoding="utf-8")
