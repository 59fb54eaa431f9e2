"""Writes what the folder of a pair holds beside its models: description, samples, trace, bundle, README."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ...common import pairs, prior_file, trust
from ...common.event import titled_names
from ...common.pairs import Pair, PairInfo
from ...common.policies import DEFAULTS
from ...replay import prior, traces
from ...replay.scoring import confusion
from .. import bundle, quality
from ..inspect import inspect
from .int8_model import PairModel
from .labelled_samples import PairSamples
from .readme import markdown

RECORDS = 1000  # samples in samples.bin, at most
# of `remote` in pair.json: always; of raw bytes as well; other entries where they differ from their default
INPUT, RAW = ("model", "floats", "shape", "scale", "zero_point"), ("dtype", "media", "encode")


def write_pair(
    folder: Path,
    place: Path,
    info: PairInfo,
    samples: PairSamples,
    ldl: PairModel,
    rdl: PairModel,
    card: dict[str, str],
) -> dict[str, Any]:
    """Complete a folder that holds both models.

    Args:
        folder: The folder to write to.
        place: Where it will be, for the report and the README.
        info: The pair's description.
        samples: Its test samples.
        ldl: The local model.
        rdl: The remote model.
        card: Further lines of the README, such as data and licence.

    Returns:
        The report: name, folder, figures of both models, files.
    """
    figures = {"ldl": _figures(folder, ldl, samples.y), "rdl": _figures(folder, rdl, samples.y)}
    rates = _rates(samples, rdl.labels)
    problems = inspect(folder / "ldl.tflite")["problems"]
    class_samples = np.bincount(samples.y.astype(int), minlength=info.classes).tolist()
    description = _description(info, card, rates, figures, class_samples)
    (folder / "pair.json").write_text(json.dumps(description, indent=1) + "\n")
    trust.remember(pairs.active_parts(folder, info)[1])
    pair = Pair(folder, info, samples.x, samples.y, samples.raw)
    files = ["pair.json", "ldl.tflite", *rdl.files, *_write_samples(pair, ldl, rdl)]
    if not info.costs:
        table = prior.table(ldl.scores, rdl.labels, DEFAULTS["bits"])
        prior_file.write(folder / "prior.json", str(samples.path), len(rdl.labels), table)
        files.append("prior.json")
    if not problems:
        files += _write_for_boards(pair, ldl)
    report = {
        "name": info.name,
        "folder": str(place),
        "samples": len(samples.y),
        "beta": info.beta,
        **figures,
        "class_names": info.class_names,
        "features": info.features,
        "card": {"event": info.event, **card},
        "agreement": float((ldl.labels == rdl.labels).mean()),
        "rates": rates,
        "not_for_a_board": problems,
        "warnings": _warnings(folder, info, samples, ldl, rdl),
        "files": files,
        "model_id": info.model_id,
    }
    (folder / "README.md").write_text(markdown(report))
    return report


def _warnings(folder: Path, info: PairInfo, samples: PairSamples, ldl: PairModel, rdl: PairModel) -> list[str]:
    """Return what is suspicious about the models and the samples."""
    same_columns = info.columns["ldl"] == info.columns["rdl"]
    files = [(folder / file).read_bytes() for file in (ldl.file, *rdl.files[:1])]
    return [
        *quality.sample_warnings(samples.y, info.classes, info.class_names),
        *dict.fromkeys([*ldl.warnings, *rdl.warnings]),
        *quality.silence_warnings(ldl.scores, samples.y, info.class_names),
        *quality.pair_warnings(ldl.scores, rdl.scores, samples.y, len(files) == 2 and files[0] == files[1] and same_columns),
    ]


def _figures(folder: Path, model: PairModel, y: np.ndarray) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "file": model.file,
        "bytes": sum((folder / file).stat().st_size for file in model.files),
        "float": None if model.float_scores is None else confusion(model.float_scores, y),
        "int8": confusion(model.scores, y),
    }


def _rates(samples: PairSamples, labels: np.ndarray) -> dict[str, Any]:
    """How often the remote model gives each label for each true class."""
    if samples.event is not None:
        return {"rdl_fp": float(labels[samples.y == 0].mean()), "rdl_fn": float(1 - labels[samples.y == 1].mean())}
    counts = np.zeros((samples.classes, samples.classes))
    np.add.at(counts, (samples.y, labels), 1)
    return {"rdl_confusion": (counts / np.maximum(1, counts.sum(1, keepdims=True))).round(4).tolist()}


def _description(
    info: PairInfo, card: dict[str, str], rates: dict[str, Any], figures: dict[str, Any], class_samples: list[int]
) -> dict[str, Any]:
    """pair.json."""
    entries = info.model_dump()
    remote_keys = (*INPUT, *RAW) if info.remote.dtype == "raw" else INPUT
    return {
        "format": pairs.FORMAT,
        **{key: entries[key] for key in ("name", "model_id", "event", "costs" if info.costs else "event_index", "beta")},
        **({"class_names": info.class_names} if info.class_names else {}),
        **({"features": info.features} if info.features else {}),
        **({"ordered": True} if info.ordered else {}),
        **({"features_from": info.features_from} if info.features and info.features_from else {}),
        "card": card,
        "columns": entries["columns"],
        "prepared": {name: own and own.model_dump(exclude_none=True) for name, own in info.prepared.items()},
        "remote": {
            **{key: entries["remote"][key] for key in remote_keys},
            **info.remote.model_dump(exclude=set(INPUT), exclude_defaults=True),
        },
        **{key: entries[key] for key in ("window", "picture")},
        "rates": rates,
        "metrics": {name: {key: figures[name][key] for key in ("bytes", "float", "int8")} for name in ("ldl", "rdl")},
        "class_samples": class_samples,
        "test_samples": sum(class_samples),
    }


def _write_samples(pair: Pair, ldl: PairModel, rdl: PairModel) -> list[str]:
    """The test samples and both models' outputs: names of the files."""
    raw: dict[str, Any] = {} if pair.raw is None else {"raw": pair.raw}
    np.savez_compressed(pair.folder / "test.npz", x=pair.x, y=pair.y.astype(np.uint8), **raw)
    info = pair.info
    names = info.class_names or (titled_names(info.event) if info.classes == 2 else None)
    trace = traces.Trace(info.name, ldl.scores.astype(np.float32), rdl.labels, names=names)
    traces.save(pair.folder / "trace.npz", trace)
    return ["test.npz", "trace.npz"]


def _write_for_boards(pair: Pair, ldl: PairModel) -> list[str]:
    """The bundle and recorded samples: names of the files."""
    folder, info = pair.folder, pair.info
    (folder / "ldl.h2m").write_bytes(bundle.from_tflite(pair.ldl))
    files = ["ldl.h2m"]
    if info.remote.dtype != "raw":  # records are all of one size
        (folder / "samples.bin").write_bytes(pairs.board_samples(pair, ldl.input.scale, ldl.input.zero_point, RECORDS))
        files.append("samples.bin")
    return files
