"""Data sets by name. Each loader reads the files as their publisher lays them out; nothing is downloaded.

A loader takes the folder or file that the user names. Without one, `find` searches $H2T2_DATA and ../shared/data beside the
source tree.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator

from h2t2_tools.common.errors import UserError
from h2t2_tools.common.fields import OneOf

from . import cats_dogs, image_folders, in_order, phishing, scikit
from .data import Data, find

LOADERS: dict[str, Callable[[Path | None], Data]] = {
    "phishing": phishing.load,
    "chest_xray": image_folders.chest_xray,
    "chest_ct": image_folders.chest_ct,
    "breakhis": image_folders.breakhis,
    "cats_dogs": cats_dogs.load,
    "breast_cancer": scikit.breast_cancer,
    "digits": scikit.digits,
    "weather": in_order.weather,
    "occupancy": in_order.occupancy,
    "bikes": in_order.bikes,
    "fog": in_order.fog,
    "showers": in_order.showers,
    "flights": in_order.flights,
}

__all__ = ["LOADERS", "Data", "find", "load", "measure", "report"]
Name = Annotated[str, AfterValidator(OneOf(tuple(LOADERS)))]


def measure(progress: Callable[[str], None], name: Name, folder: Path | None = None, out: Path | None = None) -> dict[str, Any]:
    """Write the test part of a published data set as an .npz of x and y. `h2t2 score` and `h2t2 pair` read it.

    Args:
        name: the data set
        folder: folder of the data set as published; default: looked for
        out: the file; default: NAME.npz

    Examples:
        h2t2-lab dataset phishing --folder ~/data && h2t2 score models/phishing/ldl.tflite phishing.npz --out trace.npz

    Returns:
        {"file", "samples", "classes"}.
    """
    data, path = load(name, folder), out or Path(f"{name}.npz")
    np.savez(path, x=data.x_test, y=data.y_test)
    return {"file": str(path), "samples": len(data.y_test), "classes": list(data.classes)}


def report(measured: dict[str, Any]) -> list[str]:
    """Return a line about the file."""
    return [f"{measured['file']}: {measured['samples']} samples of {', '.join(measured['classes'])}"]


def load(name: str, folder: Path | None = None) -> Data:
    """The data set of that name. UserError, saying what was looked for and where, where it cannot be read."""
    if name not in LOADERS:
        raise UserError(f"data set {name}: not one of {', '.join(LOADERS)}")
    return LOADERS[name](folder)
