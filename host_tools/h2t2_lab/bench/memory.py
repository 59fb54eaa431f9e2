"""`h2t2-lab bench memory`: flash and heap of the runtime with a small LDL on each kind of board, and of each policy.

The heap is measured on emulated 32-bit ARM; that of a node with a frozen runtime on the emulated Pico, at rest.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from h2t2_tools.boards import flash, kinds, node_heap
from h2t2_tools.boards.emulators.catalogue import ARM32
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.common import pairs, places
from h2t2_tools.common.report import Report
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.fleet.update import keys, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions
from h2t2_tools.model import bundle, tflite, tflite_edit

from .. import material
from ..emulators.built import PICO_FROZEN
from . import Goal, Progress, Row, cell, missed, table

TITLE = "Memory on a board"
PAIR = "breast_cancer"
UPDATED = "digits"
UPDATE = "code, compiled from .py", "state of a node that takes updates", "additional while a package arrives"
MOMENT = "free in one piece while the package is verified and put in place"
STEP = 512
LARGEST = 10
MPY, PLAIN, PY, FROZEN = ".mpy", ".mpy, machine_code = false", ".py", "frozen"  # forms of the runtime
PAST = ", with its past"  # ends a form whose policy reads its past, as that of an app does
FEATURES = 16
HEAD = f", with a head of {FEATURES} features"  # ends a form whose policy learns from features, too
# Bytes of heap of runtime and local model at rest, on a Pico. With a head 6 KB less than with machine code written by hand, of
# which node_heap.needed() counted this with the same bundle, on commit 3b5c31fa.
GOALS = {FROZEN: 24_624, MPY: 81_760, PLAIN: 80 << 10, MPY + HEAD: 113_456 - (6 << 10), FROZEN + HEAD: 39_152 - (6 << 10)}
GOAL_BOARD = "pico"
# measures each module that a node holds by importing it a second time, when the interpreter knows its names
MODULES = material.text("programs/modules.py.txt")


COSTS = "costs = [[0 if i == j else 22938 for j in range({n})] for i in range({n})]"
# source that creates a policy, all with b = 4
POLICIES = {
    "H2T2": "from h2t2.core.h2t2 import H2T2; policy = H2T2()",
    "adaptive": "from h2t2.core.adaptive import Adaptive; policy = Adaptive()",
    "adaptive, with its past": "from h2t2.core.ordered import Ordered; policy = Ordered()",
    "adaptive, with a head of 16 features": "from h2t2.core.adaptive_head import AdaptiveHead; policy = AdaptiveHead(16)",
    "adaptive, with a limit for misses": "from h2t2.core.policies import make; policy = make('adaptive', {'miss_rate': 655})",
    **{
        f"adaptive, {n} classes": "from h2t2.core.adaptive_classes import AdaptiveClasses; "
        f"{COSTS.format(n=n)}; policy = AdaptiveClasses(costs)"
        for n in (3, 10)
    },
}
COUNTED = material.text("programs/counted.py.txt")
STARTED = material.text("programs/started.py.txt")  # assembles a board's node; prints the bytes free before and after


def measure(progress: Progress) -> dict[str, list[Row]]:
    """Measure flash and heap on each kind of board. Runtime and a small local model take them; each policy's heap is
    measured alone, too.

    Returns:
        {"boards": rows {board, form (MPY, PLAIN, PY or FROZEN, maybe with PAST), flash_bytes, rest_bytes, heap_bytes (its
        peak), bundle_bytes}, "modules": rows {module, heap_bytes}, "policies": rows {policy, heap_bytes}, "update": rows {what,
        heap_bytes}}. If emulated ARM cannot run, bytes of heap are None and the last three have no rows.
    """
    emulated = ARM32.missing() is None
    return {
        "boards": _boards(progress),
        "modules": _modules(progress) if emulated else [],
        "policies": _policies(progress) if emulated else [],
        "update": _update(progress) if emulated else [],
    }


def _update(progress: Progress) -> list[Row]:
    """Measure the heap that updates add to a node."""
    pair = pairs.load(UPDATED)
    blob = bundle.from_tflite(pair.ldl)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        private, public = keys.make(folder / "key")
        (folder / "ldl.h2m").write_bytes(blob)
        (folder / "new.h2u").write_bytes(signed_package.build(pair, blob, private, PackageOptions(counter=1)).content)
        source = (material.ON_DEVICE / "update_memory.py").read_text()

        def run(leave: int) -> str:
            progress(f"an update, {leave:,} bytes free" if leave else "an update")
            for old in folder.glob("state*"):
                old.unlink()
            script = folder / "script.py"
            script.write_text(f"FOLDER, KEY, LEAVE = {name!r}, {keys.modulus(public)!r}, {leave}\n{source}")
            return ARM32.run(script, [], places.RUNTIME.parent)

        heap_bytes = dict(zip(UPDATE, map(int, run(0).split())))
        leave = STEP
        while "whole" not in run(leave):
            leave += STEP
        heap_bytes[MOMENT] = leave
    return [{"what": label, "heap_bytes": count} for label, count in heap_bytes.items()]


def _policies(progress: Progress) -> list[Row]:
    """Measure the heap of each policy by itself, code and state."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "counted.py"
        for policy, making in POLICIES.items():
            progress(policy)
            script.write_text(COUNTED.format(making=making))
            rows.append({"policy": policy, "heap_bytes": int(ARM32.run(script, [], places.RUNTIME.parent))})
    return rows


@contextmanager
def _contents(features: int = 0) -> Iterator[kinds.Contents]:
    """Open the contents of the boards that are measured. features: numbers that the local model gives beside its score."""
    pair = pairs.load(PAIR)
    config = NodeConfig(remote_shape=pair.info.remote.shape, model_id=pair.info.model_id, features=features)
    with tempfile.TemporaryDirectory() as name:
        ldl, model = Path(name) / "ldl.tflite", Path(name) / "ldl.h2m"
        ldl.write_bytes(_with_features(pair.ldl.read_bytes(), features) if features else pair.ldl.read_bytes())
        model.write_bytes(bundle.from_tflite(ldl))
        yield kinds.Contents(model, config)


def _with_features(content: bytes, features: int) -> bytes:
    """The same int8 .tflite, which gives sums of its input as features."""
    graph = tflite.read(content)
    source = graph.tensors[graph.inputs[0]]
    weights, scale = np.ones((features, source.shape[-1]), np.int8), float(source.scale[0])
    bias = np.zeros(features, np.int32)
    return tflite_edit.with_features(content, source.index, weights, np.ones(features), bias, scale, scale)


def _modules(progress: Progress) -> list[Row]:
    """Measure the modules of a Pico's node, and return the largest ones."""
    progress("each module")
    with _contents() as contents:
        files = kinds.payload(kinds.KINDS[GOAL_BOARD], contents)
        lines = (node_heap.measuring(files, further=MODULES) or "").splitlines()
    sizes = [line.split()[1:] for line in lines if line.startswith("module ")]
    rows: list[Row] = [{"module": name, "heap_bytes": int(size)} for name, size in sizes]
    return sorted(rows, key=lambda row: -row["heap_bytes"])[:LARGEST]


def _boards(progress: Progress) -> list[Row]:
    rows = []
    with _contents() as usual, _contents(FEATURES) as featured:
        for kind in kinds.KINDS.values():
            if kind.like or kind.name in ("unix", "microbit"):  # kind.like: same files as another kind
                continue
            for form in (MPY, MPY + PAST, MPY + HEAD, PLAIN, PY, FROZEN, FROZEN + PAST, FROZEN + HEAD):
                if form == PLAIN and kind.heap < kinds.ROOMY:  # it gets no machine code of the policies anyway
                    continue
                if form.endswith(HEAD) and kind.name != GOAL_BOARD:
                    continue
                progress(f"{kind.name}, {form}")
                owned = featured if form.endswith(HEAD) else usual
                config = owned.config.model_copy(update={"machine_code": form != PLAIN, "ordered": form.endswith(PAST)})
                contents = replace(owned, config=config, mpy=form != PY, frozen=form.startswith(FROZEN))
                files = kinds.payload(kind, contents)
                heap = node_heap.needed(kind, contents)
                rest = sum(heap.values()) - heap["work"] if heap else None
                if form == FROZEN and kind.name == GOAL_BOARD and not PICO_FROZEN.missing():
                    rest = _frozen_on_chip(kind, contents)
                rows.append(
                    {
                        "board": kind.name,
                        "form": form,
                        "flash_bytes": sum(map(len, files.values())),
                        "rest_bytes": rest,
                        "heap_bytes": sum(heap.values()) if heap else None,
                        "bundle_bytes": owned.model.stat().st_size,
                    }
                )
    return rows


def _frozen_on_chip(kind: kinds.Kind, contents: kinds.Contents) -> int:
    """Return the heap of a node at rest on the emulated Pico, whose firmware holds the runtime."""
    with tempfile.TemporaryDirectory() as name, Pico(Path(name) / "flash.bin", board=PICO_FROZEN) as pico:
        records = Path(name) / "samples.bin"
        records.write_bytes(bytes(contents.record_size))
        flash.flash(kind, pico.port, replace(contents, records=records), False, lambda *_: None, start=False)
        with RawRepl(pico.port, pace=False) as repl:
            free, free_after = (int(n) for n in repl.run(STARTED, 120).split())
    return free - free_after


def report(measured: dict[str, list[Row]]) -> Report:
    """Return a line for each board and form of the runtime, for each policy, and for each part of an update."""
    rows = measured["boards"]
    columns = {
        "board": cell("board"),
        "runtime as": cell("form"),
        "bytes of flash": cell("flash_bytes", ","),
        "heap at rest": cell("rest_bytes", ","),
        "at its peak": cell("heap_bytes", ","),
    }
    sizes = f"runtime, configuration and the {PAIR} LDL ({rows[0]['bundle_bytes']:,} bytes)"
    title = f"{sizes}; heap on emulated 32-bit ARM, that of a {GOAL_BOARD}'s frozen node at rest on the emulated chip"
    tables: Report = [table(title, rows, columns, words=2)]
    titles = {
        "modules": ("module", f"the {LARGEST} largest modules of a {GOAL_BOARD}'s node from .mpy, without their names"),
        "policies": ("policy", "each policy alone, compiled from .py, b = 4, code and state; emulated 32-bit ARM"),
        "update": ("what", "updates over MQTT; emulated 32-bit ARM"),
    }
    for name, (key, title) in titles.items():
        if measured[name]:
            tables.append(table(title, measured[name], {key: cell(key), "bytes of heap": cell("heap_bytes", ",")}))
    return [*tables, *map(str, goals(measured))]


def goals(measured: dict[str, list[Row]]) -> list[Goal]:
    """Return each of GOALS that was measured."""
    rows = [row for row in measured["boards"] if row["board"] == GOAL_BOARD and row["form"] in GOALS and row["rest_bytes"]]
    subject = f"for a {GOAL_BOARD}'s node at rest"
    return [Goal(f"{subject}, {row['form']}", row["rest_bytes"], GOALS[row["form"]], "bytes of heap") for row in rows]


def broken(measured: dict[str, list[Row]]) -> list[str]:
    """Return a sentence for each goal that was missed."""
    return missed(goals(measured))
