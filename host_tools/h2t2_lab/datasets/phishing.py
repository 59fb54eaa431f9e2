"""UCI Phishing Websites (Mohammad, Thabtah, McCluskey), ARFF: 30 integer features; the last column is -1 for phishing."""

from pathlib import Path

import numpy as np

from h2t2_tools.common.errors import UserError

from .data import Data, checked, find, split

TEST = 1106  # the paper's count, a tenth of the data


def load(folder: Path | None = None) -> Data:
    """Load 11,055 samples, 1,106 of them for the test; class 1 is phishing."""
    path = find(folder, "phishing*.arff", "Training Dataset.arff", "*.arff")
    rows = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text or text[0] in "%@":
                continue
            try:
                rows.append([int(field.strip().strip("'\"")) for field in text.split(",")])
            except ValueError:
                raise UserError(f"{path}:{number}: {text[:40]!r} is not a row of integers") from None
            if len(rows[-1]) != len(rows[0]):
                raise UserError(f"{path}:{number}: {len(rows[-1])} fields, the first row has {len(rows[0])}")
    if not rows or len(rows[0]) < 2:
        raise UserError(f"{path}: no rows of features and a result")
    table = np.array(rows, np.int16)
    if not set(np.unique(table[:, -1])) <= {-1, 0, 1}:
        raise UserError(f"{path}: the last column must be -1 (phishing) or 1 (legitimate)")
    y = (table[:, -1] < 1).astype(np.uint8)
    parts = split(table[:, :-1].astype(np.float32), y, min(TEST, len(y) // 2))
    return checked(Data("phishing", *parts, ("legitimate", "phishing"), str(path)))
