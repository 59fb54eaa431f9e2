"""`h2t2 retrain`: runs a recipe on its own data and samples of the field, and writes a new pair where its model is better."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...common import pairs, places, plots, trust
from ...common.errors import Failure, UserError
from ...common.fields import LONGEST_NAME
from ...common.finite import check_finite
from ...common.labels import class_numbers
from ...common.pairs import Pair, PairInfo
from ...common.places import temporary_folder
from ...common.tables import WHOLE, Selection
from ...common.user_function import load_user_function, needed_files, reporting
from ...fleet.rdl import models
from ..convert import calibration
from ..exact import open_local
from ..pair.build import event_index, new_folder, of_inputs, pair_name
from ..pair.features import Features, pair_features
from ..pair.int8_model import Int8Input, PairModel, int8_model
from ..pair.labelled_samples import PairSamples
from ..pair.served_model import files_beside
from ..pair.write import write_pair
from . import field_samples
from .evaluate import Evaluation, evaluate, reliability
from .field_samples import FieldSamples

FEWEST_HELD_OUT = 60  # samples that compare the models
RECIPE = "train.py"
FIGURE = "retrain.png"
DATA = ("training", "kept", "taught", "judging", "skipped")


def retrain(
    pair: Pair,
    recipe: Path,
    samples: Path,
    out: Path,
    *,
    device: str | None,
    held_out: float,
    selection: Selection = WHOLE,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """Train a pair's local model again.

    Args:
        pair: The old pair.
        recipe: A Python file with training_data() -> (x, y), or a path, and local_model(x, y, weight) -> a model.
        samples: Folder of the samples that `h2t2 rdl --keep` wrote.
        out: Folder of the new pair.
        device: Use the samples of this device only.
        held_out: Share of the samples, the latest, that compares the models; 0 to 1.
        selection: What the user says of the columns of such a file, and of samples that lack a number or their label.
        progress: Receives the name of each step.

    Returns:
        The report that `h2t2 retrain --json` writes.

    Raises:
        UserError: The recipe or the samples cannot be used.
        Failure: The new model is worse; `out` is not written.
    """
    if out.exists():
        raise UserError(f"{out}: is there already; name a new folder with --out")
    progress("reading the samples")
    field = field_samples.load(pair, samples, device)
    training, judging = _split(field, held_out, samples)
    progress("running the recipe")
    x, y = _training_data(recipe, pair, selection)
    own = len(y)
    weight = np.concatenate([np.ones(own), training.weight])
    x, y = np.concatenate([x, training.x]), np.concatenate([y, training.y])
    with new_folder(out) as folder, temporary_folder("retrain") as temporary:
        model = _save(_call(recipe, "local_model", x, y, weight / weight.mean()), Path(temporary), recipe)
        progress("writing the pair")
        files = _write(pair, model, recipe, x, folder, out)
        progress("judging both")
        new = pairs.load(str(folder))
        old_figures, new_figures = evaluate(pair, judging), evaluate(new, judging)
        _require_better(old_figures, new_figures, len(judging))
        report = {
            "pair": str(pair.folder),
            "out": str(out),
            **dict(zip(DATA, (own, len(field), len(training), len(judging), field.skipped))),
            "old": old_figures.rounded(),
            "new": new_figures.rounded(),
            "files": [*files, FIGURE],
        }
        _plot(pair, new, judging, folder / FIGURE)
        with (folder / "README.md").open("a") as page:
            page.write(_section(report))
    return report


def _split(field: FieldSamples, held_out: float, folder: Path) -> tuple[FieldSamples, FieldSamples]:
    """The samples that train the model, and those that evaluate it. UserError, naming their folder, where they are too few."""
    training, judging = field.split(int(len(field) * (1 - held_out)))
    if len(judging) < FEWEST_HELD_OUT or not len(training):
        raise UserError(f"{folder}: {len(field)} samples, {len(judging)} of them to judge by; want {FEWEST_HELD_OUT} or more")
    return training, judging


def _require_better(old: Evaluation, new: Evaluation, samples: int) -> None:
    """Failure for a model that costs more, or whose scores are worse, which harms every other reader of the scores."""
    figures = {name: (getattr(old, name), getattr(new, name)) for name in ("cost", "brier")}
    worse = [f"{name} {after:.4f}, the old one's {before:.4f}" for name, (before, after) in figures.items() if after > before]
    if worse:
        raise Failure(f"the new model is worse on {samples} samples held out: {'; '.join(worse)}. Nothing is written")


def recipe_of(pair: Pair) -> Path:
    """The recipe in a pair's folder. UserError: the user does not trust it."""
    recipe = pair.folder / RECIPE
    if recipe.is_file() and pair.folder.parent != places.models():
        content = [path.read_bytes() for path in {recipe, *needed_files(recipe)}]
        trust.demand(str(recipe), ["it runs with all your rights"], content)
    return recipe


def _call(recipe: Path, name: str, *arguments: Any) -> Any:
    """What a function of the recipe returns. UserError with what it raised."""
    if not recipe.is_file():
        raise UserError(f"{recipe}: no such file; a recipe has training_data() and local_model(x, y, weight)")
    return reporting(f"{recipe}: {name}", load_user_function(f"{recipe}:{name}"))(*arguments)


def _training_data(recipe: Path, pair: Pair, selection: Selection) -> tuple[np.ndarray, np.ndarray]:
    """The recipe's own (x, y), checked. selection: how to read a file whose path it gives."""
    data = _call(recipe, "training_data")
    if isinstance(data, (str, Path)):
        read = calibration.load(Path(data), pair.x.shape[1:], None, selection=selection)
        data = read.x, read.y if read.names is None or read.y is None else np.array(read.names)[read.y]
    if not isinstance(data, tuple) or len(data) != 2:
        raise UserError(f"{recipe}: training_data() gave {type(data).__name__}; want (x, y), or the path of a file of both")
    x, y = np.asarray(data[0], np.float32), _labels(recipe, np.asarray(data[1]), pair.info)
    if x.shape[1:] != pair.x.shape[1:] or len(x) != len(y) or not len(y):
        raise UserError(f"{recipe}: training_data() gave x {x.shape}, y {y.shape}; want samples of shape {pair.x.shape[1:]}")
    if y.min() < 0 or y.max() >= pair.info.classes:
        raise UserError(f"{recipe}: training_data() has labels {y.min()} to {y.max()}; want 0 to {pair.info.classes - 1}")
    check_finite(x, recipe)
    return x, y


def _labels(recipe: Path, y: np.ndarray, info: PairInfo) -> np.ndarray:
    """Labels, (n,) class numbers or names, or one-hot rows, as the pair's class numbers. UserError for other ones."""
    if y.ndim not in (1, 2):
        raise UserError(f"{recipe}: training_data() gave labels of shape {y.shape}; want (n,)")
    numbers, names = class_numbers(recipe, y, info.classes)
    if names is None:
        return numbers
    known = info.class_names or []
    others = 0 if known and known[0] == f"not {known[-1]}"[:LONGEST_NAME] else -1
    places = [known.index(name) if name in known else others for name in names]
    if -1 in places:
        pairs_own = ", ".join(known) or "numbers from 0"
        raise UserError(f"{recipe}: training_data() has the labels {', '.join(names)}; the pair's are {pairs_own}")
    return np.asarray(np.array(places)[numbers])


def _save(model: Any, folder: Path, recipe: Path) -> Path:
    """The file of a trained model."""
    if isinstance(model, (str, Path)):
        return Path(model)
    if hasattr(model, "predict_proba"):
        import joblib

        path = folder / "local.joblib"
        joblib.dump(model, path)
        trust.remember([path.read_bytes()])
    elif hasattr(model, "save"):
        path = folder / "local.keras"
        model.save(path)
    else:
        raise UserError(f"{recipe}: local_model() gave {type(model).__name__}; want a Keras or scikit-learn model, or its path")
    return path


def _numbers_read(pair: Pair) -> list[int] | None:
    """The numbers of a sample that the local model reads, each once: as int8, some may have several inputs. None: all."""
    columns = pair.info.columns["ldl"]
    numbers = None if columns is None else list(dict.fromkeys(columns))
    return None if numbers == list(range(pair.x[0].size)) else numbers


def _write(pair: Pair, model: Path, recipe: Path, fit: np.ndarray, folder: Path, out: Path) -> list[str]:
    """Write the pair with another local model; its files."""
    info, remote = pair.info, pair.info.remote
    shutil.copyfile(recipe, folder / RECIPE)
    for name in (remote.model, remote.encode):
        if name and not models.is_url(name):
            pairs.copied(pair.folder, name, folder, Path(name.partition(":")[0]).stem)
    event = None if info.costs else 1
    source = info.window or info.picture
    samples = PairSamples(pair.folder / "test.npz", pair.x, pair.y, fit, event, info.classes, raw=pair.raw, source=source)
    numbers = _numbers_read(pair)
    read = samples.columns(numbers, "--ldl-columns")
    local = int8_model(model, folder / "ldl.tflite", read, open_local)
    features = Features(info.features, info.features_from) if info.features else None
    unchanged = PairModel(
        kind="as it was",
        file=remote.model,
        input=Int8Input(tuple(remote.shape), remote.scale, remote.zero_point, info.prepared.get("rdl")),
        event=None if info.costs else info.event_output("rdl"),
        scores=models.answers(pair),
        float_scores=None,
        floats=remote.floats,
        beside=files_beside(folder, remote.model),
    )
    changes = {
        "name": pair_name(folder),
        "event_index": event_index(local, unchanged),
        **of_inputs({"ldl": local, "rdl": unchanged}, {"ldl": numbers, "rdl": info.columns["rdl"]}),
        "features": pair_features(folder / "ldl.tflite", local, read, features, str(model)),
    }
    card = json.loads((pair.folder / "pair.json").read_text()).get("card", {})
    report = write_pair(folder, out, info.model_copy(update=changes), samples, local, unchanged, card)
    return list(report["files"])


def _plot(old: Pair, new: Pair, judging: FieldSamples, path: Path) -> None:
    lines = {"old": reliability(old, judging), "new": reliability(new, judging)}
    labels = ("local score", "how often the remote model agrees")
    plots.curves(path, lines, ("score", "share"), labels, f"{new.info.name}: {len(judging):,} kept samples held out")


def _section(report: dict[str, Any]) -> str:
    """What the README says of the training."""
    lines = [
        "", "## Trained again", "",
        f"By `h2t2 retrain`, on {report['training']:,} training samples and {report['taught']:,} kept ones. On "
        f"{report['judging']:,} kept ones held out:",
        "", "| local model | accuracy | Brier score | cost a sample |", "|---|---|---|---|",
    ]  # fmt: skip
    for name in ("old", "new"):
        row = report[name]
        lines.append(f"| {name} | {row['accuracy']:.1%} | {row['brier']:.4f} | {row['cost']:.4f} ± {row['sd']:.4f} |")
    return "\n".join([*lines, "", f"![reliability of both]({FIGURE})", ""])
