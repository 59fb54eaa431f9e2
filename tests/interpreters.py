"""Skips tests whose interpreter is missing, compiles the runtime for one, and replays the vectors there."""

import ast

from portable.replay import RUNS
from support import ROOT

from h2t2_lab.boards import drive
from h2t2_lab.emulators import built

# the Xtensa build has neither `os`, which snapshots need in files only, nor the name `float`, which checked_integer() asks for
WITHOUT_FILES = "import sys\nsys.modules['os'] = sys.modules['errno'] = sys\nfrom h2t2.core import policy\npolicy.float = str\n"


def in_machine_code(emulator, folder):
    """Write the runtime, compiled for an emulator's processor, into a folder of this one; return the folder."""
    return drive.write_runtime(folder / "runtime", drive.PROCESSORS[emulator.name])


def replayed(emulator, numbers, files=None):
    """Return what the compiled runtime, with further files, makes of runs of the vectors, by their numbers.

    Each policy has a start of its own, because a small heap has room for the modules of one. The run with most features is
    first, while the heap is in one piece: its largest array has 4 KB.
    """
    source = (ROOT / "tests/portable/replay.py").read_text().partition("if __name__")[0]
    if isinstance(emulator, built.Xtensa):
        source = WITHOUT_FILES + source
    results = {}
    for kind in dict.fromkeys(RUNS[n][0] for n in numbers):
        chosen = sorted((n for n in numbers if RUNS[n][0] == kind), key=lambda n: -RUNS[n][3].get("features", 0))
        output = drive.run(emulator, f"{source}for n in {chosen}:\n    print(replay(*RUNS[n]))\n", files or {}, 3000)
        results.update(zip(chosen, map(ast.literal_eval, output.splitlines())))
    return [results[n] for n in numbers]
