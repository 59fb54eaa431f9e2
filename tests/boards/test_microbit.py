"""The core, and a classifier with its policy, on the emulated micro:bit: actions equal to the host's."""

import pytest
from interpreters import need
from support import ROOT, paper

from h2t2.core.experts import CAP, ROOM
from h2t2.core.h2t2 import OFFLOAD
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.emulators.catalogue import MICROBIT
from h2t2_tools.boards.emulators.microbit import Microbit
from h2t2_tools.common import pairs
from h2t2_tools.model import bundle
from h2t2_tools.proof.validate import samples


@pytest.mark.whole
@pytest.mark.parametrize(
    "options, unit", [({}, 0), ({"feedback": "all", "exploration": "anytime"}, 0), ({"half_life": 20}, 0), ({}, 2)]
)
def test_the_core_on_the_emulated_microbit(options, unit):
    """A 16 KB Cortex-M0 running MicroPython 1.9.2, every step with the heap locked: each action equal to the host's.

    unit: that many times coarser losses, and the next doubling due in the first round: the deepest calls there are.
    """
    need(MICROBIT)
    made = paper(window=1, **options)
    for _ in range(unit):
        made.experts.rebuild(True, False)
        made.experts.losses[1] = CAP + 1
        made.experts.losses[3] = -CAP
        made.experts.spent = ROOM + 1
    bins, labels = (column.tolist() for column in samples(4, 60, 2))
    actions = []
    with Microbit() as board:
        board.prepare()
        names = board.load(ROOT / "firmware/h2t2", made)
        decide, learn, ticket = (names[name] for name in ("decide", "learn", "ticket"))
        for k, label in zip(bins, labels):
            actions.append(int(board.run(f"L();a=p.{decide}({k});U();print(a)")))
            if actions[-1] == OFFLOAD:
                assert board.run(f"L();t=p.{learn}(p.{ticket},{label},-1);U();print(t)") == "True\n"
    here = []
    for k, label in zip(bins, labels):
        here.append(made.decide(k))
        if here[-1] == OFFLOAD:
            made.learn(made.ticket, label)
    assert actions == here and len(set(here)) > 1
    assert made.experts.unit == unit + (unit > 0)


@pytest.mark.slow
def test_a_classifier_and_its_policy_on_the_emulated_microbit():
    """The breast-cancer LDL and the core in 16 KB: bins of real samples, actions and what is learned as on the host."""
    need(MICROBIT)
    pair = pairs.load("breast_cancer")
    host = Int8Model(bundle.from_tflite(pair.ldl))
    pi = TFLiteModel(str(pair.ldl))
    made = paper(window=1, beta=6554)
    inputs = [pi.quantise(pair.model_input(x, "ldl")).ravel().tolist() for x in pair.x[:25]]
    seen = []
    with Microbit() as board:
        board.prepare()
        names = board.load(ROOT / "firmware/h2t2", made, host)
        decide, learn, ticket, ldl = (names[name] for name in ("decide", "learn", "ticket", "ldl"))
        for x, label in zip(inputs, pair.y.tolist()):
            k = int(board.run(f"k={ldl}({tuple(x)});print(k)"))
            seen.append((k, int(board.run(f"L();a=p.{decide}(k);U();print(a)"))))
            if seen[-1][1] == OFFLOAD:
                board.run(f"L();p.{learn}(p.{ticket},{label},-1);U()")
    here = []
    for x, label in zip(inputs, pair.y.tolist()):
        k = host.bin(host.run(x))
        here.append((k, made.decide(k)))
        if here[-1][1] == OFFLOAD:
            made.learn(made.ticket, label)
    assert seen == here and len({k for k, _ in here}) > 4 and len({a for _, a in here}) > 1
