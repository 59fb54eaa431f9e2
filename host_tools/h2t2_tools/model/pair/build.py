"""`h2t2 pair`: builds a pair of two models, step by step. Each step returns what the next one takes."""

import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from h2t2.cpython.tflite import TFLiteModel

from ...common.errors import UserError
from ...common.fields import EVENT, TITLE
from ...common.pairs import PairInfo, RemoteModel
from ...common.places import temporary_folder
from ...common.policies import DEFAULTS
from ...common.quality_limits import MAX_LOSS
from ...replay.scoring import confusion
from .. import quality
from ..exact import open_local
from .estimator import served_estimator
from .features import Features, pair_features
from .int8_model import PairModel, int8_model
from .labelled_samples import PairSamples
from .served_model import Payload, keeps_form, served_model
from .write import write_pair


def build_pair(
    ldl: Path,
    rdl: str,
    samples: PairSamples,
    out: Path,
    *,
    columns: dict[str, list[int] | None],
    payload: Payload | None = None,
    output: str = "",
    costs: list[list[float]] | None = None,
    beta: float = DEFAULTS["beta"],
    title: str | None = None,
    model_id: int | None = None,
    card: dict[str, str] | None = None,
    force: bool = False,
    max_loss: float = MAX_LOSS,
    features: Features | None = None,
    distil: bool = False,
    missing_value: float | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """Build the folder of a pair, and return the report that `h2t2 pair --json` writes. A run that fails leaves nothing there.

    Args:
        ldl: Local model: .keras, .h5, SavedModel, .joblib, .json or .txt (trees), or .tflite (float or int8).
        rdl: Remote model: one of those, .onnx, FILE.py:FUNCTION, or a URL.
        samples: Labelled samples, of load_samples().
        out, force: The folder, and whether files of the same names in it are replaced.
        columns: "ldl" and "rdl" -> the numbers of a sample that the model reads, None: all.
        payload: What offloads send (int8 tensors).
        costs: Of many classes: costs[i][j], 0 to 1, of deciding j where i is true. None: the samples have an event.
        beta: Cost of an offload, 0 to 1.
        title: The event, or the classes, in words; None: the event's name.
        model_id: Number on the wire, 0 to 65535 (a hash of the folder's name).
        card: Further lines of the README, such as data and licence.
        features: What the local model gives to a head; None: nothing.
        max_loss: Percentage points of accuracy that int8 may lose.
        distil, missing_value, output: As int8_model() takes them for the local model, and served_model() for the remote one.
        progress: Receives the name of each step.

    Raises:
        UserError: The inputs make no pair. The error names the model or file, and a remedy.
        Failure: A model loses more than max_loss as int8.
    """
    with new_folder(out, force) as folder:
        sent = (payload or Payload()).copied(folder)
        read_local = partial(int8_model, distil=distil, missing_value=missing_value)
        read_remote = partial(_remote_model, payload=sent, output=output)
        local, remote = _open_models((ldl, rdl), folder, samples, columns, read_local, read_remote, progress)
        read = samples.columns(columns["ldl"], "--ldl-columns")
        number = pair_features(folder / "ldl.tflite", local, read, features, str(ldl))
        _check_models({str(ldl): local, rdl: remote}, samples, max_loss)
        progress("writing the rest")
        info = PairInfo(
            name=pair_name(folder), model_id=zlib.crc32(pair_name(folder).encode()) & 65535 if model_id is None else model_id,
            event=title or _event_name(samples), event_index=event_index(local, remote), costs=costs, beta=beta,
            features=number, features_from=features.tensor if features else None,
            remote=_remote(remote, sent), **samples.description, **of_inputs({"ldl": local, "rdl": remote}, columns),
        )  # fmt: skip
        return write_pair(folder, out, info, samples, local, remote, {**(card or {}), **samples.texts_in_words})


def _event_name(samples: PairSamples) -> str:
    """What the event is called where nobody has given it a title."""
    if samples.names and samples.event is not None:
        return samples.names[1]
    return f"class {samples.event}" if samples.event not in (None, EVENT) else TITLE


def _open_models(
    models: tuple[Path, str],
    folder: Path,
    samples: PairSamples,
    columns: dict[str, list[int] | None],
    read_local: Callable[..., PairModel],
    read_remote: Callable[..., PairModel],
    progress: Callable[[str], None],
) -> tuple[PairModel, PairModel]:
    """Write the local and the remote model to the folder and run them on the test samples.

    read_local, read_remote: int8_model() for the local model, _remote_model() for the remote one.
    """
    progress("the local model")
    ldl = samples.columns(columns["ldl"], "--ldl-columns")
    local = read_local(models[0], folder / "ldl.tflite", ldl, open_local)
    progress("the remote model")
    return local, read_remote(models[1], folder, samples.columns(columns["rdl"], "--rdl-columns"))


def _check_models(models: dict[str, PairModel], samples: PairSamples, limit: float) -> None:
    """Check each model, by its name.

    Raises:
        UserError: It scores the other class, because it numbers the classes in another order.
        Failure: It loses more accuracy as int8 than the limit.
    """
    other, event = samples.names if samples.names and samples.event is not None else ("0", "1")
    for name, model in models.items():
        if samples.event is not None and quality.is_inverted(model.scores, samples.y):
            remedy = f"it numbers them in another order than {samples.path}; fit it on labels as they stand there"
            raise UserError(f"{name}: its scores are higher for {other} than for {event}, which is the event: {remedy}")
        if model.float_scores is not None:
            before, after = (confusion(scores, samples.y)["accuracy"] for scores in (model.float_scores, model.scores))
            quality.check_loss(name, before, after, limit, model.warnings, model.remedy)


@contextmanager
def new_folder(out: Path, force: bool = False) -> Iterator[Path]:
    """A folder of the same name to write to, whose files move to `out` in the end, unless an error ends it.

    UserError where `out` is not empty; force: replace its files of the same names.
    """
    if out.exists() and not (force or (out.is_dir() and not any(out.iterdir()))):
        raise UserError(f"{out}: is there and not empty; name a new folder with --out, or say --force to write over it")
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".h2t2-pair-", dir=target.parent) as temporary:
        folder = Path(temporary) / target.name
        folder.mkdir()
        yield folder
        target.mkdir(exist_ok=True)
        for path in sorted(folder.rglob("*")):
            place = target / path.relative_to(folder)
            if path.is_dir():
                place.mkdir(exist_ok=True)
            else:
                path.replace(place)


def pair_name(folder: Path) -> str:
    """The pair's name: the folder's, with letters, digits, _ and - alone."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", folder.name) or "pair"


def event_index(ldl: PairModel, rdl: PairModel) -> dict[str, int]:
    """Each model's output that is the event; {} where each output is a class."""
    return {name: model.event for name, model in (("ldl", ldl), ("rdl", rdl)) if model.event is not None}


def of_inputs(models: dict[str, PairModel], columns: dict[str, list[int] | None]) -> dict[str, Any]:
    """The entries of pair.json on the numbers that both models read, and what is done to them first."""
    return {
        "columns": {name: composed(columns[name], model.input.columns) for name, model in models.items()},
        "prepared": {name: model.input.prepared for name, model in models.items()},
    }


def composed(columns: list[int] | None, own: list[int] | None) -> list[int] | None:
    """The numbers of a sample that a model's input has: `own` of those that the model reads; None: all."""
    return columns if own is None else own if columns is None else [columns[n] for n in own]


def _remote_model(rdl: str, folder: Path, samples: PairSamples, payload: Payload, output: str = "") -> PairModel:
    if output and not rdl.endswith(".onnx"):
        raise UserError(f"{rdl}: --output is of an .onnx")
    if keeps_form(rdl):
        return served_model(rdl, folder, samples, payload, output)
    with temporary_folder("pair") as place:
        order = list(range(samples.classes)) if samples.event is None else samples.event
        served = served_estimator(Path(rdl), Path(place), order)
        if served:
            program, kind = served
            try:
                return replace(served_model(program, folder, samples, payload), kind=kind)
            except UserError as error:
                raise UserError(str(error).replace(program, rdl)) from None
    if payload.raw:
        raise UserError(f"{rdl}: takes numbers; --payload raw is for FILE.py:FUNCTION or a URL")

    def open_remote(path: Path, event: int) -> TFLiteModel:
        try:
            return TFLiteModel(str(path), event=event)
        except ValueError as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise UserError(f"{rdl}: no remote model: {reason}; a function may serve it: FILE.py:FUNCTION") from None

    return int8_model(Path(rdl), folder / "rdl.tflite", samples, open_remote)


def _remote(model: PairModel, payload: Payload) -> RemoteModel:
    """What pair.json says of the remote model."""
    read = model.input
    return RemoteModel(
        model=model.file,
        floats=model.floats,
        shape=list(read.shape),
        scale=read.scale,
        zero_point=read.zero_point,
        **vars(payload),
    )
