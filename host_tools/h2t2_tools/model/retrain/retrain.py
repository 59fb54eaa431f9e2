"""The whole way: the recipe with its own data and the kept samples, both models judged, the new pair written where it is
better."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ...common import pairs, plots
from ...common.errors import Failure, UserError
from ...common.finite import check_finite
from ...common.functions import load_user_function
from ...common.pairs import Pair
from ...fleet.rdl import models
from ..pair import make
from ..pair.job import Job, Payload, Samples
from ..pair.sides import Side, converted
from . import judge
from .kept import Kept, load

LEAST = 60  # kept samples that judge
RECIPE = "train.py"
FIGURE = "retrain.png"


def retrain(
    pair: Pair,
    recipe: Path,
    samples: Path,
    out: Path,
    device: str | None,
    held: float,
    progress: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Write the new pair to `out`; the report. held: the share of the kept samples, the latest, that judge.

    UserError for a recipe or samples that cannot be used; Failure, and nothing written, where the new model is worse.
    """
    if out.exists():
        raise UserError(f"{out}: is there already; name a new folder with --out")
    progress("reading the samples")
    kept = load(pair, samples, device)
    first = int(len(kept) * (1 - held))
    taught, judging = kept.part(slice(first)), kept.part(slice(first, None))
    if len(judging) < LEAST or not len(taught):
        raise UserError(f"{samples}: {len(kept)} samples, {len(judging)} of them to judge by; want {LEAST} or more")
    progress("running the recipe")
    x, y = _own(recipe, pair)
    weight = np.concatenate([np.ones(len(y)), taught.weight])
    x, y = np.concatenate([x, taught.x]), np.concatenate([y, taught.y])
    with TemporaryDirectory(dir=_parent(out)) as name:
        folder = Path(name) / out.name
        folder.mkdir()
        model = _saved(_called(recipe, "local_model", x, y, weight / weight.mean()), Path(name), recipe)
        progress("writing the pair")
        report = _written(pair, model, recipe, x, folder)
        progress("judging both")
        new = pairs.load(str(folder))
        before, after = judge.judge(pair, judging), judge.judge(new, judging)
        told = {
            "pair": str(pair.folder),
            "out": str(out),
            "training": len(y) - len(taught),
            "kept": len(kept),
            "taught": len(taught),
            "judging": len(judging),
            "skipped": kept.skipped,
            "old": before.told(),
            "new": after.told(),
        }
        worse = [name for name in ("cost", "brier") if getattr(after, name) > getattr(before, name)]
        if worse:  # a policy can do with a model that is wrong in an orderly way; whoever reads its scores cannot
            rows = [f"{name} {getattr(after, name):.4f}, the old one's {getattr(before, name):.4f}" for name in worse]
            raise Failure(f"the new model is worse on {len(judging)} samples held out: {'; '.join(rows)}. Nothing is written")
        _drawn(pair, new, judging, folder / FIGURE)
        (folder / "README.md").write_text((folder / "README.md").read_text() + _said(told))
        told["files"] = [*report["files"], FIGURE]
        folder.rename(out)
    return told


def _parent(out: Path) -> Path:
    parent = out.resolve().parent
    parent.mkdir(parents=True, exist_ok=True)
    return parent


def _called(recipe: Path, name: str, *given: Any) -> Any:
    """What a function of the recipe returns. UserError, saying what it raised."""
    if not recipe.is_file():
        raise UserError(f"{recipe}: no such file; a recipe has training_data() and local_model(x, y, weight)")
    call = load_user_function(f"{recipe}:{name}")
    try:
        return call(*given)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # a user's own program
        raise UserError(f"{recipe}: {name}: {type(error).__name__}: {error}") from None


def _own(recipe: Path, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """The recipe's own training data, checked."""
    made = _called(recipe, "training_data")
    if not isinstance(made, tuple) or len(made) != 2:
        raise UserError(f"{recipe}: training_data() gave {type(made).__name__}; want (x, y)")
    x, y = np.asarray(made[0], np.float32), np.asarray(made[1]).astype(int)
    if x.shape[1:] != pair.x.shape[1:] or len(x) != len(y) or not len(y):
        raise UserError(f"{recipe}: training_data() gave x {x.shape}, y {y.shape}; want samples of shape {pair.x.shape[1:]}")
    if y.min() < 0 or y.max() >= pair.info.classes:
        raise UserError(f"{recipe}: training_data() has labels {y.min()} to {y.max()}; want 0 to {pair.info.classes - 1}")
    check_finite(x, recipe)
    return x, y


def _saved(model: Any, folder: Path, recipe: Path) -> Path:
    """A trained model in a file that h2t2 pair takes."""
    if isinstance(model, (str, Path)):
        return Path(model)
    if hasattr(model, "predict_proba"):
        import joblib

        path = folder / "local.joblib"
        joblib.dump(model, path)
    elif hasattr(model, "save"):
        path = folder / "local.keras"
        model.save(path)
    else:
        raise UserError(f"{recipe}: local_model() gave {type(model).__name__}; want a Keras or scikit-learn model, or its path")
    return path


def _written(pair: Pair, model: Path, recipe: Path, fit: np.ndarray, folder: Path) -> dict[str, Any]:
    """The pair with that local model in the folder; the report of h2t2 pair."""
    about, remote = pair.info, pair.info.remote
    if not models.is_url(remote.model):
        shutil.copyfile(pair.rdl.with_name(pair.rdl.name.partition(":")[0]), folder / remote.model.partition(":")[0])
    shutil.copyfile(recipe, folder / RECIPE)
    encode = str(pair.folder / remote.encode) if remote.encode else ""
    card = json.loads((pair.folder / "pair.json").read_text()).get("card", {})
    job = Job(
        model, remote.model, pair.folder / "test.npz", folder, None, about.columns, None, about.costs, about.beta, about.event,
        None, about.model_id, about.window, about.picture, Payload(remote.dtype, remote.media, encode, remote.limit), card,
    )  # fmt: skip
    event = None if about.costs else 1
    samples = Samples(pair.x, pair.y, fit, event, about.classes, pair.raw)
    ldl = converted("ldl", model, job, samples)
    rdl = Side(
        "as it was", remote.model, tuple(remote.shape), remote.scale, remote.zero_point,
        None if about.costs else about.event_output("rdl"), models.answers(pair), None, about.prepared.get("rdl"),
        remote.floats,
    )  # fmt: skip
    report = make.described(job, samples, ldl, rdl)
    make.write(job, samples, ldl, rdl, report)
    return report


def _drawn(old: Pair, new: Pair, judging: Kept, path: Path) -> None:
    lines = {"old": judge.reliability(old, judging), "new": judge.reliability(new, judging)}
    labels = ("local score", "how often the remote model agrees")
    plots.curves(path, lines, ("score", "right"), labels, f"{new.info.name}: {len(judging):,} kept samples held out")


def _said(told: dict[str, Any]) -> str:
    lines = [
        "", "## Trained again", "",
        f"By `h2t2 retrain`, on {told['training']:,} training samples and {told['taught']:,} kept ones. On {told['judging']:,} "
        "kept ones held out:",
        "", "| local model | accuracy | Brier score | cost a sample |", "|---|---|---|---|",
    ]  # fmt: skip
    for name in ("old", "new"):
        row = told[name]
        lines.append(f"| {name} | {row['accuracy']:.1%} | {row['brier']:.4f} | {row['cost']:.4f} ± {row['sd']:.4f} |")
    return "\n".join([*lines, "", f"![reliability of both]({FIGURE})", ""])
