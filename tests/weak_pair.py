"""A pair whose local model learned from twelve samples, and the recipe for a better one, of scikit-learn and quick to train."""

import joblib
import numpy as np
from scikit_models import logistic

from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs

RULE = np.array([2.0, -1.5, 1.0, 0.5, -1.0, 0.7])
REMOTE = "import numpy as np\ndef scores(x): return 1 / (1 + np.exp(-4 * (x.reshape(len(x), -1) @ np.array({rule}))))\n"
RECIPE = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

def training_data():
    with np.load({path!r}) as data:
        return data["x"], data["y"]

def local_model(x, y, weight):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, {y}, logisticregression__sample_weight=weight)
"""
FIRST_SAMPLES = 12  # training samples of the first model
MODEL = 77


def draw_samples(rng, n):
    """Return samples and the remote model's labels."""
    x = rng.normal(size=(n, 6)).astype(np.float32)
    return x, (x @ RULE > 0).astype(int)


def make(folder, *options):
    """Write the pair in folder/pair with its recipe, few.npz, test.npz, and mine.py, the remote model."""
    rng = np.random.default_rng(3)
    x, y = draw_samples(rng, FIRST_SAMPLES)
    np.savez(folder / "few.npz", x=x, y=y)
    xt, yt = draw_samples(rng, 400)
    np.savez(folder / "test.npz", x=xt, y=yt)
    (folder / "mine.py").write_text(REMOTE.format(rule=RULE.tolist()))
    pair = with_model(folder, "pair", x, y, *options)
    (pair.folder / "train.py").write_text(RECIPE.format(path=str(folder / "few.npz"), y="y"))
    return pair


def with_model(folder, name, x, y, *options):
    """Make a pair beside it whose local model learned from these samples."""
    path = folder / f"{name}.joblib"
    joblib.dump(logistic(x, y), path)
    command = ["pair", str(path), f"{folder}/mine.py:scores", "--test", str(folder / "test.npz"), "--model-id", str(MODEL)]
    assert main([*command, "--out", str(folder / name), *options]) == 0
    return pairs.load(str(folder / name))
