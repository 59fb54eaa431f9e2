"""Data sets by name. Each loader reads the files as their publisher lays them out; nothing is downloaded.

A loader takes the folder or file that the user names. Without one, `find` searches $H2T2_DATA and ../shared/data beside the
source tree.
"""

from collections.abc import Callable
from pathlib import Path

from ...common.errors import UserError
from . import breakhis, cats_dogs, chest_ct, chest_xray, in_order, phishing, scikit
from .data import Data, find

LOADERS: dict[str, Callable[[Path | None], Data]] = {
    "phishing": phishing.load,
    "chest_xray": chest_xray.load,
    "chest_ct": chest_ct.load,
    "breakhis": breakhis.load,
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

__all__ = ["LOADERS", "Data", "find", "load"]


def load(name: str, folder: Path | None = None) -> Data:
    """The data set of that name. UserError, saying what was looked for and where, where it cannot be read."""
    if name not in LOADERS:
        raise UserError(f"data set {name}: not one of {', '.join(LOADERS)}")
    return LOADERS[name](folder)
