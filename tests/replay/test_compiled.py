"""Compiled policies decide as the policies of the device."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from portable import replay as vectors
from streams import COSTS, made_up
from support import ROOT

from h2t2.core.numbers import Rng
from h2t2_tools.common import policies
from h2t2_tools.common.jit import njit
from h2t2_tools.replay.simulation import player
from h2t2_tools.replay.simulation.numba_policies import freeze
from h2t2_tools.replay.simulation.policies.learners import H2T2, Adaptive
from h2t2_tools.replay.simulation.stream import Stream, draw

LINES = [json.loads(line) for line in (ROOT / "tests/vectors/core.jsonl").read_text().splitlines()]


@njit
def draw_bits(rng):
    return rng.draw()


@njit
def counts_of(policy):
    return policy.lessons, policy.tickets.refused, policy.tickets.lost


def arrivals_of(actions, labels, answers):
    """The schedule of labels in the vector file (tests/portable/replay.py), as the player takes it; sets late labels.

    answers: Whether each question is answered, where some are not; {}: others arrive late or are given up.
    """
    starts, rounds, costs, waiting = [0], [], [], None
    for n, action in enumerate(actions):
        if n in answers:
            rounds.append(n)
            costs.append(player.AS_CHARGED if answers[n] else player.UNANSWERED)
        elif action == "-" and n % 7 == 3:
            waiting = n
        elif action == "-":
            rounds.append(n)
            costs.append(player.LOST if n % 7 == 5 else player.AS_CHARGED)
            if n % 7 != 5 and waiting is not None:
                rounds += [waiting, waiting]
                costs += [16384, 16384]
                labels[waiting] = labels[n]  # the file teaches a late ticket the label of the moment
                waiting = None
        starts.append(len(rounds))
    return tuple(np.array(values, np.int64) for values in (starts, rounds, costs))


# no learner; `h2t2-lab experiment head` plays the heads as the device's own code
UNCOMPILED = ("budget", "adaptive-head", "adaptive-class-head")
QUICK = ("rng", "h2t2", "adaptive")  # numba takes a quarter of a minute for each of the others


@pytest.mark.parametrize(
    "n",
    [
        n if kind.partition(",")[0] in QUICK else pytest.param(n, marks=pytest.mark.whole)
        for n, (kind, *_) in enumerate(vectors.RUNS)
        if kind not in UNCOMPILED
    ],
)
def test_compiled_policies_are_the_devices_own_on_every_vector(n):
    kind, rounds, _, options = vectors.RUNS[n]
    kind, _, lost = kind.partition(", ")
    want = LINES[n]
    if kind == "rng":
        rng = freeze(Rng(options["seed"]))
        assert [draw_bits(rng) for _ in range(rounds)] == want["draws"]
        return
    stream = Rng(7)
    device = vectors.make(kind, rounds, options)
    cells, labels, answers = [], [], {}
    for t in range(rounds):
        first = stream.draw()
        if device.classes > 2:
            cells.append(vectors.scores(stream, 4))
            labels.append(stream.draw() % 4)
        else:
            cells.append(first * device.steps() >> 15)
            labels.append(1 if stream.draw() < first else 0)
        if lost and want["actions"][t] == "-":
            answers[t] = vectors.answered(stream, cells[t], device.classes > 2)
    arrivals = arrivals_of(want["actions"], labels, answers)
    samples = (np.array(cells), np.array(labels), np.full(rounds, device.beta))
    actions = np.zeros(rounds, np.int64)
    policy = freeze(device)
    player.play_compiled(policy, None, False, samples, arrivals, actions)
    assert "".join("-" if action < 0 else "0123"[action] for action in actions) == want["actions"]
    assert list(counts_of(policy)) == want["counts"]


@pytest.mark.parametrize("feedback", ["explored", "all"])
def test_it_stays_the_device_beyond_the_cap(feedback):
    """30,000 rounds at the largest learning rate: the unit of the losses doubles several times."""
    policy = H2T2(3, eta=5.5, epsilon=0.01, feedback=feedback)
    stream = draw(made_up(), 30000, 3, 0.3)
    device = policy.device(stream, COSTS, 9)
    expected = []
    for k, label in zip(stream.bins(3).tolist(), stream.label.tolist()):
        expected.append(device.decide(k))
        if expected[-1] < 0:
            device.learn(device.ticket, label)
            expected[-1] = -1 - device.local
    assert policy.act(stream, COSTS, 9).tolist() == expected and device.experts.unit > 1


@pytest.mark.parametrize("name", ["h2t2", "adaptive"])
def test_late_labels_reach_the_learner_in_their_round_and_lost_ones_count_as_questions(name):
    stream = draw(made_up(), 2000, 3, 0.3)
    delay = np.random.default_rng(1).integers(-9, 40, 2000).clip(-1)
    late = Stream(stream.score, stream.label, stream.beta, delay)
    if name == "h2t2":
        policy = H2T2(4, window=16, feedback="all")
        device = policy.device(late, COSTS, 5)
    else:
        policy = Adaptive(4, window=16)
        device = policies.make("adaptive", policy.numbers(COSTS, 5, prior=None))
    out, expected = {}, []
    for n, k in enumerate(late.bins(4).tolist()):
        expected.append(device.decide(k))
        if expected[-1] < 0:
            out[n] = device.ticket, k
            expected[-1] = -1 - device.local
        for r in range(n + 1):
            if r in out and r + max(0, delay[r]) == n:
                ticket, asked = out[r]
                device.count_question(asked, int(delay[r] >= 0))
                if delay[r] < 0:
                    device.lose(ticket)
                else:
                    device.learn(ticket, int(late.label[r]))
    assert policy.act(late, COSTS, 5).tolist() == expected


@pytest.mark.whole
def test_another_core_is_compiled_anew(tmp_path):
    """What numba kept of a core is not taken for another's; a folder that the user names stays."""

    def folder(**more):
        shutil.rmtree(tmp_path / "h2t2", ignore_errors=True)
        shutil.copytree(ROOT / "firmware/h2t2", tmp_path / "h2t2", ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in more.pop("changed", {}).items():
            (tmp_path / "h2t2/core" / name).write_text(text)
        given = {"PYTHONPATH": f"{tmp_path}:{ROOT / 'host_tools'}", "XDG_CACHE_HOME": str(tmp_path), **more}
        words = [sys.executable, "-c", "import numba, h2t2_tools.common.jit; print(numba.config.CACHE_DIR)"]
        environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
        return subprocess.run(words, env={**environment, **given}, capture_output=True, text=True, check=True).stdout.strip()

    text = (ROOT / "firmware/h2t2/core/forecaster.py").read_text()
    assert folder() == folder() != folder(changed={"forecaster.py": text.replace("SLOPE = 3", "SLOPE = 2")})
    assert folder().startswith(str(tmp_path)) and folder(NUMBA_CACHE_DIR="/mine") == "/mine"
