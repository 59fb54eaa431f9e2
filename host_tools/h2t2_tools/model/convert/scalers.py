"""scikit-learn's scalers and ColumnTransformers: each makes columns, and each column is one number of a sample, scaled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError

SCALERS = "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or a ColumnTransformer of them and passthrough"


@dataclass(frozen=True)
class Columns:
    """What stands before a model: column n is x[index[n]] * factor[n] + offset[n].

    Attributes:
        inputs: Numbers in a sample.
        index, factor, offset: Of each column, (columns,).
    """

    inputs: int
    index: np.ndarray
    factor: np.ndarray
    offset: np.ndarray

    def scaled(self, factor: Any, offset: Any) -> Columns:
        """The columns behind a scaler that gives x * factor + offset."""
        return Columns(self.inputs, self.index, self.factor * factor, self.offset * factor + offset)

    def picked(self, columns: list[int]) -> Columns:
        """Some of the columns."""
        return Columns(self.inputs, self.index[columns], self.factor[columns], self.offset[columns])

    def first_scaling(self) -> tuple[np.ndarray | float, np.ndarray | float]:
        """(factor, offset) for the numbers of a sample: of the first column that each is in, and 0 where it is in none.

        1 and 0 where nothing is scaled.
        """
        factor, offset = np.zeros(self.inputs), np.zeros(self.inputs)
        for n in range(len(self.index) - 1, -1, -1):
            factor[self.index[n]], offset[self.index[n]] = self.factor[n], self.offset[n]
        plain = (factor == 1).all() and (offset == 0).all()
        return (1.0, 0.0) if plain else (factor, offset)

    def folded(self, weights: np.ndarray, bias: np.ndarray, factor: Any, offset: Any) -> tuple[np.ndarray, np.ndarray]:
        """The weights (outputs, inputs) and bias for samples scaled by (factor, offset), from those for the columns."""
        factor, offset = np.broadcast_to(factor, self.inputs), np.broadcast_to(offset, self.inputs)
        ratio = self.factor / factor[self.index]
        folded = np.zeros((len(weights), self.inputs))
        for n, at in enumerate(self.index):
            folded[:, at] += weights[:, n] * ratio[n]
        return folded, bias + weights @ (self.offset - offset[self.index] * ratio)


def identity(inputs: int) -> Columns:
    """The numbers of a sample themselves."""
    return Columns(inputs, np.arange(inputs), np.ones(inputs), np.zeros(inputs))


def behind(columns: Columns, step: Any, path: Path) -> Columns:
    """The columns behind a fitted step of a pipeline. UserError, naming the step, where it is no scaler; path: for messages."""
    name = type(step).__name__
    if name == "Pipeline":
        for _, inner in step.steps:
            columns = behind(columns, inner, path)
        return columns
    if name == "ColumnTransformer":
        return _transformed(columns, step, path)
    if name in ("StandardScaler", "RobustScaler"):
        factor = 1 / step.scale_ if step.scale_ is not None else 1.0
        centre = step.mean_ if name == "StandardScaler" else step.center_
        return columns.scaled(factor, -(centre if centre is not None else 0.0) * factor)
    if name == "MinMaxScaler":
        return columns.scaled(step.scale_, step.min_)
    if name == "MaxAbsScaler":
        return columns.scaled(1 / step.scale_, 0.0)
    if step is None or step == "passthrough" or (name == "FunctionTransformer" and step.func is None):
        return columns
    raise UserError(f"{path}: the pipeline's {name} is not a scaler of one number each; {SCALERS} can be converted")


def _transformed(columns: Columns, step: Any, path: Path) -> Columns:
    """The columns behind a fitted ColumnTransformer, one transformer's behind the other's."""
    names = list(getattr(step, "feature_names_in_", []))
    blocks = []
    for _, transformer, picked in step.transformers_:
        if isinstance(transformer, str) and transformer == "drop":
            continue
        blocks.append(behind(columns.picked(_places(picked, names, step.n_features_in_)), transformer, path))
    index, factor, offset = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("index", "factor", "offset")
    )
    return Columns(columns.inputs, index, factor, offset)


def _places(picked: Any, names: list[str], count: int) -> list[int]:
    """Which of `count` columns a ColumnTransformer's entry picks: a slice, a mask, numbers or names, or one of these."""
    if isinstance(picked, slice) and not isinstance(picked.start or picked.stop, str):
        return list(range(count))[picked]
    if isinstance(picked, slice):  # of names, the last included
        first, last = (names.index(end) if end else default for end, default in ((picked.start, 0), (picked.stop, count - 1)))
        return list(range(first, last + 1))
    entries = np.atleast_1d(np.asarray(picked, object))
    if len(entries) == count and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        return [int(n) for n in np.flatnonzero(entries.astype(bool))]
    return [names.index(entry) if isinstance(entry, str) else int(entry) % count for entry in entries]
