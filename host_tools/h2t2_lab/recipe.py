"""What the training recipes of traces in models/ share: arguments, int8 conversion, evaluation, a model's files, its card.

The recipes import TensorFlow (extra `train`), nothing else does.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from h2t2_tools.common.event import titled_names
from h2t2_tools.model.convert.from_keras import to_int8
from h2t2_tools.model.exact import open_local
from h2t2_tools.replay import traces
from h2t2_tools.replay.scoring import confusion


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
        description: title, event, data, licence, ldl, perhaps paper (accuracy, false alarms, misses of its row).
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

    from h2t2_tools.model.convert.from_scikit import from_object

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
    names = titled_names(description["event"])
    traces.save(out / "trace.npz", traces.Trace(description["title"], scores, y.astype(np.int64), names=names))
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
        "| | accuracy | false alarms | misses |",
        "|---|---|---|---|",
    ]
    paper = [("the paper's", description["paper"])] if description.get("paper") else []
    for kind, row in [*rows.items(), *paper]:
        lines.append(f"| {kind} | {row['accuracy']:.1%} | {row['fp']:.1%} | {row['fn']:.1%} |")
    return "\n".join([*lines, "", "False alarms and misses are shares of all test samples, decision at score 0.5.", ""])
