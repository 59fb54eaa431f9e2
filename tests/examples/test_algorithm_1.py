"""Algorithm 1, line by line in floats, beside the page of integers."""

import re
import subprocess
import sys

import pytest
from support import ROOT, need, program

from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.boards.microbit import page

PROGRAM = ROOT / "firmware/examples/algorithm_1/algorithm_1.py"
COSTS = {"beta": 6554, "delta_fp": 22938, "delta_fn": 32768, "eta": 1024, "epsilon": 2048}  # eta in Q10, the others in Q15


@pytest.fixture(scope="module")
def literal():
    return program(PROGRAM)


def test_it_decides_as_the_page_does(literal):
    """On the same draws: a sum of the page's integers may round the other way once in a thousand rounds."""
    integers = page.load()
    one_page, dice, stream = (integers.H2T2(**COSTS, seed=seed, feedback="explored") for seed in (1, 1, 5))
    real = {name: value / 32768 for name, value in COSTS.items()}
    floats = literal.Algorithm1(**{**real, "eta": COSTS["eta"] / 1024}, draw=lambda: dice.draw() / 32768)
    differ = asked = 0
    for _ in range(3000):
        label = int(stream.draw() < 13000)
        k = min((stream.draw() + stream.draw() + 14000 * label) // 5000, 15)
        action = one_page.decide(k)
        if action == integers.OFFLOAD:
            one_page.learn(one_page.ticket, label)
        decision, offloaded = floats.round(k, lambda label=label: label)
        differ += offloaded != (action == integers.OFFLOAD) or (not offloaded and decision != action)
        asked += offloaded
    assert differ <= 3 and 300 < asked < 2700


@pytest.mark.parametrize("interpreter", ["cpython", "micropython"])
def test_the_regret_falls(interpreter):
    if interpreter == "micropython":
        need(UNIX)
        lines = UNIX.run(PROGRAM, [], PROGRAM.parent).splitlines()
    else:
        ran = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=True, timeout=280)
        lines = ran.stdout.splitlines()
    regrets = [float(re.search(r"regret (-?[.\d]+)", line)[1]) for line in lines]
    assert len(regrets) == 20 and 0 < 2 * regrets[-1] < regrets[0]
