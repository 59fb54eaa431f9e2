"""The conversion: a trained model in, an int8 .tflite, a bundle and a report out."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...common import prior_file
from ...common.errors import UserError
from ...common.policies import DEFAULTS
from ...lab import prior
from .. import bundle
from ..exact import open_local
from ..inspect import inspect
from . import calibration, judge, report
from .open import open_source
from .source import Source


@dataclass(frozen=True)
class Job:
    """What to convert. data: calibration samples; test: samples to judge by (the calibration samples).

    event: index of class 1 among the outputs (the last). scale: what the data is divided by (255 for bytes, else 1).
    bundle: prepare it for boards as well.
    """

    model: Path
    data: Path
    out: Path
    test: Path | None = None
    event: int | None = None
    scale: float | None = None
    bundle: bool = True

    @property
    def name(self) -> str:
        return self.model.stem if self.model.is_file() else self.model.name


@dataclass(frozen=True)
class _Float:
    """The float model on the samples it is judged by. score, label: (n,) of the event, n samples; classes: its outputs."""

    judged: calibration.Samples
    classes: int
    event: int
    score: np.ndarray
    label: np.ndarray


def convert(job: Job, progress: Callable[[str], None] = lambda what: None) -> dict[str, Any]:
    """Write NAME_int8.tflite, NAME.h2m (where a board can run it), NAME_prior.json (where the test samples have labels) and
    report.md, .json, .png to job.out; the report. An error leaves nothing there: files are put in place at the end."""
    with tempfile.TemporaryDirectory(prefix="h2t2-convert-") as made_in:
        return _convert(job, Path(made_in), progress)


def _convert(job: Job, made_in: Path, progress: Callable[[str], None]) -> dict[str, Any]:
    progress("reading the model")
    source = open_source(job.model)
    samples = calibration.load(job.data, source.shape, job.scale)
    progress("running the float model")
    exact = _run(source, calibration.load(job.test, source.shape, job.scale) if job.test else samples, job.event)
    progress("quantising")
    made, about = _write(job, made_in, source.quantise(source.prepared(samples.x)))
    progress("running the int8 model")
    ldl = _opened(job, made["tflite"], exact.event)
    rounded = np.array([ldl.scores(ldl.quantise(row))[exact.event] for row in source.prepared(exact.judged.x)])
    progress("comparing the policy's decisions")
    if job.test and exact.judged.y is not None:  # what labels it was not made with say of the int8 model's own bins
        made["prior"] = made_in / f"{job.name}_prior.json"
        table = prior.table(rounded, exact.label, DEFAULTS["bits"])
        prior_file.write(made["prior"], str(exact.judged.path), len(rounded), table)
    said = {**_described(job, source, samples, exact, about), **_compared(exact, rounded)}
    job.out.mkdir(parents=True, exist_ok=True)
    said["files"] = {what: str(shutil.move(path, job.out / path.name)) for what, path in made.items()}
    report.write(job.out, said, job.name, exact.score, rounded)
    return said


def _opened(job: Job, int8: Path, event: int) -> Any:
    """The int8 model, ready to run. UserError where no interpreter runs what the quantizer made."""
    try:
        return open_local(int8, event)
    except ValueError as error:
        raise UserError(f"{job.model}: as int8 {str(error).removeprefix(f'{int8}: ')}") from None


def _run(source: Source, judged: calibration.Samples, event: int | None) -> _Float:
    outputs = source.checked_scores(judged.x)
    classes = outputs.shape[1]
    picked = classes - 1 if event is None else event
    if not 0 <= picked < classes:
        raise UserError(f"--event {picked}: the model has outputs 0..{classes - 1}")
    score = np.clip(outputs[:, picked], 0, 1)
    label = (score >= 0.5).astype(int) if judged.y is None else _event_labels(judged, classes, picked)
    return _Float(judged, classes, picked, score, label)


def _write(job: Job, made_in: Path, content: bytes) -> tuple[dict[str, Path], dict[str, Any]]:
    """Write the int8 model and, where a board can run it, its bundle: (their paths, what `h2t2 inspect` says)."""
    int8 = made_in / f"{job.name}_int8.tflite"
    int8.write_bytes(content)
    about = inspect(int8)
    if about["inputs"][0]["dtype"] != "int8" or about["outputs"][0]["dtype"] != "int8":
        raise UserError(f"{job.model}: the converter left its ends as float: some operator cannot be quantised")
    made = {"tflite": int8}
    if job.bundle and about["board"]:
        made["bundle"] = made_in / f"{job.name}.h2m"
        made["bundle"].write_bytes(bundle.from_tflite(int8))
    return made, about


def _described(job: Job, source: Source, samples: calibration.Samples, exact: _Float, about: dict[str, Any]) -> dict[str, Any]:
    """What was converted, from what, by which samples, and what it takes."""
    judged = exact.judged
    made: dict[str, Any] = {
        "model": str(job.model), "kind": source.kind, "classes": exact.classes, "event": exact.event,
        "calibration": {"path": str(samples.path), "samples": len(samples.x)},
        "test": {"path": str(judged.path), "samples": len(judged.x), "labelled": judged.y is not None,
                 "is_calibration": job.test is None},
        "bytes": {"source": source.file_bytes, "tflite": about["file_bytes"], **(about["board"] or {})},
        "parameters": about["parameters"], "multiply_accumulates": about["multiply_accumulates"],
        "not_for_a_board": about["problems"], "feeds_the_policy": about["policy"][0],
    }  # fmt: skip
    if np.ndim(source.factor):
        made["input"] = {"factor": np.ravel(source.factor).tolist(), "offset": np.ravel(source.offset).tolist()}
    return made


def _compared(exact: _Float, rounded: np.ndarray) -> dict[str, Any]:
    """What the int8 model does differently; rounded: (n,) its scores of the event."""
    made: dict[str, Any] = {"worst_score_difference": float(np.abs(exact.score - rounded).max())}
    if exact.judged.y is not None:
        made["float"], made["int8"] = judge.errors(exact.score, exact.label), judge.errors(rounded, exact.label)
        made["reliability"] = {
            "float": judge.reliability(exact.score, exact.label),
            "int8": judge.reliability(rounded, exact.label),
        }
    made["policy"] = judge.decisions(exact.score, rounded, exact.label)
    return made


def _event_labels(samples: calibration.Samples, classes: int, event: int) -> np.ndarray:
    """(n,) in {0, 1}: with two classes the label itself, with more whether it is the event."""
    assert samples.y is not None
    known = max(classes, 2)
    if samples.y.min() < 0 or samples.y.max() >= known:
        raise UserError(f"{samples.path}: labels {samples.y.min()}..{samples.y.max()}; the model has {known} classes")
    return (samples.y == (1 if classes == 1 else event)).astype(int)
