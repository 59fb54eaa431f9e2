"""Makes the multiclass traces digits_3, digits_4 and digits_10: logistic regressions on a quarter of the pixels, unregularised.

Run from anywhere, with scikit-learn:  python models/digits_classes/train.py
"""

from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from h2t2_lab import datasets
from h2t2_tools.replay import traces

CHOSEN = {3: (3, 5, 8), 4: (1, 3, 5, 8), 10: tuple(range(10))}


def main() -> None:
    data = datasets.load("digits")
    x, xt = (v[:, ::2, ::2].reshape(len(v), -1) / 16 for v in (data.x_train, data.x_test))
    for classes, digits in CHOSEN.items():
        keep, test = np.isin(data.y_train, digits), np.isin(data.y_test, digits)
        y, yt = np.searchsorted(digits, data.y_train[keep]), np.searchsorted(digits, data.y_test[test])
        model = LogisticRegression(C=1e4, max_iter=5000).fit(x[keep], y)
        scores = model.predict_proba(xt[test])
        out = Path(__file__).parents[1] / f"digits_{classes}"
        out.mkdir(exist_ok=True)
        traces.save(out / "trace.npz", traces.Trace(f"digits, {classes} classes", scores, yt))
        print(f"{classes} classes: {len(yt)} samples, accuracy {(scores.argmax(1) == yt).mean():.1%}")


if __name__ == "__main__":
    main()
