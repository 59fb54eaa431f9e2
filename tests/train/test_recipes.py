"""The training recipes on a small made-up folder, where the extra `train` (TensorFlow) is installed."""

import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from images import RNG, pictures

from h2t2_tools.common import pairs
from h2t2_tools.replay import traces

ROOT = Path(__file__).parents[2]  # support has it too, and needs libraries that this environment has not
pytest.importorskip("keras", reason="the extra train is not installed: pip install -e .[train]")

pytestmark = pytest.mark.timeout(1200)  # a minute and a half alone, and whatever a busy machine makes of it


@pytest.fixture
def train(monkeypatch):
    """Run a recipe as a program, in this process: TensorFlow takes as long to start as a small recipe takes."""

    def trained(recipe, *options):
        monkeypatch.setattr(sys, "argv", [str(recipe), *map(str, options)])
        runpy.run_path(str(recipe), run_name="__main__")

    return trained


@pytest.fixture
def trace_of(train):
    """Run one of our recipes on a folder of data: the trace that it makes."""

    def traced(recipe, out, data):
        train(ROOT / f"models/{recipe}/train.py", "--out", out / recipe, "--data", data, "--epochs", "1")
        made = traces.load(out / recipe / "trace.npz")
        assert len(made.label) > 3 and "accuracy" in (out / recipe / "README.md").read_text()

    return traced


def x_rays(folder):
    parts = {f"{part}_images": RNG.integers(0, 256, (12, 28, 28), np.uint8) for part in ("train", "val", "test")}
    parts |= {f"{part}_labels": np.array([[0], [1]] * 6, np.uint8) for part in ("train", "val", "test")}
    np.savez(folder / "pneumoniamnist.npz", **parts)


def test_breakhis_and_chest_from_folders_of_images(tmp_path, trace_of, monkeypatch):
    slides = tmp_path / "data/BreaKHis_v1/histology_slides/breast"
    pictures(slides, ["benign/SOB/a/40X", "malignant/SOB/b/40X"], 10)
    pictures(tmp_path / "ct/Data", ["normal", "squamous"], 10)
    x_rays(tmp_path / "data")  # some, in place of the thousands that are scored where none are named
    trace_of("breakhis", tmp_path / "models", tmp_path / "data")
    monkeypatch.setenv("H2T2_DATA", str(tmp_path / "data"))
    trace_of("chest", tmp_path / "models", tmp_path / "ct")
    assert len(traces.load(tmp_path / "models/breach/trace.npz").label) == 20
    assert len(traces.load(tmp_path / "models/x_ract/trace.npz").label) == 36


def test_the_others(tmp_path, trace_of):
    rows = [",".join(map(str, [*RNG.integers(-1, 2, 30), 1 - 2 * (n % 2)])) for n in range(80)]
    (tmp_path / "phishing.arff").write_text("\n".join(rows))
    x_rays(tmp_path)
    images = {f"{part}_images": RNG.integers(0, 256, (12, 32, 32, 3), np.uint8) for part in ("train", "test")}
    labels = {f"{part}_labels": np.arange(12, dtype=np.uint8) % 2 for part in ("train", "test")}
    np.savez(tmp_path / "cifar_cats_dogs.npz", **images, **labels)
    days = [",".join(map(str, [n, *RNG.normal(size=8).round(3), n % 2])) for n in range(40)]
    (tmp_path / "rainfall_data.csv").write_text("\n".join(["head", *days]))
    room = [",".join(map(str, [f"2015-02-04 {n}", *RNG.normal(size=2).round(3), 400 * (n % 2), 700 + n])) for n in range(40)]
    (tmp_path / "occupancy.csv").write_text("\n".join(["head", *room]))
    for recipe in ("weather", "phishing", "chest_xray", "logistic_dogs", "resnet_dogs"):
        trace_of(recipe, tmp_path / "models", tmp_path)


@pytest.mark.parametrize("name, classes", [("digits", 2), ("ten_digits", 10)])
def test_a_shipped_pair_made_again_is_a_pair(tmp_path, train, name, classes):
    train(shutil.copy(ROOT / f"models/{name}/train.py", tmp_path))  # it writes beside itself
    pair = pairs.load(str(tmp_path))
    assert len(pair.remote_payload(pair.x[0])) == 64 and pair.info.classes == classes
