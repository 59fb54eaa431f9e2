"""The conversion itself and its report: files in a folder, what they take, how the int8 model differs from the float one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.ldl_tflite import TFLiteModel

from .. import plots
from ..errors import UserError
from ..int8.inspect import inspect
from . import calibration, judge
from .source import Source, open_source


def convert(
    model: Path,
    data: Path,
    test: Path | None,
    out: Path,
    event: int | None,
    scale: float | None,
    progress: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Write <model>_int8.tflite, <model>.h2m (where a board can run it) and report.md, .json, .png to `out`; the report.

    data: calibration samples; test: samples to judge by (default: the calibration samples, if labelled); event: index of
    class 1 among the outputs (default: the last).
    """
    from ..int8 import bundle, prepare, tflite_file

    progress("reading the model")
    source = open_source(model)
    samples = calibration.load(data, source.shape, scale)
    judged = calibration.load(test, source.shape, scale) if test else samples
    progress("running the float model")
    exact = source.scores(judged.x)
    _check_scores(source, exact)
    classes = exact.shape[1]
    picked = classes - 1 if event is None else event
    if not 0 <= picked < classes:
        raise UserError(f"--event {picked}: the model has outputs 0..{classes - 1}")
    score = np.clip(exact[:, picked], 0, 1)
    label = (score >= 0.5).astype(int) if judged.y is None else _event_labels(judged, classes, picked)
    progress("quantising")
    content = source.quantise(source.prepared(samples.x))
    out.mkdir(parents=True, exist_ok=True)
    name = model.stem if model.is_file() else model.name
    tflite = out / f"{name}_int8.tflite"
    tflite.write_bytes(content)
    about = inspect(tflite)
    if about["inputs"][0]["dtype"] != "int8" or about["outputs"][0]["dtype"] != "int8":
        raise UserError(f"{model}: the converter left its ends as float ({tflite} kept): some operator cannot be quantised")
    files = {"tflite": str(tflite)}
    if about["board"]:
        h2m = out / f"{name}.h2m"
        h2m.write_bytes(bundle.write(prepare.plan(tflite_file.load(tflite))))
        files["bundle"] = str(h2m)
    progress("running the int8 model")
    ldl = TFLiteModel(str(tflite), event=picked)
    rounded = np.array([ldl.scores(ldl.quantise(row))[picked] for row in source.prepared(judged.x)])
    report: dict[str, Any] = {
        "model": str(model), "kind": source.kind, "classes": classes, "event": picked, "files": files,
        "calibration": {"path": str(samples.path), "samples": len(samples.x)},
        "test": {"path": str(judged.path), "samples": len(judged.x), "labelled": judged.y is not None,
                 "is_calibration": test is None},
        "bytes": {"source": source.file_bytes, "tflite": len(content), **(about["board"] or {})},
        "parameters": about["parameters"], "multiply_accumulates": about["multiply_accumulates"],
        "not_for_a_board": about["problems"], "feeds_the_policy": about["policy"][0],
    }  # fmt: skip
    if np.ndim(source.factor):
        report["input"] = {"factor": np.ravel(source.factor).tolist(), "offset": np.ravel(source.offset).tolist()}
    report["worst_score_difference"] = float(np.abs(score - rounded).max())
    if judged.y is not None:
        report["float"], report["int8"] = judge.errors(score, label), judge.errors(rounded, label)
        report["reliability"] = {"float": judge.reliability(score, label), "int8": judge.reliability(rounded, label)}
    progress("comparing the policy's decisions")
    report["policy"] = judge.decisions(score, rounded, label)
    figure = out / "report.png"
    plots.conversion(figure, score, rounded, report.get("reliability"), name)
    report["files"] |= {"picture": str(figure), "report": str(out / "report.md")}
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "report.md").write_text(markdown(report))
    return report


def _check_scores(source: Source, exact: np.ndarray) -> None:
    low, high = float(exact.min()), float(exact.max())
    if not np.isfinite(exact).all():
        raise UserError(f"{source.path}: the float model itself gives NaN or infinity on this data")
    if low < -0.01 or high > 1.01:
        raise UserError(
            f"{source.path}: its outputs span {low:.3g} to {high:.3g}; the policy needs scores from 0 to 1: "
            "end the model with a softmax or a sigmoid"
        )


def _event_labels(samples: calibration.Samples, classes: int, event: int) -> np.ndarray:
    """(n,) in {0, 1}: with two classes the label itself, with more whether it is the event."""
    assert samples.y is not None
    known = max(classes, 2)
    if samples.y.min() < 0 or samples.y.max() >= known:
        raise UserError(f"{samples.path}: labels {samples.y.min()}..{samples.y.max()}; the model has {known} classes")
    return (samples.y == (1 if classes == 1 else event)).astype(int)


def markdown(report: dict[str, Any]) -> str:
    """The report as people read it."""
    size, policy, test = report["bytes"], report["policy"], report["test"]
    lines = [
        f"# {report['model']}: int8",
        "",
        f"{report['kind']}, {report['classes']} output(s), event: output {report['event']}.",
        "",
    ]
    lines += ["| | bytes |", "|---|---|", f"| source | {size['source']:,} |", f"| int8 .tflite | {size['tflite']:,} |"]
    if "bundle_bytes" in size:
        lines += [f"| bundle (flash of a board) | {size['bundle_bytes']:,} |", f"| arena (its RAM) | {size['arena_bytes']:,} |"]
    lines += ["", f"{report['parameters']:,} parameters, {report['multiply_accumulates']:,} multiply-accumulates.", ""]
    if "input" in report:
        lines += ["The source's scaler stays outside: the int8 model takes x * factor + offset (`input` in report.json).", ""]
    lines += [f"No bundle for a board: {problem}." for problem in report["not_for_a_board"]]
    what = f"{test['samples']} samples of {test['path']}" + (" (the calibration data itself)" if test["is_calibration"] else "")
    if "float" in report:
        lines += [f"On {what}:", "", "| | accuracy | FP | FN | ECE |", "|---|---|---|---|---|"]
        for kind in ("float", "int8"):
            m = report[kind]
            lines.append(f"| {kind} | {m['accuracy']:.2%} | {m['fp']:.2%} | {m['fn']:.2%} | {m['ece']:.4f} |")
        lines += ["", "FP and FN are shares of all samples, decision at score 0.5; ECE over ten bins.", ""]
    else:
        lines += [f"On {what}, which has no labels: accuracy and calibration are not known.", ""]
    lines += [
        f"Scores differ by {report['worst_score_difference']:.4f} at most; {policy['bins_differ']} of {policy['samples']} "
        "samples fall into another policy bin (b = 4).",
        f"H2T2 (all + anytime, β = .3) on the same draws: {policy['decisions_differ']} of {policy['rounds']} decisions differ "
        f"(offloads {policy['offloads'][0]:.1%} float, {policy['offloads'][1]:.1%} int8).",
        "",
        "![float against int8](report.png)",
        "",
    ]
    return "\n".join(lines)
