"""What every training recipe in models/ shares: arguments, int8 conversion, evaluation, a model's files, its card.

TensorFlow is imported by the recipes (extra `train`), never by the runtime or the demo.
"""

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
from .pair.build import build_pair
from .pair.samples import load_samples


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
        description: event, model_id, beta, costs (of many classes), and further lines of the README.
        models: "ldl" and "rdl".
        columns: "ldl" and "rdl" -> the features of x that the model reads, None: all.
        train: Samples that set the quantisation ranges, (n, ...).
        test: Samples (n, ...) and labels (n,).
    """
    card = dict(description)
    costs = card.pop("costs", None)
    with TemporaryDirectory() as temporary:
        files = {name: Path(temporary) / f"{name}.keras" for name in models}
        for name, model in models.items():
            model.save(files[name])
        np.savez(Path(temporary) / "train.npz", x=train)
        np.savez(Path(temporary) / "test.npz", x=test[0], y=test[1])
        samples = load_samples(
            Path(temporary) / "test.npz", Path(temporary) / "train.npz", classes=len(costs) if costs else None
        )
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


def arguments(description: str, folder: Path, epochs: int | None) -> argparse.Namespace:
    """A recipe's command line: data (a folder, or None), out (a folder), epochs (a recipe with None has no such option)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, help="folder of the data set as published (looked for when not given)")
    parser.add_argument("--out", type=Path, default=folder, help="where the files go (%(default)s)")
    if epochs is not None:
        parser.add_argument("--epochs", type=int, default=epochs, help="(%(default)s)")
    return parser.parse_args()


def scored(model: Path, x: np.ndarray, event: int) -> np.ndarray:
    """The int8 model's scores of class 1, in [0, 1], for float inputs x (n, ...)."""
    ldl = open_local(model, event)
    return np.array([ldl.score(ldl.run(ldl.quantise(row))) for row in x], np.float32)


def write_ldl(
    out: Path,
    description: dict[str, Any],
    keras_model: Any,
    calibration: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    event: int,
    ship: bool,
) -> Path:
    """Quantise an LDL and write ldl.tflite, trace.npz (scores and labels of the test part) and README.md.

    Args:
        out: Their folder.
        description: title, event, data, licence, ldl, perhaps paper (accuracy, FP, FN of its row).
        keras_model: The trained model.
        calibration: Samples that set the quantisation ranges, float32 (n, ...).
        test: Samples (n, ...) and labels (n,).
        event: The output that is class 1.
        ship: The data's licence allows the model in the repository; otherwise .gitignore excludes it.

    Returns:
        The path of ldl.tflite.
    """
    exact = np.asarray(keras_model.predict(test[0], verbose=0, batch_size=64))[:, event]
    content = to_int8(keras_model, calibration)
    path = _write_files(out, description, content, keras_model.count_params(), exact, test, event)
    if not ship:
        (out / ".gitignore").write_text("ldl.tflite\n")
    return path


def write_linear(out: Path, description: dict[str, Any], train: Any, test: tuple[np.ndarray, np.ndarray]) -> Path:
    """Fit scikit-learn's LogisticRegression and write the files of write_ldl(), without TensorFlow.

    Args:
        out: Their folder.
        description: As for write_ldl().
        train: Samples that the model is fitted to and quantised by, float32 (n, inputs), and their labels (n,).
        test: Samples (n, inputs) and labels (n,).

    Returns:
        The path of ldl.tflite.
    """
    from sklearn.linear_model import LogisticRegression

    from .convert.from_scikit import from_object

    model = LogisticRegression(max_iter=2000).fit(*train)
    exact = model.predict_proba(test[0])[:, 1]
    return _write_files(out, description, from_object(model).quantise(train[0]), train[0].shape[1] + 1, exact, test, 0)


def _write_files(
    out: Path,
    description: dict[str, Any],
    content: bytes,
    parameters: int,
    exact: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    event: int,
) -> Path:
    """Write ldl.tflite, trace.npz and README.md; exact: the float model's scores of the test part."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "ldl.tflite"
    path.write_bytes(content)
    x, y = test
    scores = scored(path, x, event)
    traces.save(out / "trace.npz", traces.Trace(description["title"], scores, y.astype(np.int64)))
    rows = {"float": confusion(exact, y), "int8": confusion(scores, y)}
    model = f"{description['ldl']}; {parameters} parameters, {path.stat().st_size} bytes as int8 .tflite"
    (out / "README.md").write_text(_ldl_card(out.name, {**description, "ldl": model}, len(y), rows))
    return path


def _ldl_card(name: str, description: dict[str, Any], samples: int, rows: dict[str, Any]) -> str:
    lines = [
        f"# {name}: {description['title']}",
        "",
        f"- Event (class 1): {description['event']}",
        f"- Data: {description['data']}",
        f"- Licence: {description['licence']}",
        f"- LDL: {description['ldl']}",
        f"- Test part: {samples} samples; `trace.npz` holds the int8 model's scores of them and the labels",
        "",
        "| | accuracy | FP | FN |",
        "|---|---|---|---|",
    ]
    paper = [("the paper's", description["paper"])] if description.get("paper") else []
    for kind, row in [*rows.items(), *paper]:
        lines.append(f"| {kind} | {row['accuracy']:.1%} | {row['fp']:.1%} | {row['fn']:.1%} |")
    return "\n".join([*lines, "", "FP and FN are shares of all test samples, decision at score 0.5.", ""])
