"""The labelled samples of a pair: read, checked, and turned into what the two models read."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from ...common.event import event_names, named_event
from ...common.labels import described
from ...common.pairs import PictureSpec, WindowSpec
from ...common.tables import WHOLE, Selection, column_numbers, column_places
from ..convert import calibration
from ..convert.calibration import NO_TABLE
from ..convert.readers import Table, column_names, fitted_table


@dataclass(frozen=True)
class PairSamples:
    """Samples that evaluate and calibrate the models of a pair.

    Attributes:
        path: The file of the test samples.
        x: Test samples, float32 (n, ...).
        y: Labels (n,): 1 for the event and 0 otherwise, or class numbers where `event` is None.
        fit: Samples that set the quantisation ranges, float32 (m, ...).
        event: The class that is the event, or None where the pair decides between all classes.
        classes: Number of classes in the file.
        names: Names of the classes that the pair decides between, or None.
        raw: The windows or pictures that x was computed from, as measured, or None.
        source: How x is computed from them, or None.
        header: Names of the numbers of x, or None.
        texts: Name of a number -> the words that its values from 0 up stand for.
        ordered: The test samples are in the order of time.
    """

    path: Path
    x: np.ndarray
    y: np.ndarray
    fit: np.ndarray
    event: int | None
    classes: int
    _: KW_ONLY
    names: list[str] | None = None
    raw: np.ndarray | None = None
    source: WindowSpec | PictureSpec | None = None
    header: list[str] | None = None
    texts: dict[str, list[str]] = field(default_factory=dict)
    ordered: bool = False

    @property
    def texts_in_words(self) -> dict[str, str]:
        """Lines of a pair's README that tell what numbers stand for words."""
        return {f"Number {(self.header or []).index(name)}, {name}": described(words) for name, words in self.texts.items()}

    @property
    def description(self) -> dict[str, Any]:
        """The entries of pair.json about the samples: class_names, ordered, and window and picture that x is computed from."""
        return {
            "class_names": self.names,
            "window": self.source if isinstance(self.source, WindowSpec) else None,
            "picture": self.source if isinstance(self.source, PictureSpec) else None,
            "ordered": self.ordered,
        }

    def columns(self, numbers: list[int] | None, option: str) -> PairSamples:
        """The samples with these columns alone (None: all). UserError, naming the option, for columns that do not exist."""
        if numbers is None:
            return self
        if self.x.ndim != 2 or not numbers or min(numbers) < 0 or max(numbers) >= self.x.shape[1]:
            raise UserError(f"{option}: samples have the shape {self.x.shape[1:]}; want numbers of columns from 0 on")
        header = [self.header[n] for n in numbers] if self.header else None
        return replace(self, x=self.x[:, numbers], fit=self.fit[:, numbers], header=header)

    def numbers_of(self, model: Path, words: list[str] | None, option: str) -> list[int] | None:
        """The numbers of a sample that a model reads, in its order; None: all as they are.

        Args:
            model: A file. One that was fitted on named columns reads those of the samples that have these names.
            words: Names of columns, or their numbers, that the user gives; None: nothing.
            option: By which the user gives them.

        Raises:
            UserError: The samples lack a column, or the user names other columns than the model reads.
        """
        numbers = column_numbers(option, words, self.header, self.path)
        names = column_names(model) if self.header else None
        if not names or not self.header:
            return numbers
        named = column_places(self.header, names, self.path)
        if numbers is not None and numbers != named:
            raise UserError(f"{option}: {model} reads the columns {', '.join(names)}, which are {' '.join(map(str, named))}")
        return None if named == list(range(len(self.header))) else named

    def shaped(self, shape: tuple[int, ...], model: str) -> PairSamples:
        """The samples in the shape of a model's input. UserError, naming the model, where their size differs."""
        if int(np.prod(shape)) != int(np.prod(self.x.shape[1:])):
            raise UserError(
                f"{model}: takes the shape {shape}, and a sample has the shape {self.x.shape[1:]}; --ldl-columns and "
                "--rdl-columns select the numbers that a model reads"
            )
        return replace(self, x=self.x.reshape(-1, *shape), fit=self.fit.reshape(-1, *shape))


def load_samples(
    test: Path,
    fit: Path | None = None,
    *,
    scale: float | None = None,
    event: int | str | None = None,
    classes: int | None = None,
    source: WindowSpec | PictureSpec | None = None,
    table: Table = NO_TABLE,
    selection: Selection = WHOLE,
) -> PairSamples:
    """Read the samples of a pair.

    Args:
        test: .npz of x (n, ...) and y, .csv with a header, .parquet, or a folder with a folder of images for each class.
        fit: .npz or .npy of x for the quantisation ranges (the test samples).
        scale: Divisor of x (255 for bytes, else 1); pictures keep 0 to 255.
        event: The class that is the event, its number or its name; None: as named_event() has it.
        classes: Number of classes that the pair decides between, none of which is the event.
        source: x holds windows of measurements, or pictures; the models read what this computes from them.
        table: What table_of() both models says.
        selection: What the user says of the columns of a table, and of samples that lack a number or their label.

    Raises:
        UserError: The samples are missing, unlike each other, too few, not finite or of one class. It names the file.
    """
    divisor = 1.0 if isinstance(source, PictureSpec) else scale
    shape = (source.height, source.width, source.channels) if isinstance(source, PictureSpec) else None
    tested = calibration.load(test, shape if test.is_dir() else None, divisor, None, table, selection=selection)
    fitted = tested
    if fit:
        place = shape if fit.is_dir() else None
        fitted = calibration.load(fit, place, divisor, tested.columns, table, selection=selection, labelled=False)
    if fitted.x.shape[1:] != tested.x.shape[1:]:
        raise UserError(f"{fit}: samples of shape {fitted.x.shape[1:]}, but {tested.x.shape[1:]} in {test}")
    known = {name: words for name, words in table.texts.items() if name in (tested.columns or ())}
    y, number, classes = _labels(tested, event, classes)
    names = tested.names if number is None else event_names(tested.names, number)
    if source is None:
        return PairSamples(test, tested.x, y, fitted.x, number, classes, names=names, header=tested.columns, texts=known)
    raw = _raw(tested, source)
    x = _numbers(raw, source)
    fit_x = x if fitted is tested else _numbers(_raw(fitted, source), source)
    return PairSamples(test, x, y, fit_x, number, classes, names=names, raw=raw, source=source)


def _labels(samples: calibration.Samples, event: int | str | None, classes: int | None) -> tuple[np.ndarray, int | None, int]:
    """(labels, the event, number of classes); labels are 0 and 1 where there is an event."""
    path, y = samples.path, samples.y
    if y is None:
        raise UserError(f"{path}: no labels; want an .npz of x and y, a .csv with --label COLUMN, or a folder a class")
    if len(np.unique(y)) < 2 or y.min() < 0:
        raise UserError(f"{path}: y holds {np.unique(y)[:9].tolist()}; want classes from 0, two or more")
    labelled = int(y.max()) + 1
    if classes:
        if labelled > classes:
            raise UserError(f"{path}: labels to {labelled - 1}; --classes {classes} wants 0 to {classes - 1}")
        if event is not None:
            raise UserError("--event: with --classes, no class is the event")
        return y, None, classes
    number = named_event(event, samples.names, labelled, path)
    return (y == number).astype(int), number, labelled


def _raw(samples: calibration.Samples, source: WindowSpec | PictureSpec) -> np.ndarray:
    """Windows (n, size, channels) float32, or pictures (n, height, width, channels) uint8."""
    path, x = samples.path, samples.x
    shape: tuple[int, ...]
    if isinstance(source, WindowSpec):
        option, shape = f"--window {source.size}", (source.size, source.channels)
    else:
        option, shape = "--picture", (source.height, source.width, source.channels)
    shapes = (shape, shape[:-1]) if shape[-1] == 1 else (shape,)
    if x.shape[1:] not in shapes:
        raise UserError(f"{path}: samples of shape {x.shape[1:]}; {option} wants {shapes[-1]}")
    x = x.reshape(len(x), *shape)
    if isinstance(source, WindowSpec):
        return x
    if (x != np.round(x)).any() or x.min() < 0 or x.max() > 255:
        raise UserError(f"{path}: pictures are whole numbers from 0 to 255")
    return x.astype(np.uint8)


def _numbers(raw: np.ndarray, source: WindowSpec | PictureSpec) -> np.ndarray:
    """What a device computes from each sample, float32 (n, ...). Whole measurements stay integers, as a sensor gives them."""
    measured = raw.astype(np.int64) if (raw == np.round(raw)).all() else raw
    compute = source.features_of if isinstance(source, WindowSpec) else source.convert
    try:
        return np.array([compute(sample) for sample in measured], np.float32)
    except ValueError as error:
        raise UserError(f"--window: {error}") from None


def table_of(*models: str) -> Table:
    """What fitted_table() says of several models together. UserError where they number words differently."""
    known: dict[str, list[str]] = {}
    tables = [fitted_table(Path(model)) for model in models]
    for model, table in zip(models, tables):
        for name, words in {**table.texts, **({"": table.classes} if table.classes else {})}.items():
            if known.setdefault(name, words) != words:
                raise UserError(
                    f"{model}: its {f'categories of {name}' if name else 'classes'} are {', '.join(words)}, the other model's "
                    f"{', '.join(known[name])}: fit both on the same"
                )
    classes = known.pop("", None)
    columns = tuple(name for table in tables for name in table.columns)
    return Table(known, any(table.missing for table in tables), classes, columns)
