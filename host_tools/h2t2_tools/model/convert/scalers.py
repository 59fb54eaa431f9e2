"""scikit-learn's scalers, encoders and imputers: each makes columns, and each column is one number of a sample, scaled."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from ...common.tables import UNKNOWN
from .trained_model import Encoding

SCALERS = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer, OneHotEncoder, OrdinalEncoder of texts, PCA, a "
    "choice of columns such as SelectKBest, or a ColumnTransformer of them and passthrough"
)
NO_NUMBER = -1e30  # stands for NaN where NaN is a category


OF_A_COLUMN = "index", "factor", "offset", "missing", "equal"


@dataclass(frozen=True)
class Columns:
    """What stands before a model: column n is x[index[n]] * factor[n] + offset[n], or a mix of such columns.

    Attributes:
        inputs: Numbers in a sample.
        index, factor, offset: Of each column, (columns,).
        missing: What stands for NaN, a number or a text, (columns,) objects; None: nothing does.
        equal: The number or text where the column is 1, and 0 elsewhere, (columns,) objects; None: it stays a number.
        texts: Index of a number that stands for a text -> the texts.
        mix, shift: The model reads mix @ columns + shift, (outputs, columns) and (outputs,), as of a PCA; None: the columns.
    """

    inputs: int
    index: np.ndarray
    factor: np.ndarray
    offset: np.ndarray
    missing: np.ndarray
    equal: np.ndarray
    texts: dict[int, set[str]] = field(default_factory=dict)
    _: KW_ONLY
    mix: np.ndarray | None = None
    shift: np.ndarray | float = 0.0

    def mixed(self, matrix: np.ndarray, shift: np.ndarray | float) -> Columns:
        """The columns behind a step that gives matrix @ x + shift."""
        if self.mix is None:
            return replace(self, mix=matrix, shift=shift)
        return replace(self, mix=matrix @ self.mix, shift=matrix @ (self.shift + np.zeros(len(self.mix))) + shift)

    def scaled(self, factor: Any, offset: Any) -> Columns:
        """The columns behind a scaler that gives x * factor + offset."""
        if self.mix is not None:
            return replace(self, mix=self.mix * np.reshape(factor, (-1, 1)), shift=self.shift * factor + offset)
        return replace(self, factor=self.factor * factor, offset=self.offset * factor + offset)

    def picked(self, columns: list[int]) -> Columns:
        """Some of the columns."""
        if self.mix is not None:
            return replace(self, mix=self.mix[columns], shift=(self.shift + np.zeros(len(self.mix)))[columns])
        return replace(self, **{name: getattr(self, name)[columns] for name in OF_A_COLUMN})

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
        if self.mix is not None:
            weights, bias = weights @ self.mix, bias + weights @ (self.shift + np.zeros(len(self.mix)))
        factor, offset = np.broadcast_to(factor, self.inputs), np.broadcast_to(offset, self.inputs)
        ratio = self.factor / factor[self.index]
        folded = np.zeros((len(weights), self.inputs))
        for n, at in enumerate(self.index):
            folded[:, at] += weights[:, n] * ratio[n]
        return folded, bias + weights @ (self.offset - offset[self.index] * ratio)


def identity(inputs: int) -> Columns:
    """The numbers of a sample themselves."""
    nothing = np.full(inputs, None)
    return Columns(inputs, np.arange(inputs), np.ones(inputs), np.zeros(inputs), nothing, nothing)


def numbered(branches: list[Columns]) -> dict[int, list[str]]:
    """Index of a number of a sample -> the texts that its values from 0 up stand for, as all of these columns know them."""
    return {
        index: sorted(set().union(*(own.texts.get(index, ()) for own in branches))) for own in branches for index in own.texts
    }


def encoding(branches: list[Columns], path: Path) -> tuple[list[Columns], Encoding | None]:
    """The same columns of encoded numbers, and how these are made of a sample; None where a sample needs no encoding."""
    texts = numbered(branches)
    ordinal = [(own, int(n)) for own in branches for n, category in zip(own.index, own.equal) if category is None]
    if any(len(own.texts.get(n, texts[n])) < len(texts[n]) for own, n in ordinal if n in texts):
        raise UserError(f"{path}: OrdinalEncoders of unlike categories: fit the encoder before the ensemble")

    def number(index: int, value: Any) -> float | None:
        return float(texts[index].index(value) if isinstance(value, str) else value) if value is not None else None

    keys = [
        [(int(n), *(number(int(n), value) for value in values)) for n, *values in zip(own.index, own.missing, own.equal)]
        for own in branches
    ]
    places = {key: n for n, key in enumerate(dict.fromkeys(key for own in keys for key in own))}
    index, *rules = (list(values) for values in zip(*places))
    missing, equal = (rule if set(rule) != {None} else None for rule in rules)
    if not missing and not equal:
        return branches, None
    moved = [replace(own, inputs=len(places), index=np.array([places[key] for key in at])) for own, at in zip(branches, keys)]
    return moved, Encoding(index, missing, equal)


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
    if name in ENCODERS:
        return ENCODERS[name](columns, step, path)
    if name == "PCA":
        matrix = step.components_
        if step.whiten:
            matrix = matrix / np.sqrt(np.maximum(step.explained_variance_, np.finfo(float).eps))[:, None]
        return columns.mixed(matrix, 0.0 if step.mean_ is None else -(matrix @ step.mean_))
    if hasattr(step, "get_support"):  # SelectKBest, VarianceThreshold ...
        return columns.picked([int(n) for n in step.get_support(indices=True)])
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
        block = behind(columns.picked(_places(picked, names, step.n_features_in_)), transformer, path)
        if block.mix is not None:
            raise UserError(f"{path}: a ColumnTransformer around or behind a PCA: put the PCA behind it")
        blocks.append(block)
    return beside(blocks)


def beside(blocks: list[Columns]) -> Columns:
    """The columns of one block behind those of the other."""
    joined = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in OF_A_COLUMN}
    return Columns(blocks[0].inputs, **joined, texts={n: set(texts) for n, texts in numbered(blocks).items()})


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


def _imputed(columns: Columns, step: Any, path: Path) -> Columns:
    """The columns behind a SimpleImputer, and those behind them that tell where a number was missing."""
    values = np.asarray(step.statistics_, object)
    if columns.mix is not None or not (step.missing_values is None or step.missing_values != step.missing_values):
        raise UserError(f"{path}: a SimpleImputer behind a PCA, or of another number than NaN")
    if any(value != value or value is None for value in values):
        raise UserError(f"{path}: a SimpleImputer of a column without any number: leave the column out")
    raw = [v if isinstance(v, str) else (v - o) / f for v, f, o in zip(values, columns.factor, columns.offset)]
    known = np.array([new if old is None else old for old, new in zip(columns.missing, raw)], object)
    blocks = [replace(columns, missing=known, texts={**columns.texts, **_texts(columns, [[v] for v in values])})]
    if step.indicator_ is not None:
        places = [int(n) for n in step.indicator_.features_]
        told = columns.picked(places)
        sign = np.full(len(places), NO_NUMBER, object)
        blocks.append(replace(told, missing=sign, equal=sign, factor=np.ones(len(places)), offset=np.zeros(len(places))))
    return beside(blocks)


def _one_hot(columns: Columns, step: Any, path: Path) -> Columns:
    """A column for each category of a OneHotEncoder."""
    _check_plain(columns, step, path)
    if any(group is not None for group in getattr(step, "infrequent_categories_", [])):
        raise UserError(f"{path}: a OneHotEncoder that groups infrequent categories")
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    entries = [(n, c) for n, own in enumerate(step.categories_) for k, c in enumerate(own) if k != dropped[n]]
    encoded = columns.picked([n for n, _ in entries])
    equal = np.array([NO_NUMBER if c is None or c != c else c for _, c in entries], object)
    missing = np.where(equal == NO_NUMBER, equal, encoded.missing)
    return replace(encoded, missing=missing, equal=equal, texts={**columns.texts, **_texts(columns, step.categories_)})


def _ordinal(columns: Columns, step: Any, path: Path) -> Columns:
    """The columns behind an OrdinalEncoder whose categories are texts: a sample has their numbers."""
    _check_plain(columns, step, path)
    texts = _texts(columns, step.categories_)
    for own in step.categories_:
        if not all(isinstance(c, str) for c in own) or list(own) != sorted(own) or step.unknown_value not in (None, UNKNOWN):
            raise UserError(f"{path}: an OrdinalEncoder of other categories than texts in alphabetical order")
    return replace(columns, texts={**columns.texts, **texts})


def _check_plain(columns: Columns, step: Any, path: Path) -> None:
    """Raise a UserError where an encoder reads other columns than numbers of a sample as they are."""
    plain = (columns.factor == 1).all() and (columns.offset == 0).all() and all(c is None for c in columns.equal)
    if columns.mix is not None or not plain:
        raise UserError(f"{path}: a {type(step).__name__} behind a scaler")


def _texts(columns: Columns, categories: Any) -> dict[int, set[str]]:
    """Index of a number of a sample -> the texts among the categories of its column and those that it had."""
    found = {int(n): {str(c) for c in own if isinstance(c, str)} for n, own in zip(columns.index, categories)}
    return {n: texts | columns.texts.get(n, set()) for n, texts in found.items() if texts}


ENCODERS = {"SimpleImputer": _imputed, "OneHotEncoder": _one_hot, "OrdinalEncoder": _ordinal}
