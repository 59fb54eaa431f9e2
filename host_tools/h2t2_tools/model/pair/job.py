"""What a pair is made of: the command's options, and the samples, read and refused where nothing can be said by them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from h2t2.link import wire

from ...common import pairs
from ...common.errors import UserError
from ...common.policies import DEFAULTS
from ..convert import calibration


class Card(BaseModel):
    """Words for a pair's README, by name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str]


@dataclass(frozen=True)
class Payload:
    """What an offload sends of a sample: its dtype; of raw bytes, their media type and the FILE.py:FUNCTION that makes them;
    bytes at most."""

    dtype: str = wire.DTYPES[0]
    media: str = ""
    encode: str = ""
    limit: int = wire.MAX_DATA


@dataclass(frozen=True)
class Job:
    """What to make a pair of.

    ldl: .keras, .h5, SavedModel, .joblib, or .tflite (float or int8). rdl: one of those, .onnx, FILE.py:FUNCTION, or a URL.
    test: .npz of x (n, ...) and y (n,), classes from 0. calibration: .npz or .npy of x (the test samples). columns: which
    numbers of a sample "ldl" and "rdl" read, None: all. event: the class that is the event (the last). costs: of many classes,
    none of which is the event: what saying the second costs when it is the first. scale: what x is divided by (None: 255 for
    bytes, else 1). window: the samples are windows of measurements (n, size) or (n, size, channels), whose features the models
    read. picture: the samples are pictures (n, height, width, channels) of whole numbers, made smaller. payload: what offloads
    send. card: what else its README is to say, such as data, licence, ldl, rdl, made by. place: where the folder `out` is
    moved when it is whole.
    """

    ldl: Path
    rdl: str
    test: Path
    out: Path
    calibration: Path | None = None
    columns: dict[str, list[int] | None] = field(default_factory=lambda: {"ldl": None, "rdl": None})
    event: int | None = None
    costs: list[list[float]] | None = None
    beta: float = DEFAULTS["beta"]
    title: str = "the event"
    scale: float | None = None
    model_id: int | None = None
    window: pairs.WindowSpec | None = None
    picture: pairs.PictureSpec | None = None
    payload: Payload = field(default_factory=Payload)
    card: dict[str, str] = field(default_factory=dict)
    place: Path | None = None

    @property
    def folder(self) -> Path:
        """Where the pair will be."""
        return self.place or self.out


@dataclass(frozen=True)
class Samples:
    """x, fit: (n, ...) float32, to judge by and to calibrate with; y: (n,) of 0 and 1, event: the class that is 1; or of the
    classes themselves, event: None. raw: the windows that x was made of, as they were measured."""

    x: np.ndarray
    y: np.ndarray
    fit: np.ndarray
    event: int | None
    classes: int
    raw: np.ndarray | None = None


def load(job: Job) -> Samples:
    """The samples of a job. UserError, naming the file, for what is missing, unlike, too little, not finite or of one class."""
    if not 0 <= job.beta <= 1:
        raise UserError(f"--beta {job.beta:g} is not between 0 and 1")
    scale = 1.0 if job.picture else job.scale
    test = calibration.load(job.test, None, scale)
    fit = test if job.calibration is None else calibration.load(job.calibration, None, scale)
    if fit.x.shape[1:] != test.x.shape[1:]:
        raise UserError(f"{fit.path}: samples of shape {fit.x.shape[1:]}, and of {test.x.shape[1:]} in {test.path}: want alike")
    x, y = test.x, test.y
    if y is None:
        raise UserError(f"{job.test}: no labels; want an .npz of x (n, ...) and y (n,), classes from 0")
    if len(np.unique(y)) < 2 or y.min() < 0:
        raise UserError(f"{job.test}: y holds {np.unique(y)[:9].tolist()}; want classes from 0, two or more")
    classes = int(y.max()) + 1
    event = None
    if job.costs:
        if classes > len(job.costs):
            raise UserError(f"{job.test}: labels to {classes - 1}; --classes {len(job.costs)} wants 0 to {len(job.costs) - 1}")
        if job.event is not None:
            raise UserError("--event: of --classes, none is the event")
        classes = len(job.costs)
    else:
        event = classes - 1 if job.event is None else job.event
        if not 0 <= event < classes:
            raise UserError(f"--event {event}: the labels are 0..{classes - 1}")
        y = (y == event).astype(int)
    if job.picture:
        raw = _pictures(test.path, x, job.picture)
        made = [_smaller(rows, job.picture) for rows in (raw, raw if fit is test else _pictures(fit.path, fit.x, job.picture))]
        return Samples(made[0], y, made[1], event, classes, raw)
    if job.window is None:
        return Samples(x, y, fit.x, event, classes)
    raw = _windows(test.path, x, job.window)
    made = [_features(rows, job.window) for rows in (raw, raw if fit is test else _windows(fit.path, fit.x, job.window))]
    return Samples(made[0], y, made[1], event, classes, raw)


def _pictures(path: Path, x: np.ndarray, picture: pairs.PictureSpec) -> np.ndarray:
    """(n, height, width, channels) uint8."""
    shape = picture.height, picture.width, picture.channels
    if x.shape[1:] not in ((shape, shape[:2]) if picture.channels == 1 else (shape,)):
        raise UserError(f"{path}: samples of shape {x.shape[1:]}; --picture wants {shape}")
    if (x != np.round(x)).any() or x.min() < 0 or x.max() > 255:
        raise UserError(f"{path}: pictures are whole numbers from 0 to 255")
    return x.reshape(len(x), *shape).astype(np.uint8)


def _smaller(pictures: np.ndarray, picture: pairs.PictureSpec) -> np.ndarray:
    """(n, high, wide, channels) float32, as a device makes them."""
    return np.array([picture.convert(one) for one in pictures], np.float32)


def _windows(path: Path, x: np.ndarray, window: pairs.WindowSpec) -> np.ndarray:
    """(n, size, channels)."""
    if x.shape[1:] not in ((window.size,), (window.size, window.channels)) or (x.ndim == 2 and window.channels > 1):
        wanted = (window.size,) if window.channels == 1 else (window.size, window.channels)
        raise UserError(f"{path}: samples of shape {x.shape[1:]}; --window {window.size} wants {wanted}")
    return x.reshape(len(x), window.size, window.channels)


def _features(windows: np.ndarray, window: pairs.WindowSpec) -> np.ndarray:
    """(n, numbers) float32, as a device makes them: of whole numbers in integers, as a sensor that gives such."""
    whole = windows.astype(np.int64) if (windows == np.round(windows)).all() else windows
    try:
        return np.array([window.features_of(whole[n]) for n in range(len(whole))], np.float32)
    except ValueError as error:
        raise UserError(f"--window {window.size}: {error}") from None


def view(x: np.ndarray, job: Job, side: str, shape: tuple[int, ...] | None, what: str) -> np.ndarray:
    """(n, *shape): what that model reads of the samples. shape None: as it comes."""
    columns = job.columns[side]
    if columns is not None:
        if x.ndim != 2 or not columns or min(columns) < 0 or max(columns) >= x.shape[1]:
            raise UserError(f"--{side}-columns: samples have the shape {x.shape[1:]}; want numbers of columns from 0 on")
        x = x[:, columns]
    if shape is None:
        return x
    if int(np.prod(shape)) != int(np.prod(x.shape[1:])):
        given = f"--{side}-columns gives {len(columns)}" if columns else f"a sample has the shape {x.shape[1:]}"
        raise UserError(f"{what}: takes the shape {shape}, and {given}; --{side}-columns says which numbers it reads")
    return x.reshape(len(x), *shape)
