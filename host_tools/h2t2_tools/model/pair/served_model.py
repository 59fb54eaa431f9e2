"""A remote model that keeps its form: .onnx, a function in a Python file, or a URL. It reads floats; offloads send them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from h2t2.link import wire

from ...common.errors import UserError
from ...common.fields import COMPLEMENT
from ...common.pairs import InputScaling, PictureSpec
from ...common.places import temporary_folder, working_in
from ...common.score_rules import are_scores, within
from ...common.user_function import copy_program, is_user_function, load_user_function, needed_files, reporting
from ...fleet.rdl import models
from .int8_model import Int8Input, PairModel, per_number
from .labelled_samples import PairSamples

# files of a pair that are not its models'
RESERVED = ("pair.json", "test.npz", "trace.npz", "prior.json", "ldl.tflite", "ldl.h2m", "samples.bin", "README.md")
WIDEST_RATIO = 8.0  # of two numbers' ranges; above it each number is scaled by itself


@dataclass(frozen=True)
class Payload:
    """What an offload sends of a sample.

    Attributes:
        dtype: One of wire.DTYPES.
        media: Media type of raw bytes.
        encode: FILE.py:FUNCTION that makes raw bytes of a sample.
        limit: Bytes of data, at most.
    """

    dtype: str = wire.DTYPES[0]
    media: str = ""
    encode: str = ""
    limit: int = wire.MAX_DATA

    @property
    def raw(self) -> bool:
        return self.dtype == "raw"

    def copied(self, folder: Path) -> Payload:
        """The same, with the file of the encoder copied into the folder and named relative to it."""
        if not self.raw:
            return self
        file, _, name = self.encode.rpartition(":")
        return replace(self, encode=f"{_copy(Path(file), folder, 'encode')}:{name}")

    def encoded(self, x: np.ndarray, folder: Path) -> list[bytes]:
        """The raw bytes of samples (n, ...). UserError where the encoder in the folder makes none, or too many."""
        encode = reporting(f"--encode {self.encode}", load_user_function(str(folder / self.encode)))
        payloads = [encode(row) for row in x]
        if not all(isinstance(data, bytes) and 0 < len(data) <= self.limit for data in payloads):
            raise UserError(f"--encode {self.encode}: want bytes, 1 to {self.limit} (--limit) of a sample")
        return payloads


def keeps_form(rdl: str) -> bool:
    """Whether a remote model stays what it is, in place of becoming a .tflite."""
    return rdl.endswith(".onnx") or is_user_function(rdl) or models.is_url(rdl)


def served_model(rdl: str, folder: Path, samples: PairSamples, payload: Payload, output: str = "") -> PairModel:
    """Copy a remote model into the folder and run it on the test samples as offloads will send them.

    int8 spans the range of the samples in `samples.fit`. UserError for a model that does not exist, or gives no scores.

    output: the only output of an .onnx that the copy keeps; "": all.
    """
    file, kind = _place(rdl, folder, output)
    with temporary_folder("served") as elsewhere, working_in(Path(elsewhere)):  # a function's files are copied, or it fails
        try:
            return _evaluated(rdl, file, kind, folder, samples, payload)
        except UserError as error:
            raise UserError(str(error).replace(str(folder / file), rdl)) from None


def _evaluated(rdl: str, file: str, kind: str, folder: Path, samples: PairSamples, payload: Payload) -> PairModel:
    """A remote model in the folder, run on the test samples."""
    path = file if models.is_url(rdl) else str(folder / file)
    shape = models.load(models.Source(path)).shape
    shaped = samples if shape is None else samples.shaped(shape, rdl)
    if payload.dtype in ("int8", "uint8") and (samples.texts or np.isnan(shaped.x).any()):
        raise UserError(f"{rdl}: no int8 holds numbers that are missing or stand for words: --payload float32 sends them")
    int8_input = _ranges(shaped.fit)
    source = models.Source(
        path, samples.event, scale=int8_input.scale, zero_point=int8_input.zero_point, prepared=int8_input.prepared, floats=True
    )
    if payload.raw:
        pictures = samples.raw if isinstance(samples.source, PictureSpec) else None
        sent: models.Batch = payload.encoded(shaped.x if pictures is None else pictures, folder)
    else:
        sent = shaped.x if payload.dtype == "float32" else int8_input.quantise(shaped.x)
    if samples.event == 0 and samples.classes == 2 and not is_user_function(path) and _has_one_output(source, sent[:1]):
        source = replace(source, event=COMPLEMENT)
    model = models.load(source)
    expected = (len(shaped.x),) if samples.event is not None else (len(shaped.x), samples.classes)
    float_scores = None if payload.raw else _scores(model, shaped.x, rdl, expected)
    scores = float_scores if float_scores is not None and payload.dtype == "float32" else _scores(model, sent, rdl, expected)
    beside = files_beside(folder, file)
    return PairModel(kind, file, int8_input, source.event, scores, float_scores, floats=True, beside=beside)


def _has_one_output(source: models.Source, sample: models.Batch) -> bool:
    """Whether a model gives one score of a sample, that of class 1. A server that only says the class does not."""
    try:
        return np.asarray(models.load(replace(source, event=None)).scores(sample)).size == 1
    except (UserError, ValueError, OSError):  # _scores() says what is wrong with it
        return False


def files_beside(folder: Path, model: str) -> tuple[str, ...]:
    """Files in the folder of a pair that its remote model needs: those of a Python function; of another model, none."""
    file = model.partition(":")[0]
    return tuple(sorted(str(path.relative_to(folder)) for path in needed_files(folder / file))) if file.endswith(".py") else ()


def _place(rdl: str, folder: Path, output: str) -> tuple[str, str]:
    """(what the pair calls the model, its kind in words), with its file copied into the folder."""
    if models.is_url(rdl):
        return rdl, "URL"
    if rdl.endswith(".onnx"):
        return _copy_network(Path(rdl), folder, output), "ONNX model"
    file, _, name = rdl.rpartition(":")
    return f"{_copy(Path(file), folder, 'rdl')}:{name}", "Python function"


def _copy_network(path: Path, folder: Path, output: str) -> str:
    """The name of an .onnx in the folder: the same network in one file with its weights, with the named output alone."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        import onnx
    except ImportError:
        raise UserError(f"{path}: needs onnx and onnxruntime; run: pip install h2t2-edge[onnx]") from None
    try:
        network = onnx.load(str(path))
        outputs = {end.name: end for end in network.graph.output}
        if output:
            del network.graph.output[:]
            network.graph.output.append(outputs[output])
        onnx.save(network, str(folder / "rdl.onnx"))
    except KeyError:
        raise UserError(f"{path}: no output {output}; its outputs are {', '.join(outputs)}") from None
    except Exception as error:  # protobuf and onnx raise errors of many types, also for more than 2 GB
        raise UserError(f"{path}: onnx cannot copy it: {str(error).splitlines()[0]}; a server may run it: URL") from None
    return "rdl.onnx"


def _copy(path: Path, folder: Path, stem: str) -> str:
    """The name of a copy of the file in the folder. What a Python file reads is copied along."""
    name = f"{stem}{path.suffix}"
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.suffix == ".py":
        own = [str(file) for file in needed_files(path) if str(file.relative_to(path.parent)) in RESERVED]
        if own:
            raise UserError(f"{path}: reads {own[0]}, whose name is that of a pair's own file: give that file another name")
        copy_program(path, folder, name)
        return name
    return shutil.copyfile(path, folder / name).name


def _scores(model: models.Model, x: models.Batch, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The model's scores of a batch, checked and within [0, 1]."""
    try:
        scores = np.asarray(model.scores(x), float)
    except Exception as error:  # a user's own program, or a runtime with a dozen kinds of its own
        raise UserError(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from None
    if scores.shape != shape or not are_scores(scores.min(), scores.max()):
        expected = "one score" if len(shape) == 1 else f"{shape[1]} scores"
        span = f"{scores.shape}, {scores.min():.3g} to {scores.max():.3g}"
        raise UserError(f"{name}: want {expected} from 0 to 1 a sample, {shape}; it gave {span}")
    return within(scores)


def _ranges(fit: np.ndarray) -> Int8Input:
    """The int8 input that spans these samples. Rows of numbers with unlike ranges are scaled number by number first."""
    low, high = np.nanmin(fit.reshape(len(fit), -1), 0), np.nanmax(fit.reshape(len(fit), -1), 0)
    span = np.maximum(high - low, 1e-6 * max(1.0, float(np.nanmax(np.abs(fit)))))
    prepared: InputScaling | None = None
    lowest, highest = float(low.min()), float(high.max())
    if fit.ndim == 2 and span.max() > WIDEST_RATIO * span.min():
        factor = 2 / span
        prepared = per_number(factor, -(high + low) / 2 * factor, fit.shape[1:])
        lowest, highest = -1.0, 1.0
    scale = max(highest - lowest, 1e-6) / 255
    zero_point = int(np.clip(round(-128 - lowest / scale), -128, 127))
    return Int8Input(tuple(fit.shape[1:]), scale, zero_point, prepared)
