"""A router becomes a project: both models in files, nothing outside it, and `h2t2 run` starts it."""

import json

import numpy as np
import pytest
from support import need

from h2t2_tools import Router
from h2t2_tools.boards import project
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.rdl import models

RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 4)).astype(np.float32)
NAMES = np.array(["ant", "bee", "cat"])


def of_two(event="yes"):
    """A router of two classes whose remote model answers with classes alone, in another order than numbers."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    y = np.where(X @ [1, 1, 0.5, 0] > 0, "yes", "no")
    models = LogisticRegression().fit(X[:40, :2], y[:40]), LinearSVC().fit(X, y)
    return Router(*models, event=event, beta=0.2, local_columns=[0, 1]), y


def of_two_whose_event_is_the_first():
    return of_two("no")


def of_three():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    y = NAMES[(X[:, :3] + [0, 0.1, 0.2]).argmax(1)]
    return Router(LogisticRegression().fit(X[:40], y[:40]), RandomForestClassifier(20).fit(X, y), beta=0.1), y


def opened_names(folder):
    """The names in the configuration that a board of a project gets."""
    return project.load(folder, "pico_w").contents.config.content()["class_names"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [of_two, of_two_whose_event_is_the_first, of_three])
def test_a_router_becomes_a_project_that_can_be_moved(make, tmp_path):
    pytest.importorskip("ai_edge_quantizer")
    router, y = make()
    for x in X:
        router.decide(x)
    files = router.export(tmp_path / "first/porch", board="pico_w")
    assert {"h2t2.toml", "app.py", "pair/"} <= set(files)
    readme = (tmp_path / "first/porch/pair/README.md").read_text()
    assert "- Labels: answers of the remote model: accuracy is agreement with it" in readme
    assert f"h2t2 recommend {tmp_path}/first/porch/pair/trace.npz" in readme and "h2t2-export" not in readme
    (tmp_path / "first").rename(tmp_path / "second")
    folder = tmp_path / "second/porch"
    pair = pairs.load(str(folder / "pair"))
    names = router.classes
    assert pair.info.class_names == names and opened_names(folder) == names
    assert [names[n] for n in pair.y] == router.remote.model.predict(X).tolist()  # the remote model counts as right
    labels = models.labels(models.answers(pair))
    assert np.mean(labels == pair.y) > 0.97  # an offload sends int8
    opened = project.load(folder, "pico_w")
    assert opened.contents.config.device == "porch" and opened.contents.config.beta == router.beta
    with pytest.raises(UserError, match="name a new folder"):
        router.export(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"delta_fp": 0.4, "ordered": True},
        {"bits": 5},
        {"policy": "h2t2", "epsilon": 0.1},
        {"prior": [n / 16 for n in range(16)], "miss_rate": 0.05},
    ],
)
def test_the_configuration_gets_the_options_of_the_policy(options, tmp_path):
    pytest.importorskip("ai_edge_quantizer")
    router, _ = of_two()
    router = Router(router.local.model, router.remote.model, event="yes", beta=0.1, local_columns=[0, 1], **options)
    for x in X:
        router.decide(x)
    router.export(tmp_path / "porch", board="pico_w")
    config = project.load(tmp_path / "porch", "pico_w").contents.config
    assert config.beta == 0.1 and {name: getattr(config, name) for name in options} == options
    assert any(line.startswith("# seed") for line in (tmp_path / "porch/h2t2.toml").read_text().splitlines())


@pytest.mark.whole
def test_h2t2_run_starts_it(tmp_path, capsys, monkeypatch):
    pytest.importorskip("ai_edge_quantizer")
    need(UNIX)
    monkeypatch.chdir(tmp_path)
    router, y = of_two()
    for x in X:
        router.decide(x)
    router.export("porch", samples=(X, y))
    assert main(["run", "porch", "--json", "report.json"]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["summary"]["samples"] == 300 and report["trouble"] == []
    sources = {line["source"] for line in map(json.loads, capsys.readouterr().out.splitlines()[:300]) if "source" in line}
    assert sources >= {"local", "remote"}


def scores_in_a_file(x):
    return (x[:, 0] > 0).astype(float)


def test_what_cannot_go_onto_a_device_is_told(tmp_path):
    router = Router(scores_in_a_file, scores_in_a_file)
    with pytest.raises(ValueError, match="no decision yet"):
        router.export(tmp_path / "a")
    for x in X[:60]:
        router.decide(x)
    with pytest.raises(UserError, match="local model scores_in_a_file: no device runs a Python function"):
        router.export(tmp_path / "a")
    pair = pairs.load("breast_cancer")
    router = Router(pair.ldl, lambda x: (x[:, 0] > 14).astype(float), local_columns=pair.info.columns["ldl"])
    for x in pair.x[:60]:
        router.decide(x)
    with pytest.raises(UserError, match='it lives in this program alone; .*"mine.py:scores"'):
        router.export(tmp_path / "a")
    assert not (tmp_path / "a").exists()
