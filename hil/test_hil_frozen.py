"""A Pico with the runtime in its firmware: `h2t2 flash --frozen`, decisions, vectors and heap."""

import json

import pytest
from board_features import needs
from interpreters import replayed
from portable.replay import RUNS
from rig import ROOT
from test_hil_ldl import expected

from h2t2_lab import material
from h2t2_lab.bench import memory
from h2t2_lab.boards import drive
from h2t2_tools.boards import flash
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.model import bundle

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
SHORT = [0, 3, 16]  # runs of the vectors: what needs() boards with the same core replay in full
AT_MOST = 30 << 10  # bytes of heap at rest; the goal is in proof/bench/memory.py
STALE = "import os\nos.mkdir('h2t2')\nwith open('h2t2/__init__.py', 'w') as file:\n file.write('raise ValueError')"


@needs("frozen")
def test_a_project_alone_makes_a_node(board, make_material, rdl, figures):
    """flash --frozen copies three files and removes an old runtime; decisions equal the host's; the heap is as predicted."""
    material = make_material(60, snapshot="", log_file="")
    with Pico(material.folder / "flash.bin", board=board.emulator) as pico, RawRepl(pico.port, pace=False) as repl:
        repl.run(STALE)
    outcome = board.run(material)
    assert outcome.lines() == material.replay(), outcome.log
    with Pico(material.folder / "flash.bin", board=board.emulator) as pico:
        contents = board.contents_serial(material)
        report = flash.flash(KINDS["pico"], pico.port, contents, False, lambda *_: None, start=False)
        with RawRepl(pico.port, pace=False) as repl:
            assert {"h2t2", "main.py"}.isdisjoint(repl.files())
            free, free_after = (int(n) for n in repl.run(memory.STARTED, 120).split())
    assert sorted(row["path"] for row in report["files"]) == ["config.json", "ldl.h2m", "samples.bin"] and not report["copied"]
    expected = report["heap_bytes"] - report["heap_parts"]["work"]
    figures.update(heap_before=free, heap_after=free_after, said=expected)
    assert free - free_after <= AT_MOST
    assert abs(free - free_after - expected) <= 0.1 * expected, (free, free_after, report["heap_parts"])


@needs("frozen")
def test_vectors(board, figures):
    """The frozen core replays some runs of the vector file with the host's integers."""
    expected = [json.loads(line) for line in (ROOT / "tests/vectors/core.jsonl").read_text().splitlines()]
    results = replayed(board.emulator, SHORT)
    figures.update(runs=len(SHORT), rounds=sum(RUNS[n][1] for n in SHORT))
    assert results == [expected[n] for n in SHORT]


@needs("frozen")
def test_convolutions_run_in_machine_code(board, figures):
    """A frozen module comes from a newer compiler than the firmware's own."""
    blob = bundle.from_tflite(ROOT / "models/digits/ldl.tflite")
    script = "MODELS = [('cnn.h2m', ['whole'], 2)]\n" + (material.ON_DEVICE / "ldl_outputs.py").read_text()
    outputs, in_bytecode = drive.run(board.emulator, script, {"cnn.h2m": blob}, 600).splitlines()
    name, kind, crc, heap = outputs.split()
    figures.update(heap=int(heap))
    assert (name, kind, int(crc)) == ("cnn.h2m", "whole", expected(blob, 2))
    assert in_bytecode == "bytecode"
