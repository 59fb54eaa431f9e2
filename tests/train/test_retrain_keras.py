"""`h2t2 retrain` with a shipped pair's own recipe, which is Keras': what the field sent makes the local model better."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2_tools.common import pairs
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.samples.sample_store import Keeper

ROOT = Path(__file__).parents[2]
pytest.importorskip("keras", reason="the extra train is not installed: pip install -e .[train]")


@pytest.mark.timeout(600)
def test_a_shipped_recipe_of_an_installed_wheel(tmp_path):
    """The wheel's own files, outside the repository."""
    pair = pairs.load("digits")
    labels, remote = models.labels(models.answers(pair)), pair.info.remote
    keeper, order = Keeper(tmp_path / "kept", 100.0, print), np.random.default_rng(2).permutation(len(pair.x))
    for n, index in enumerate(order):
        request = wire.encode_request(pair.info.model_id, 1, n, remote.shape, pair.test_payload(index), chance=ONE, k=7)
        keeper.keep(
            "kitchen", worker_wire.decode_request(request), worker_wire.encode_reply(wire.OK, 1, n, int(labels[index]), ONE)
        )
    keeper.close()
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", site, ROOT]
    subprocess.run(list(map(str, pip)), check=True)
    command = [sys.executable, "-m", "h2t2_tools", "retrain", "digits", "--samples", "kept", "--out", "again", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)})
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert told["pair"].startswith(str(site)) and told["kept"] == len(pair.x) and told["training"] > 500
    assert told["new"]["cost"] <= told["old"]["cost"] and told["new"]["brier"] <= told["old"]["brier"]
    out = tmp_path / "again"
    assert pairs.load(str(out)).info.model_id == pair.info.model_id and (out / "ldl.h2m").exists()
