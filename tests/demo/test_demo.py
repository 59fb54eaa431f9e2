"""`h2t2 demo`, end to end."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import H2T2, h2t2, ran
from support import children, hears_ctrl_c, until

from h2t2_tools.common import pairs
from h2t2_tools.demo import demo, head_stream
from h2t2_tools.fleet import broker


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, model, policy",
    [
        pytest.param("amqtt", "breast_cancer", "h2t2", marks=pytest.mark.whole),
        pytest.param("mosquitto", "digits", "h2t2", marks=pytest.mark.whole),
        pytest.param("mosquitto", "digits", "adaptive", marks=pytest.mark.whole),
        pytest.param("mosquitto", "ten_digits", "adaptive", marks=pytest.mark.whole),
    ],
)
def test_demo_end_to_end(kind, model, policy, tmp_path):
    if kind == "mosquitto" and broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    report = tmp_path / "report.json"
    options = ("--pair", model, "--policy", policy, "--broker", kind, "--samples", 2000)
    run = ran([*H2T2, "demo", *options, "--out", tmp_path, "--json", report])
    result = json.loads(report.read_text())
    assert result["samples"] == 2000 and result["decided_once"]
    assert model == "ten_digits" or f"\nEvent: {pairs.load(model).info.event_name}. A missed " in run.stdout
    assert result["offloads"] == result["answered"] > 0
    assert result["fallbacks"] == result["replies_unlike_the_rdl"] == 0
    cost = {name: row["cost"] for name, row in result["policies"].items()}
    mine = cost[result["policy"]]
    assert model == "ten_digits" or list(cost)[1].endswith(", replayed")  # beside its own line
    best = "best single threshold (offline)" if model == "ten_digits" else "best thresholds (offline)"
    assert cost[best] < mine < min(cost["no offload"], cost["full offload"])
    if policy == "adaptive" and model != "ten_digits":
        head = {name: row["cost"] for name, row in result["head"]["policies"].items()}
        assert result["head"]["features"] == 16 and head["adaptive with a head"] < 0.8 * head["adaptive without a head"]
        assert "The head changes the cost by -" in run.stdout
    else:
        assert result["head"] is None
    with (tmp_path / "decisions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["n"]) for row in rows] == list(range(2000))
    assert np.mean([float(row["cost"]) for row in rows]) == pytest.approx(mine)
    assert sum(row["source"] == "remote" for row in rows) == result["offloads"]
    picture = "cells.png" if model == "ten_digits" else "weights.png" if policy == "h2t2" else "intervals.png"
    for name in ("running_cost.png", picture):
        assert f"/{name}: the " in run.stdout
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "own, always, hindsight, sentence",
    [
        (0.12, 0.2, 0.1, "adaptive pays here: a sample costs 0.1200, 40% less than with asking always and 20% less than with"),
        (0.16, 0.2, 0.1, "Asking never is cheaper here: a sample costs 0.1500, with adaptive 0.1600; the best thresholds in"),
        (0.16, 0.2, 0.15, "Asking never is cheaper here: a sample costs 0.1500, with adaptive 0.1600; no thresholds would"),
        (0.16, 0.1, 0.05, "Asking always is cheaper here: a sample costs 0.1000, with adaptive 0.1600; the best thresholds in"),
    ],
)
def test_the_verdict_comes_first_and_then_the_event(own, always, hindsight, sentence):
    costs = {"adaptive": own, "no offload": 0.15, "full offload": always, "best pair (offline)": hindsight}
    policies = {name: {"cost": cost, "fp": 0, "fn": 0, "offload": 0, "true_error": 0} for name, cost in costs.items()}
    report = {"pair": "mine", "policy": "adaptive", "event": "fog", "classes": 2, "samples": 9, "policies": policies}
    report |= {
        "head": None,
        "pictures": [],
        "numbers": {"beta": 0.2, "delta_fp": 0.7, "delta_fn": 1},
        "seconds": 1,
        "out": "here",
        "decided_once": True,
    }
    first, second, *_ = demo.tables({**report, "offloads": 1, "answered": 1, "fallbacks": 0})
    assert first.startswith(sentence) and second == "Event: fog. A missed fog costs 1, a false alarm 0.7."


def test_a_pair_of_ones_own_shows_no_other_pair(tmp_path):
    shutil.copytree(pairs.load("breast_cancer").folder, tmp_path / "mine")
    mine = pairs.load(str(tmp_path / "mine"))
    assert not mine.info.features and head_stream.play(mine, {"beta": 0.2}, 10) is None


@pytest.mark.whole
def test_the_corollary_sets_the_papers_parameters(tmp_path):
    options = ("--policy", "h2t2", "--corollary", 10000, "--beta", 0.5, "--samples", 50, "--out", tmp_path)
    ran([*H2T2, "demo", *options, "--json", tmp_path / "report.json"])
    numbers = json.loads((tmp_path / "report.json").read_text())["numbers"]
    assert (numbers["feedback"], numbers["exploration"]) == ("explored", "epsilon")
    assert numbers["epsilon"] == pytest.approx(0.09941, abs=1e-5)  # (ln 136 / (2 * .25 * 10^4))^(1/3)
    assert numbers["eta"] == pytest.approx(0.009883, abs=1e-6)


@pytest.mark.whole
def test_the_same_seed_gives_the_same_decisions(tmp_path):
    runs = []
    for name in ("a", "b"):
        assert h2t2("demo", "--samples", 150, "--seed", 5, "--out", tmp_path / name).returncode == 0
        with (tmp_path / name / "decisions.csv").open() as file:
            runs.append([(row["decision"], row["source"]) for row in csv.DictReader(file)])
    assert runs[0] == runs[1]


def workers(demo):
    """The worker and the node that a demo started, by their numbers; its broker is another program."""
    return [pid for pid in children(demo.pid) if b"h2t2_tools" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.whole
def test_ctrl_c_ends_cleanly_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "h2t2_tools", "demo", "--samples", "200000", "--out", str(tmp_path)]
    demo = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_ctrl_c,
    )
    assert until(lambda: len(workers(demo)) == 2)
    started = workers(demo)
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=280)
    assert demo.returncode == 130
    assert "Traceback" not in errors and "interrupted" in errors
    assert not [pid for pid in started if os.path.exists(f"/proc/{pid}")]


def test_it_needs_no_more_than_its_extra():
    """Nothing of the extra `lab` is imported by what `make demo` runs on a fresh machine."""
    script = "import sys, h2t2_tools.demo.demo; print([m for m in ('numba', 'sklearn', 'joblib') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
