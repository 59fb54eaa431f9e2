"""`h2t2 convert`: a trained model becomes an int8 .tflite, a bundle and a report. Each step returns what the next one takes."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...common import prior_file
from ...common.errors import UserError
from ...common.places import temporary_folder
from ...common.policies import DEFAULTS
from ...common.quality_limits import MAX_LOSS
from ...common.tables import WHOLE, Selection
from ...replay import prior
from .. import bundle, quality
from ..exact import open_local
from ..inspect import inspect
from . import calibration, compare, conversion_report
from .distil import student
from .from_tflite import with_scores
from .readers import fitted_table, open_source
from .scaling import scaled
from .trained_model import NoInt8Form, Source


@dataclass(frozen=True)
class FloatResult:
    """The float model on the samples that evaluate it.

    Attributes:
        samples: The samples.
        classes: Number of outputs.
        event: The output that is the event.
        outputs: The scores of all outputs, (n, classes).
        score: The event's scores, (n,).
        label: (n,) of 0 and 1: true labels, or the float model's decisions where the samples have none.
    """

    samples: calibration.Samples
    classes: int
    event: int
    outputs: np.ndarray
    score: np.ndarray
    label: np.ndarray


def convert(
    model: Path,
    data: Path,
    out: Path,
    *,
    test: Path | None = None,
    event: int | None = None,
    scale: float | None = None,
    with_bundle: bool = True,
    max_loss: float = MAX_LOSS,
    logits: bool = False,
    distil: bool = False,
    missing_value: float | None = None,
    selection: Selection = WHOLE,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """Convert a trained model, and return the report as report.json holds it. A run that fails leaves nothing in `out`.

    Args:
        model, missing_value: As open_source() takes them.
        data: Samples that set the quantisation ranges: .npy, .npz, .csv or a folder of images.
        out: Folder for NAME_int8.tflite, NAME.h2m, NAME_prior.json and report.md, .json, .png.
        test: Samples that evaluate both models (the calibration samples). With labels they give NAME_prior.json.
        event, scale: Index of class 1 among the outputs (the last); divisor of the data (255 for bytes, else 1).
        with_bundle: Write the bundle, where a board can run the model.
        max_loss: Percentage points of accuracy that int8 may lose.
        logits, distil: Make scores of the model's logits; convert trees that are trained on its scores.
        selection: What the user says of the columns of a table, and of samples that lack a number or their label.
        progress: Receives the name of each step.

    Raises:
        UserError: The model or the data cannot be used.
        Failure: The int8 model loses more than max_loss.
    """
    with temporary_folder("convert") as temporary:
        name, folder = model.stem if model.is_file() else model.name, Path(temporary)
        progress("reading the model")
        source, fit, load = _opened(
            model, data, scale, selection, labelled=not test, logits=logits, distil=distil, missing_value=missing_value
        )
        progress("running the float model")
        exact = _run(source, load(test, source.shape) if test else fit, event)
        progress("quantising")
        source = scaled(source, fit.x)
        files = {"tflite": _write(folder / f"{name}_int8.tflite", source.quantise(source.prepared(fit.x)))}
        description = _inspect(model, files["tflite"])
        if with_bundle and description["board"]:
            files["bundle"] = _write(folder / f"{name}.h2m", bundle.from_tflite(files["tflite"]))
        progress("running the int8 model")
        rounded = _int8_scores(model, files["tflite"], source.prepared(exact.samples.x), exact.event)
        causes = _causes(source, fit, exact)
        _check_loss(source, exact, rounded, max_loss, causes)
        progress("comparing the policy's decisions")
        if test and exact.samples.y is not None:  # the calibration samples would overrate the int8 model's bins
            files["prior"] = _write_prior(folder / f"{name}_prior.json", exact, rounded)
        page = {**_description(model, source, fit, exact, description), **_comparison(exact, rounded, causes)}
        out.mkdir(parents=True, exist_ok=True)
        page["files"] = {kind: str(shutil.move(path, out / path.name)) for kind, path in files.items()}
        conversion_report.write(out, page, name, exact.score, rounded)
        return page


def _opened(
    model: Path,
    data: Path,
    scale: float | None,
    selection: Selection,
    *,
    labelled: bool,
    logits: bool,
    distil: bool,
    missing_value: float | None,
) -> tuple[Source, calibration.Samples, Callable[..., calibration.Samples]]:
    """The source, the samples that set its ranges, and what reads samples for it. Arguments: those of convert().

    labelled: the samples need their labels.
    """
    table = fitted_table(model)
    load = partial(calibration.load, scale=scale, columns=[*table.columns] or None, table=table, selection=selection)
    if distil:
        fit = load(data, None, labelled=labelled)
        return student(model, fit.x.reshape(len(fit.x), -1), missing_value), fit, load
    source = open_source(model, missing_value)
    if logits:
        source = with_scores(source)
    return source, load(data, source.shape, labelled=labelled), load


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _write_prior(path: Path, exact: FloatResult, rounded: np.ndarray) -> Path:
    """Write the prior of the int8 model's scores, (n,), and return its path."""
    prior_file.write(path, str(exact.samples.path), len(rounded), prior.table(rounded, exact.label, DEFAULTS["bits"]))
    return path


def _run(source: Source, samples: calibration.Samples, event: int | None) -> FloatResult:
    outputs = source.checked_scores(samples.x)
    classes = outputs.shape[1]
    event = classes - 1 if event is None else event
    if not 0 <= event < classes:
        raise UserError(f"--event {event}: the model has outputs 0..{classes - 1}")
    score = np.clip(outputs[:, event], 0, 1)
    label = (score >= 0.5).astype(int) if samples.y is None else _event_labels(samples.path, samples.y, classes, event)
    return FloatResult(samples, classes, event, outputs, score, label)


def _event_labels(path: Path, y: np.ndarray, outputs: int, event: int) -> np.ndarray:
    """(n,) in {0, 1}: with two classes the label itself, with more whether it is the event."""
    classes = max(outputs, 2)
    if y.min() < 0 or y.max() >= classes:
        raise UserError(f"{path}: labels {y.min()}..{y.max()}; the model has {classes} classes")
    return np.asarray(y == (1 if outputs == 1 else event)).astype(int)


def _causes(source: Source, fit: calibration.Samples, exact: FloatResult) -> list[str]:
    """Return what is suspicious about the samples; int8 may lose accuracy by it."""
    known = exact.outputs if exact.samples is fit else source.scores(fit.x)
    return quality.calibration_warnings(fit.x, known) + quality.rounding_warnings(exact.samples.x, source.scores)


def _check_loss(source: Source, exact: FloatResult, rounded: np.ndarray, limit: float, causes: list[str]) -> None:
    """Raise a Failure if int8 loses more than the limit. Without true labels it loses where its decision is another."""
    before, after = (float(np.mean((score >= 0.5) == exact.label)) for score in (exact.score, rounded))
    quality.check_loss(str(source.path), before, after, limit, causes, source.remedy)


def _inspect(model: Path, int8: Path) -> dict[str, Any]:
    """What `h2t2 inspect` says of the int8 model. UserError where its ends are float."""
    try:
        description = inspect(int8)
    except UserError as error:
        raise UserError(str(error).replace(str(int8), str(model))) from None
    if description["inputs"][0]["dtype"] != "int8" or description["outputs"][0]["dtype"] != "int8":
        raise NoInt8Form(f"{model}: the converter left its ends as float: some operator cannot be quantised")
    return description


def _int8_scores(model: Path, int8: Path, x: np.ndarray, event: int) -> np.ndarray:
    """The int8 model's scores of the event, (n,). UserError where no interpreter runs the quantizer's result."""
    try:
        ldl = open_local(int8, event)
    except UserError as error:
        raise NoInt8Form(f"{model}: as int8 {str(error).removeprefix(f'{int8}: ')}") from None
    return np.array([ldl.scores(ldl.quantise(row))[event] for row in x])


def _description(
    model: Path, source: Source, fit: calibration.Samples, exact: FloatResult, int8: dict[str, Any]
) -> dict[str, Any]:
    """The report's entries on both models and the samples."""
    test = exact.samples
    entries: dict[str, Any] = {
        "model": str(model), "kind": source.kind, "classes": exact.classes, "event": exact.event,
        "calibration": {"path": str(fit.path), "samples": len(fit.x)},
        "test": {"path": str(test.path), "samples": len(test.x), "labelled": test.y is not None, "is_calibration": test is fit},
        "bytes": {"source": source.file_bytes, "tflite": int8["file_bytes"], **(int8["board"] or {})},
        "parameters": int8["parameters"], "multiply_accumulates": int8["multiply_accumulates"],
        "not_for_a_board": int8["problems"], "feeds_the_policy": int8["policy"][0],
    }  # fmt: skip
    if np.ndim(source.factor):
        entries["input"] = {"factor": np.ravel(source.factor).tolist(), "offset": np.ravel(source.offset).tolist()}
    if source.encoding:
        entries["encoding"] = vars(source.encoding)
    return entries


def _comparison(exact: FloatResult, rounded: np.ndarray, causes: list[str]) -> dict[str, Any]:
    """The report's entries on what the int8 model does differently; rounded: its scores of the event, (n,)."""
    scores = {"float": exact.score, "int8": rounded}
    entries: dict[str, Any] = {"worst_score_difference": float(np.abs(exact.score - rounded).max())}
    if exact.samples.y is not None:
        entries |= {kind: compare.errors(score, exact.label) for kind, score in scores.items()}
        entries["warnings"] = quality.sample_warnings(exact.label, 2)
        entries["reliability"] = {kind: compare.reliability(score, exact.label) for kind, score in scores.items()}
    else:
        entries["warnings"] = []
    entries["warnings"] += [*causes, *quality.silence_warnings(rounded, exact.label)]
    return {**entries, "policy": compare.decisions(exact.score, rounded, exact.label)}
