"""What the training recipes of pairs share, which `h2t2 retrain` runs again. They import TensorFlow (extra `train`)."""

from os.path import relpath
from pathlib import Path
from typing import Any

import numpy as np

from ..common.places import temporary_folder
from .pair.build import build_pair
from .pair.labelled_samples import load_samples


def write_pair(
    folder: Path,
    description: dict[str, Any],
    models: dict[str, Any],
    columns: dict[str, list[int] | None],
    train: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
) -> None:
    """Write a pair of two Keras models, as `h2t2 pair` does.

    Args:
        folder: The folder; files of the same names are replaced.
        description: event, classes (the names of two, the event last), model_id, beta, costs (of many classes), and further
            lines of the README.
        models: "ldl" and "rdl".
        columns: "ldl" and "rdl" -> the features of x that the model reads, None: all.
        train: Samples that set the quantisation ranges, (n, ...).
        test: Samples (n, ...) and labels (n,).
    """
    card = dict(description)
    costs, names = card.pop("costs", None), card.pop("classes", None)
    with temporary_folder("recipe") as temporary:
        files = {name: Path(temporary) / f"{name}.keras" for name in models}
        for name, model in models.items():
            model.save(files[name])
        np.savez(Path(temporary) / "train.npz", x=train)
        labels = np.array(names)[test[1]] if names else test[1]
        np.savez(Path(temporary) / "test.npz", x=test[0], y=labels)
        samples = load_samples(
            Path(temporary) / "test.npz", Path(temporary) / "train.npz",
            event=names[1] if names else None, classes=len(costs) if costs else None,
        )  # fmt: skip
        build_pair(
            files["ldl"],
            str(files["rdl"]),
            samples,
            Path(relpath(folder)),
            columns=columns,
            costs=costs,
            beta=card.pop("beta"),
            title=card.pop("event"),
            model_id=card.pop("model_id"),
            card=card,
            force=True,
        )
