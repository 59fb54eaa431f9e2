"""What every training recipe in models/ shares: arguments, int8 conversion, evaluation, a model's files, its card.

TensorFlow is imported by the recipes (extra `train`), never by the runtime or the demo.
"""

from __future__ import annotations

import argparse
from os.path import relpath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..lab import traces
from ..lab.scoring import confusion
from .convert.from_keras import to_int8
from .exact import open_local
from .pair.job import Job
from .pair.make import make


def write_pair(
    folder: Path,
    about: dict[str, Any],
    models: dict[str, Any],
    columns: dict[str, list[int] | None],
    train: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
) -> None:
    """The folder that `h2t2 pair` makes of the Keras models {"ldl", "rdl"}, in place of a command with so many options.

    about: event, model_id, beta, costs (of many classes), and what the card says beside them. columns[name]: the features of x
    that a model reads.
    """
    given = dict(about)
    with TemporaryDirectory() as name:
        files = {side: Path(name) / f"{side}.keras" for side in models}
        for side, model in models.items():
            model.save(files[side])
        np.savez(Path(name) / "train.npz", x=train)
        np.savez(Path(name) / "test.npz", x=test[0], y=test[1])
        job = Job(
            files["ldl"], str(files["rdl"]), Path(name) / "test.npz", Path(relpath(folder)), Path(name) / "train.npz", columns,
            costs=given.pop("costs", None), beta=given.pop("beta"), title=given.pop("event"), model_id=given.pop("model_id"),
            card=given,
        )  # fmt: skip
        make(job)


def arguments(about: str, folder: Path, epochs: int) -> argparse.Namespace:
    """A recipe's command line: data (a folder, or None), out (a folder), epochs."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--data", type=Path, help="folder of the data set as published (looked for when not given)")
    parser.add_argument("--out", type=Path, default=folder, help="where the files go (%(default)s)")
    parser.add_argument("--epochs", type=int, default=epochs, help="(%(default)s)")
    return parser.parse_args()


def scored(model: Path, x: np.ndarray, event: int) -> np.ndarray:
    """The int8 model's scores of class 1, in [0, 1], for float inputs x (n, ...)."""
    ldl = open_local(model, event)
    return np.array([ldl.score(ldl.run(ldl.quantise(row))) for row in x], np.float32)


def write_ldl(
    out: Path,
    about: dict[str, Any],
    keras_model: Any,
    calibration: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    event: int,
    ship: bool,
) -> Path:
    """Quantise an LDL and write what it leaves: trace.npz (scores and labels of the test part), README.md, ldl.tflite.

    about: title, event, data, licence, ldl, paper (accuracy, FP, FN of its row, or None). ship: whether the licence of the
    data lets the model be committed; else ldl.tflite is there to use and .gitignore keeps it out. Returns its path.
    """
    out.mkdir(parents=True, exist_ok=True)
    path = out / "ldl.tflite"
    path.write_bytes(to_int8(keras_model, calibration))
    x, y = test
    scores = scored(path, x, event)
    traces.save(out / "trace.npz", traces.Trace(about["title"], scores, y.astype(np.int64)))
    if not ship:
        (out / ".gitignore").write_text("ldl.tflite\n")
    exact = np.asarray(keras_model.predict(x, verbose=0, batch_size=64))[:, event]
    rows = {"float": confusion(exact, y), "int8": confusion(scores, y)}
    (out / "README.md").write_text(_ldl_card(out.name, about, keras_model.count_params(), path.stat().st_size, len(y), rows))
    return path


def _ldl_card(name: str, about: dict[str, Any], parameters: int, size: int, count: int, rows: dict[str, Any]) -> str:
    lines = [
        f"# {name}: {about['title']}",
        "",
        f"- Event (class 1): {about['event']}",
        f"- Data: {about['data']}",
        f"- Licence: {about['licence']}",
        f"- LDL: {about['ldl']}; {parameters} parameters, {size} bytes as int8 .tflite",
        f"- Test part: {count} samples; `trace.npz` holds the int8 model's scores of them and the labels",
        "",
        "| | accuracy | FP | FN |",
        "|---|---|---|---|",
    ]
    paper = [("the paper's", about["paper"])] if about["paper"] else []
    for kind, row in [*rows.items(), *paper]:
        lines.append(f"| {kind} | {row['accuracy']:.1%} | {row['fp']:.1%} | {row['fn']:.1%} |")
    return "\n".join([*lines, "", "FP and FN are shares of all test samples, decision at score 0.5.", ""])
