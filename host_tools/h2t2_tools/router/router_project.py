"""A router as a project: both models in files, a pair made of them, and the folder that `h2t2 run` starts."""

import inspect
import shlex
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..boards import project
from ..common import pairs, trust
from ..common.errors import UserError
from ..common.event import event_names
from ..common.labels import plain_name
from ..common.matrices import equal_costs
from ..common.places import temporary_folder
from ..fleet.config import NodeConfig
from ..model import bundle
from ..model.convert.readers import PICKLES, READERS
from ..model.pair.build import build_pair
from ..model.pair.estimator import write_program
from ..model.pair.labelled_samples import load_samples
from ..model.pair.served_model import keeps_form
from .models import RouterModel


def export(
    router: Any, folder: Path, board: str, *, samples: tuple[np.ndarray, np.ndarray], options: dict[str, Any], answered: bool
) -> list[str]:
    """Write the project of a Router.

    Args:
        folder: New or empty.
        board: Kind of the board that gets a section; "": none.
        samples: Samples (n, ...) and their classes in the local model's order (n,), which calibrate and judge the models.
        options: Of the policy, without beta; the configuration gets those that are not a device's defaults.
        answered: The classes are the remote model's answers.

    Returns:
        The names of the files that were written.

    Raises:
        UserError: A model cannot go into a project, or the samples are too few. The message names a remedy.
        Failure: The local model loses too much as int8.
    """
    x, y = samples
    classes, event, local, remote = router.naming.order, router.naming.event, router.local, router.remote
    number = router.policy.classes if router.policy.classes > 2 else None
    costs = (router.costs or equal_costs(number)) if number else None
    event = None if number else 1 if event is None else event
    outputs = number or len(classes or (0, 1))
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: there is something in it; name a new folder")
    with temporary_folder("export") as temporary:
        place = Path(temporary)
        np.savez(place / "test.npz", x=x, y=np.eye(outputs, dtype=np.uint8)[y])  # one-hot: no class is renumbered
        files = _local_file(local.model, place), _remote_name(remote, place, _order(remote, classes, outputs, event))
        pair = place / "pair" / folder.resolve().name
        known = load_samples(place / "test.npz", scale=1.0, event=event, classes=number)
        columns = {"ldl": local.columns, "rdl": remote.columns}
        card = {"labels": "answers of the remote model: accuracy is agreement with it"} if answered else None
        known = replace(known, names=_names(classes, event))
        report = build_pair(*files, known, pair, columns=columns, costs=costs, beta=router.beta, card=card)
        for warning in report["warnings"]:
            warnings.warn(f"{folder}: {warning}", stacklevel=4)
        opened = pairs.load(str(pair))
        names = project.write(folder, opened, bundle=bundle.for_board(opened, board), board=board, entries=_entries(options))
        shutil.copyfile(pair / "trace.npz", folder / "pair/trace.npz")
        readme = folder / "pair/README.md"  # its commands name the folder of the pair
        readme.write_text(readme.read_text().replace(str(pair), shlex.quote(str(folder / "pair"))))
        return names


def _names(classes: list[Any] | None, event: int | None) -> list[str] | None:
    """The names of the pair's classes: of class 0 and the event, or of all classes."""
    names = [plain_name(str(name)) for name in classes] if classes else None
    return names if event is None else event_names(names, event)


def _entries(options: dict[str, Any]) -> dict[str, Any]:
    """The options that differ from a device's defaults, without the seed. The pair's table has 4 bits and is for adaptive."""
    fields = {name: field for name, field in NodeConfig.model_fields.items() if name not in ("seed", "prior")}
    entries = {name: value for name, value in options.items() if name in fields and value not in (None, fields[name].default)}
    if options.get("prior") is not None:
        return {**entries, "prior": [float(share) for share in options["prior"]]}
    return {**entries, "prior": ""} if {"policy", "bits"} & entries.keys() else entries


def _local_file(model: Any, place: Path) -> Path:
    """Return the file of a local model, which is written if the program holds it."""
    if isinstance(model, (str, Path)):
        if Path(model).suffix.lower() in READERS or Path(model).is_dir():
            return Path(model)
        raise UserError(f"local model {model}: no device runs it; want {', '.join(READERS)}")
    file = _saved(model, place, "local")
    if file is None:
        raise UserError(
            f"local model {_name(model)}: no device runs a Python function; give the Router the model itself, or its file"
        )
    return file


def _order(remote: RouterModel, classes: list[Any] | None, outputs: int, event: int | None) -> int | list[int]:
    """Return the columns of the remote model's scores: of the event, or of all classes in the local model's order."""
    order = list(range(outputs))
    if classes is not None and remote.classes is not None:
        order = [remote.classes.index(name) for name in classes]
    return order if event is None else order[event]


def _remote_name(remote: RouterModel, place: Path, order: int | list[int]) -> str:
    """Return what `h2t2 pair` calls a remote model, which is written to a file if the program holds it."""
    model = remote.model
    if isinstance(model, (str, Path)):
        text = str(model)
        if keeps_form(text) or Path(text).suffix.lower() in (".tflite", ".keras", ".h5"):
            return text
        if Path(text).suffix.lower() not in PICKLES:
            raise UserError(
                f"remote model {text}: `h2t2 pair` takes no such file; want .tflite, .onnx, .keras, FILE.py:FUNCTION or a URL"
            )
        model = remote.opened
    file = _saved(model, place, "remote")
    if file is not None and file.suffix == ".joblib":
        return write_program(place, file.name, order)
    if file is not None:
        return str(file)
    source = inspect.getsourcefile(model) if inspect.isfunction(model) else None
    if source and source.endswith(".py") and model.__qualname__ == model.__name__ and Path(source).is_file():
        return f"{source}:{model.__name__}"
    raise UserError(
        f"remote model {_name(model)}: it lives in this program alone; put a function of a batch into a file and give the "
        'Router "mine.py:scores"'
    )


def _saved(model: Any, place: Path, stem: str) -> Path | None:
    """Return the file that an estimator or a Keras model was saved to; None for anything else."""
    if hasattr(model, "predict") and hasattr(model, "layers"):
        model.save(place / f"{stem}.keras")
        return place / f"{stem}.keras"
    if hasattr(model, "predict_proba") or (hasattr(model, "predict") and hasattr(model, "classes_")):
        import joblib

        joblib.dump(model, place / f"{stem}.joblib")
        trust.remember([(place / f"{stem}.joblib").read_bytes()])
        return place / f"{stem}.joblib"
    return None


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__))
