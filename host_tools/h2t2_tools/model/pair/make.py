"""The folder of a pair: models, description, test samples, trace, table to start from, boards' configurations, report."""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.link import wire

from ...common import pairs, prior_file
from ...common.errors import UserError
from ...common.functions import is_user_function
from ...common.policies import DEFAULTS
from ...fleet import template
from ...fleet.rdl import models
from ...lab import prior, traces
from ...lab.scoring import confusion
from .. import bundle
from ..inspect import inspect
from . import report as page
from .job import Job, Samples, load
from .sides import Side, converted, encoder, kept

BOARDS = ("unix", "esp32", "pico", "pico_w", "microbit")
RECORDS = 1000  # samples in samples.bin, at most


def make_new(job: Job, force: bool, progress: Callable[[str], None] = lambda what: None) -> dict[str, Any]:
    """As make(), in a folder that is there once it is whole: a run that fails leaves nothing.

    UserError where the folder is there and is not empty; force: what it holds under the same names is replaced then.
    """
    if job.out.exists() and not (force or (job.out.is_dir() and not any(job.out.iterdir()))):
        raise UserError(f"{job.out}: is there and not empty; name a new folder with --out, or say --force to write over it")
    parent = job.out.resolve().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".h2t2-pair-", dir=parent) as name:
        made = Path(name) / job.out.resolve().name
        report = make(replace(job, out=made, place=job.out), progress)
        job.out.mkdir(exist_ok=True)
        for path in made.iterdir():
            path.replace(job.out / path.name)
    return report


def make(job: Job, progress: Callable[[str], None] = lambda what: None) -> dict[str, Any]:
    """Write the folder; the report. UserError, saying which model or file and how to mend it, for what cannot be a pair."""
    progress("reading the samples")
    samples = load(job)
    job.out.mkdir(parents=True, exist_ok=True)
    progress("the local model")
    ldl = converted("ldl", job.ldl, job, samples)
    progress("the remote model")
    stays = job.rdl.endswith(".onnx") or is_user_function(job.rdl) or models.is_url(job.rdl)
    rdl = kept(job, samples) if stays else converted("rdl", Path(job.rdl), job, samples)
    progress("writing the rest")
    report = described(job, samples, ldl, rdl)
    write(job, samples, ldl, rdl, report)
    return report


def described(job: Job, samples: Samples, ldl: Side, rdl: Side) -> dict[str, Any]:
    """The report on two models that lie in the folder."""
    says = rdl.says
    made: dict[str, Any] = {"name": _name(job), "folder": str(job.folder), "samples": len(samples.y), "beta": job.beta}
    for name, side in (("ldl", ldl), ("rdl", rdl)):
        size = sum((job.out / file).stat().st_size for file in _file(side))
        row: dict[str, Any] = {"kind": side.kind, "file": side.file, "bytes": size}
        row["float"] = None if side.exact is None else confusion(side.exact, samples.y)
        made[name] = {**row, "int8": confusion(side.score, samples.y)}
    made["card"] = {"event": job.title, **job.card}
    made["agreement"] = float((ldl.says == says).mean())
    if job.costs:
        counts = np.zeros((samples.classes, samples.classes))
        np.add.at(counts, (samples.y, says), 1)
        made["rates"] = {"rdl_confusion": (counts / np.maximum(1, counts.sum(1, keepdims=True))).round(4).tolist()}
    else:
        made["rates"] = {"rdl_fp": float(says[samples.y == 0].mean()), "rdl_fn": float(1 - says[samples.y == 1].mean())}
    about = inspect(job.out / "ldl.tflite")
    made["not_for_a_board"] = about["problems"]
    return made


def _file(side: Side) -> list[str]:
    """The model's file in the folder, where it has one."""
    return [] if models.is_url(side.file) else [side.file.partition(":")[0]]


def _payload(job: Job) -> dict[str, Any]:
    """What offloads send, as pair.json has it; nothing where it is what they send as a rule."""
    made: dict[str, Any] = {}
    if job.payload.dtype != "int8":
        made["dtype"] = job.payload.dtype
    if job.payload.dtype == "raw":
        made.update(media=job.payload.media, encode=encoder(job))
    if job.payload.limit < wire.MAX_DATA:
        made["limit"] = job.payload.limit
    return made


def _name(job: Job) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", job.out.resolve().name)
    return name or "pair"


def write(job: Job, samples: Samples, ldl: Side, rdl: Side, report: dict[str, Any]) -> None:
    """Everything of the folder but the models; the report is told which files."""
    name = report["name"]
    model_id = zlib.crc32(name.encode()) & 65535 if job.model_id is None else job.model_id
    about = {  # fmt: skip
        "name": name,
        "model_id": model_id,
        "event": job.title,
        **({"costs": job.costs} if job.costs else {"event_index": {"ldl": ldl.event, "rdl": rdl.event}}),
        "beta": job.beta,
        "card": job.card,
        "columns": job.columns,
        "prepared": {key: side.prepared.model_dump() if side.prepared else None for key, side in (("ldl", ldl), ("rdl", rdl))},
        "remote": {
            "model": rdl.file,
            "floats": rdl.floats,
            "shape": list(rdl.shape),
            "scale": rdl.scale,
            "zero_point": rdl.zero_point,
            **_payload(job),
        },
        "window": job.window.model_dump() if job.window else None,
        "picture": job.picture.model_dump() if job.picture else None,
        "rates": report["rates"],
        "metrics": {key: {what: report[key][what] for what in ("bytes", "float", "int8")} for key in ("ldl", "rdl")},
        "test_samples": len(samples.y),
    }
    (job.out / "pair.json").write_text(json.dumps(about, indent=1) + "\n")
    raw: dict[str, Any] = {} if samples.raw is None else {"raw": samples.raw}
    np.savez_compressed(job.out / "test.npz", x=samples.x, y=samples.y.astype(np.uint8), **raw)
    traces.save(job.out / "trace.npz", traces.Trace(name, ldl.score.astype(np.float32), rdl.says))
    files = ["pair.json", "ldl.tflite", *_file(rdl), "test.npz", "trace.npz"]
    entries = {"pair": "."}
    if not job.costs:
        table = prior.table(ldl.score, rdl.says, DEFAULTS["bits"])
        prior_file.write(job.out / "prior.json", str(job.test), len(rdl.says), table)
        files.append("prior.json")
        entries["prior"] = "prior.json"
    if not report["not_for_a_board"]:
        (job.out / "ldl.h2m").write_bytes(bundle.from_tflite(job.out / "ldl.tflite"))
        pair = pairs.load(str(job.out))
        files.append("ldl.h2m")
        if job.payload.dtype != "raw":  # records are all of one size
            (job.out / "samples.bin").write_bytes(pairs.board_samples(pair, ldl.scale, ldl.zero_point, RECORDS))
            files.append("samples.bin")
        # the micro:bit has no room for more classes than two, and sends its recorded int8
        for board in BOARDS if not job.costs and job.payload.dtype == "int8" else BOARDS[:-1]:
            (job.out / f"{board}.toml").write_text(template.render(board, pair.info, entries))
            files.append(f"{board}.toml")
    report["files"] = files
    report["model_id"] = model_id
    (job.out / "README.md").write_text(page.markdown(report))
