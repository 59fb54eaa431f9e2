"""A model pair on disk: LDL, RDL, test part, pair.json. Finds the shipped ones by name and the user's by folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from .errors import UserError


class _About(BaseModel):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    model_id: int = Field(ge=0, le=65535)
    event: str
    event_index: dict[str, int]
    beta: float = Field(ge=0, le=1)
    columns: dict[str, list[int] | None]


@dataclass(frozen=True)
class Pair:
    """folder: where the files are. x: (n, ...) float32 test samples, y: (n,) true labels in {0, 1}."""

    folder: Path
    about: _About
    x: np.ndarray
    y: np.ndarray

    @property
    def ldl(self) -> Path:
        return self.folder / "ldl.tflite"

    @property
    def rdl(self) -> Path:
        return self.folder / "rdl.tflite"

    def view(self, x: np.ndarray, model: str) -> np.ndarray:
        """What the model "ldl" or "rdl" reads of a sample."""
        columns = self.about.columns[model]
        return x if columns is None else x[columns]


def shipped() -> Path:
    """The folder of the shipped pairs: inside the installed wheel, or models/ of the source tree."""
    inside = Path(__file__).parent / "_models"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "models"


def names() -> list[str]:
    """Names of the shipped pairs."""
    return sorted(path.parent.name for path in shipped().glob("*/pair.json"))


def load(name: str) -> Pair:
    """The shipped pair of that name, or the pair in that folder. UserError, saying what is missing or wrong, otherwise."""
    folder = shipped() / name if name in names() else Path(name)
    try:
        about = _About.model_validate(json.loads((folder / "pair.json").read_text()))
        with np.load(folder / "test.npz") as data:
            x, y = data["x"], data["y"].astype(int)
    except FileNotFoundError as error:
        raise UserError(f"model {name}: no {error.filename}; shipped pairs: {', '.join(names())}") from None
    except (OSError, ValueError, KeyError, ValidationError) as error:
        raise UserError(f"{folder}: not a model pair: {str(error).splitlines()[0]}") from None
    if len(x) != len(y) or not len(y) or not set(np.unique(y)) <= {0, 1}:
        raise UserError(f"{folder / 'test.npz'}: {len(x)} samples, {len(y)} labels; want as many of each, labels 0 or 1")
    return Pair(folder, about, x, y)


def stream(pair: Pair, samples: int, seed: int) -> np.ndarray:
    """Indices into the test part: `samples` of them, drawn uniformly with replacement, as in the paper."""
    return np.random.default_rng(seed).integers(0, len(pair.y), samples)
