"""`h2t2 retrain` with a shipped pair's own recipe, which is Keras': what the field sent makes the local model better."""

import json

import numpy as np
import pytest

from h2t2.core.numbers import ONE
from h2t2.link import wire
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.samples.store import Keeper

pytest.importorskip("keras", reason="the extra train is not installed: pip install -e .[train]")


@pytest.mark.timeout(600)
def test_a_shipped_recipe(tmp_path, capsys):
    pair = pairs.load("digits")
    labels, remote = models.labels(models.answers(pair)), pair.about.remote
    keeper, order = Keeper(tmp_path / "kept", 100.0, print), np.random.default_rng(2).permutation(len(pair.x))
    for n, index in enumerate(order):
        request = wire.encode_request(pair.about.model_id, 1, n, remote.shape, pair.sent(index), 0, ONE, 7)
        keeper.keep("kitchen", request, wire.encode_reply(wire.OK, 1, n, int(labels[index]), ONE))
    keeper.close()
    out = tmp_path / "again"
    assert main(["retrain", "digits", "--samples", str(tmp_path / "kept"), "--out", str(out), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kept"] == len(pair.x) and told["training"] > 500
    assert told["new"]["cost"] <= told["old"]["cost"] and told["new"]["brier"] <= told["old"]["brier"]
    assert pairs.load(str(out)).about.model_id == pair.about.model_id and (out / "ldl.h2m").exists()
