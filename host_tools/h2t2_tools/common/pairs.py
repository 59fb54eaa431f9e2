"""A model pair on disk: LDL, RDL, test part, pair.json. Finds the shipped ones by name and the user's by folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field, ValidationError, model_validator

from h2t2.cpython.pair import error_counts, error_rates
from h2t2.cpython.quantise import quantised
from h2t2.link import wire
from h2t2.node.picture import Picture
from h2t2.node.window import Window

from . import places, trust
from .errors import UserError, describe_error
from .feature_limits import MODEL_FEATURES
from .fields import ClassName
from .finite import check_finite
from .npz import open_npz
from .untrusted import check_format, is_inside, parse_json
from .user_function import copy_program, is_user_function, load_user_function, needed_files, reporting

LDL = "ldl.tflite"  # the local model, in the folder of a pair
FORMAT = 1  # of pair.json, in its entry `format`; files of the time before this entry are of format 1 too


class RemoteModel(BaseModel):
    """The remote model: its file in the folder (or FILE.py:FUNCTION, or a URL), and its input, which offloads send: the shape
    without the batch, and how it is quantised. floats: it takes the numbers of a sample themselves, which the worker restores.
    dtype: what offloads send of them; media, encode: of raw bytes, their type and what makes them of a sample
    (FILE.py:FUNCTION); limit: bytes of data an offload may have."""

    model: str = "rdl.tflite"
    floats: bool = False
    shape: list[int] = Field(min_length=1, max_length=6)
    scale: float = Field(gt=0)
    zero_point: int = Field(ge=-128, le=127)
    dtype: Literal["int8", "uint8", "float32", "raw"] = "int8"
    media: str = Field("", max_length=wire.MAX_MEDIA)
    encode: str = ""
    limit: int = Field(wire.MAX_DATA, ge=1, le=wire.MAX_DATA)


class InputScaling(BaseModel):
    """What is done to a sample's numbers before they are quantised: x * factor + offset, one of each a number.

    Before that, `missing` stands for a number that is NaN, and a number becomes 1 where it is `equal` and 0 otherwise.
    `beyond`: steps outside int8 that each may lie before a device counts its sample as saturated.
    """

    factor: list[float] = Field(min_length=1)
    offset: list[float] = Field(min_length=1)
    missing: list[float | None] | None = None
    equal: list[float | None] | None = None
    beyond: list[int] | None = None

    def apply(self, x: np.ndarray) -> np.ndarray:
        """(n, *sample), prepared, as float32; one sample of one dimension as well."""
        flat = encoded(x.reshape(-1, len(self.factor)), self.missing, self.equal)
        prepared: np.ndarray = (flat * np.array(self.factor) + np.array(self.offset)).astype(np.float32)
        return prepared.reshape(x.shape)

    def undo(self, x: np.ndarray) -> np.ndarray:
        """(n, *sample) float32, as it was before apply()."""
        flat = (x.reshape(-1, len(self.factor)) - np.array(self.offset)) / np.array(self.factor)
        restored: np.ndarray = flat.reshape(x.shape).astype(np.float32)
        return restored


def encoded(x: np.ndarray, missing: list[float | None] | None, equal: list[float | None] | None) -> np.ndarray:
    """Numbers (n, numbers) with what stands for NaN, and with 1 or 0 in place of categories, as InputScaling says."""
    if missing:
        x = np.where(np.isnan(x), np.array(missing, x.dtype), x)
    if equal:
        category = np.array(equal, x.dtype)
        x = np.where(np.isnan(category), x, x == category)
    return x


class WindowSpec(BaseModel):
    """What makes the numbers of a sample of a sensor's last measurements: the arguments of h2t2.node.window.Window."""

    size: int = Field(ge=1, le=4096)
    hop: int = Field(ge=1, le=65536)
    channels: int = Field(1, ge=1, le=64)
    features: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> WindowSpec:
        self.build()  # ValueError for a feature that it does not know, or a spectrum of a size that has none
        return self

    def build(self) -> Window:
        """A window with nothing in it yet."""
        return Window(**self.model_dump())

    def features_of(self, rows: np.ndarray) -> list[float]:
        """The features of one whole window, rows (size, channels) as they were measured."""
        window = self.build()
        window.add(rows.tolist())
        features = window.take()
        assert features is not None
        return features


class PictureSpec(BaseModel):
    """What makes the numbers of a sample of a camera's picture: the arguments of h2t2.node.picture.Picture."""

    width: int = Field(ge=1, le=4096)
    height: int = Field(ge=1, le=4096)
    channels: int = Field(ge=1, le=3)
    wide: int = Field(ge=1, le=4096)
    high: int = Field(ge=1, le=4096)
    square: bool = False
    grey: bool = False

    @model_validator(mode="after")
    def _possible(self) -> PictureSpec:
        Picture(**self.model_dump())  # ValueError for sizes that cannot be
        return self

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of what it makes."""
        return self.high, self.wide, 1 if self.grey else self.channels

    def convert(self, picture: np.ndarray) -> np.ndarray:
        """What becomes of a picture, (height, width, channels) of whole numbers from 0 to 255: `shape`."""
        return np.array(Picture(**self.model_dump())(picture.astype(np.uint8).tobytes())).reshape(self.shape)


class PairInfo(BaseModel):
    """What pair.json says. costs: where the classes are more than two, what saying the second costs when it is the first.
    rates: how often the remote model was wrong on the test samples; class_samples: how many of these each class has.
    features: how many numbers the local model gives to a head. features_from: the tensor that they are made of, if not the
    input of the last layer. ordered: the test samples are in the order of time."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    model_id: int = Field(ge=0, le=65535)
    event: str
    event_index: dict[str, int] = {}
    costs: list[list[Annotated[float, Field(ge=0, le=1)]]] | None = Field(None, min_length=3, max_length=16)
    class_names: list[ClassName] | None = Field(None, min_length=2, max_length=16)
    beta: float = Field(ge=0, le=1)
    features: int = Field(0, ge=0, le=MODEL_FEATURES)
    features_from: str | None = None
    columns: dict[str, list[int] | None]
    prepared: dict[str, InputScaling | None] = {}
    remote: RemoteModel
    window: WindowSpec | None = None
    picture: PictureSpec | None = None
    ordered: bool = False
    rates: dict[str, Any] = {}
    class_samples: list[Annotated[int, Field(ge=0)]] = Field([], max_length=16)
    test_samples: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _check_costs(self) -> PairInfo:
        if self.costs is None and not {"ldl", "rdl"} <= set(self.event_index):
            raise ValueError("event_index: want `ldl` and `rdl`, the output of each that is the event (or `costs`)")
        if self.costs is not None and any(len(row) != len(self.costs) for row in self.costs):
            raise ValueError(f"costs: want {len(self.costs)} rows of as many numbers")
        if self.class_names is not None and len(self.class_names) != self.classes:
            raise ValueError(f"class_names: {len(self.class_names)} names for {self.classes} classes")
        return self

    @property
    def classes(self) -> int:
        return len(self.costs) if self.costs else 2

    @property
    def event_name(self) -> str:
        """The name of class 1 of two classes, or the event's title."""
        return self.class_names[1] if self.class_names else self.event

    def error_rates(self) -> dict[str, Any]:
        """As h2t2.cpython.pair.error_rates()."""
        return error_rates(self.model_dump())

    def error_counts(self) -> list[list[float]]:
        """As h2t2.cpython.pair.error_counts()."""
        return error_counts(self.model_dump())

    def event_output(self, model: str) -> int:
        """The output of "ldl" or "rdl" that is class 1; of more classes than two, where all are read, 0."""
        return self.event_index.get(model, 0)

    def model_input(self, x: np.ndarray, model: str) -> np.ndarray:
        """What the model "ldl" or "rdl" reads of a sample, before it is quantised. IndexError for too few numbers."""
        columns = self.columns[model]
        picked = x if columns is None else x.ravel()[columns]
        scaling = self.prepared.get(model)
        return picked if scaling is None else scaling.apply(picked)


@dataclass(frozen=True)
class Pair:
    """folder: where the files are. x: (n, ...) float32 test samples, y: (n,) true labels, the classes from 0. raw: (n, size,
    channels), the windows of measurements that x was made of, or (n, height, width, channels), the pictures."""

    folder: Path
    info: PairInfo
    x: np.ndarray
    y: np.ndarray
    raw: np.ndarray | None = None

    @property
    def ldl(self) -> Path:
        return self.folder / LDL

    @property
    def rdl(self) -> Path:
        return self.folder / self.info.remote.model

    def model_input(self, x: np.ndarray, model: str) -> np.ndarray:
        """As PairInfo.model_input()."""
        return self.info.model_input(x, model)

    def remote_payload(self, x: np.ndarray, picture: np.ndarray | None = None) -> bytes:
        """What an offload of a sample sends. picture: what it was made of, where there is one: raw bytes are made of that.

        UserError for an `encode` that cannot be had, or gives no bytes.
        """
        remote = self.info.remote
        if remote.dtype == "raw" and picture is not None:
            return self._encoded(picture)
        if remote.dtype in ("float32", "raw"):
            columns = self.info.columns["rdl"]
            picked = np.asarray(x if columns is None else x.ravel()[columns], "<f4")
            return picked.tobytes() if remote.dtype == "float32" else self._encoded(picked)
        tensor = quantised(self.model_input(x, "rdl"), remote.scale, remote.zero_point)
        return tensor.tobytes() if remote.dtype == "int8" else (tensor.astype(np.int16) + 128).astype(np.uint8).tobytes()

    def test_payload(self, n: int) -> bytes:
        """What an offload of test sample n sends."""
        return self.remote_payload(self.x[n], self.raw[n] if self.raw is not None and self.info.picture else None)

    @cached_property
    def _encode(self) -> Callable[..., Any]:
        encode = str(self.folder / self.info.remote.encode)
        return reporting(encode, load_user_function(encode))

    def _encoded(self, x: np.ndarray) -> bytes:
        payload = self._encode(x)
        if not isinstance(payload, bytes):
            raise UserError(f"{self.info.remote.encode}: it gave {type(payload).__name__}; want the bytes of a sample")
        return payload


def board_samples(pair: Pair, scale: float, zero_point: int, count: int) -> bytes:
    """Return the first test samples for a board: each is the local model's int8 input, then the remote tensor.

    Args:
        scale, zero_point: Of the local model's input.
        count: Number of samples.
    """
    samples = pair.x[:count]
    local_inputs = (quantised(pair.model_input(x, "ldl"), scale, zero_point).tobytes() for x in samples)
    return b"".join(local + pair.remote_payload(x) for local, x in zip(local_inputs, samples))


def shipped_names() -> list[str]:
    """Names of the shipped pairs."""
    return sorted(path.parent.name for path in places.models().glob("*/pair.json"))


def folder_of(name: str) -> Path:
    """The folder of the shipped pair of that name, or the folder that the name is."""
    return places.models() / name if name in shipped_names() else Path(name)


def local_model(path: Path) -> tuple[Path, PairInfo | None]:
    """The file of a local model, and the description of the pair that it stands in; None: it stands in none.

    path: A .tflite, or the folder of a pair.
    """
    folder = path if path.is_dir() else path.parent
    if not (folder / "pair.json").is_file() or not (path.is_dir() or path.name == LDL):
        return path, None
    return folder / LDL, load_info(str(folder))


def load(name: str) -> Pair:
    """The shipped pair of that name, or the pair in that folder.

    UserError: something is missing or wrong, or the user does not trust the pair's program or server; the text says which.
    """
    folder, info = folder_of(name), load_info(name)
    with _reading(name), open_npz(folder / "test.npz") as data:
        x, y = data["x"], data["y"].astype(int)
        raw = data["raw"] if "raw" in data.files else None
    if len(x) != len(y) or not len(y) or y.min() < 0 or y.max() >= info.classes:
        expected = f"labels 0 to {info.classes - 1}"
        raise UserError(f"{folder / 'test.npz'}: {len(x)} samples, {len(y)} labels; want as many of each, {expected}")
    check_finite(x, folder / "test.npz", missing=any(own and own.missing for own in info.prepared.values()))
    return Pair(folder, info, x, y, raw)


def is_url(path: str) -> bool:
    """Whether a remote model is a server's."""
    return path.startswith(("http://", "https://"))


def load_info(name: str) -> PairInfo:
    """The description of a pair, by its name or its folder. UserError as load()."""
    folder = folder_of(name)
    with _reading(name):
        description = parse_json((folder / "pair.json").read_text())
        number = description.get("format", 1) if isinstance(description, dict) else 1
        check_format(number, FORMAT, folder / "pair.json", "the pair again: h2t2 pair")
        info = PairInfo.model_validate(description)
        _check_files(folder, info)
        trust.demand(str(folder), *active_parts(folder, info))
    return info


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Make a UserError of what reading a pair raises."""
    folder = folder_of(name)
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"model {name}: no {error.filename}; shipped pairs: {', '.join(shipped_names())}") from None
    except ValidationError as error:
        raise UserError(f"{folder / 'pair.json'}: {describe_error(error)}; not a model pair: h2t2 pair makes one") from None
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{folder}: not a model pair: {str(error).splitlines()[0]}") from None


def active_parts(folder: Path, info: PairInfo) -> tuple[list[str], list[bytes]]:
    """What a pair does beyond holding data: sentences about it, and the programs and addresses that do it."""
    dangers: list[str] = []
    parts: list[bytes] = []
    for text in filter(None, (info.remote.model, info.remote.encode)):
        if is_url(text):
            dangers.append(f"samples go to {text}")
            parts.append(text.encode())
        elif is_user_function(text):
            file, _, function = text.rpartition(":")
            dangers.append(f"{file} runs with all your rights")
            parts += [function.encode(), *(path.read_bytes() for path in {folder / file, *needed_files(folder / file)})]
        elif text.endswith(".toml"):
            dangers.append(f"samples go to the server that {text} names")
            parts.append((folder / text).read_bytes())
    return dangers, parts


def _check_files(folder: Path, info: PairInfo) -> None:
    """Raise a UserError for a file of a pair that lies, or leads, outside its folder: it would be copied, or run."""
    named = [text.rpartition(":")[0] if is_user_function(text) else text for text in (info.remote.model, info.remote.encode)]
    for name in ("test.npz", LDL, "prior.json", "README.md", *(text for text in named if not is_url(text))):
        if not is_inside(folder, name):
            raise UserError(f"{folder}: not a model pair: {name} lies outside its folder")


def copy_pair(pair: Pair, folder: Path) -> None:
    """Copy a pair, and all that its models and its encoder read, into a folder, which then needs no other one.

    Args:
        pair: the pair. Recorded samples, traces and the recipe of its models stay behind.
        folder: a new folder.

    Raises:
        UserError: a file that pair.json names is missing.
    """
    description = parse_json((pair.folder / "pair.json").read_text())
    folder.mkdir(parents=True)
    for name in ("test.npz", LDL, "prior.json", "README.md"):
        if (pair.folder / name).is_file():
            shutil.copyfile(pair.folder / name, folder / name)
    remote = description["remote"]
    for entry, stem in (("model", "rdl"), ("encode", "encode")):
        text = getattr(pair.info.remote, entry)
        if text and not is_url(text):
            remote[entry] = copied(pair.folder, text, folder, stem)
    (folder / "pair.json").write_text(json.dumps(description, indent=1) + "\n")


def copied(source: Path, text: str, folder: Path, stem: str) -> str:
    """The name in `folder` of a copy of a file, or of FILE.py:FUNCTION, that `source` names."""
    file, colon, function = text.rpartition(":") if is_user_function(text) else (text, "", "")
    path = source / file
    name = stem + path.suffix
    if colon:
        copy_program(path, folder, name)
    elif path.is_file():
        shutil.copyfile(path, folder / name)
    else:
        raise UserError(f"{path}: no such file; pair.json names it")
    return name + colon + function


def draw_indices(pair: Pair, samples: int, seed: int) -> np.ndarray:
    """Indices into the test part: `samples` of them, drawn uniformly with replacement, as in the paper, or in their order."""
    if pair.info.ordered:
        return np.arange(samples) % len(pair.y)
    return np.random.default_rng(seed).integers(0, len(pair.y), samples)
