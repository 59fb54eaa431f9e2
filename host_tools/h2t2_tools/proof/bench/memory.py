"""`h2t2 bench memory`: flash and heap of the runtime with a small LDL on each kind of board, and of each policy.

The heap is measured on emulated 32-bit ARM; that of a node with a frozen runtime on the emulated Pico, at rest.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ...boards import flash, kinds
from ...boards.emulators.built import PICO_FROZEN
from ...boards.emulators.catalogue import ARM32
from ...boards.emulators.pico import Pico
from ...boards.repl import RawRepl
from ...common import pairs, places
from ...common.report import Report
from ...fleet.config import NodeConfig
from ...fleet.update import keys, package
from ...model import bundle
from . import Progress, Row, cell, table

TITLE = "Memory on a board"
PAIR = "breast_cancer"
UPDATED = "digits"
UPDATE = "code, compiled from .py", "state of a node that takes updates", "additional while a package arrives"
MOMENT = "free in one piece while the package is verified and put in place"
STEP = 512
LARGEST = 10
MPY, PLAIN, PY, FROZEN = ".mpy", ".mpy, machine_code = false", ".py", "frozen"  # forms of the runtime
GOALS = {FROZEN: 26 << 10, MPY: 80 << 10, PLAIN: 80 << 10}  # bytes of heap of runtime and local model at rest, on a Pico
GOAL_BOARD = "pico"
# measures each module that a node holds by importing it a second time, when the interpreter knows its names
MODULES = places.text("proof/programs/modules.py.txt")


COSTS = "costs = [[0 if i == j else 22938 for j in range({n})] for i in range({n})]"
# source that creates a policy, all with b = 4
POLICIES = {
    "H2T2": "from h2t2.core.h2t2 import H2T2; policy = H2T2()",
    "adaptive": "from h2t2.core.adaptive import Adaptive; policy = Adaptive()",
    "adaptive, with a head of 16 features": "from h2t2.core.adaptive_head import AdaptiveHead; policy = AdaptiveHead(16)",
    "adaptive, with a limit for misses": "from h2t2.core.miss_rate import MissLimited; policy = MissLimited(miss_rate=655)",
    **{
        f"adaptive, {n} classes": "from h2t2.core.adaptive_classes import AdaptiveClasses; "
        f"{COSTS.format(n=n)}; policy = AdaptiveClasses(costs)"
        for n in (3, 10)
    },
}
COUNTED = places.text("proof/programs/counted.py.txt")
STARTED = places.text("proof/programs/started.py.txt")  # assembles a board's node; prints the bytes free before and after


def measure(progress: Progress) -> dict[str, list[Row]]:
    """Measure flash and heap, in bytes.

    Returns:
        {"boards": rows {board, form (one of MPY, PLAIN, PY, FROZEN), flash_bytes, rest_bytes and heap_bytes (its peak),
        bundle_bytes}, "modules": rows {module, heap_bytes}, "policies": rows {policy, heap_bytes}, "update": rows {what,
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
        (folder / "new.h2u").write_bytes(package.build(pair, blob, private, package.Options(1)).content)
        source = (places.on_device() / "update_memory.py").read_text()

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
def _contents() -> Iterator[kinds.Contents]:
    """Open the contents of the boards that are measured."""
    pair = pairs.load(PAIR)
    config = NodeConfig(remote_shape=pair.info.remote.shape, model_id=pair.info.model_id)
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "ldl.h2m"
        model.write_bytes(bundle.from_tflite(pair.ldl))
        yield kinds.Contents(model, config)


def _modules(progress: Progress) -> list[Row]:
    """Measure the modules of a Pico's node, and return the largest ones."""
    progress("each module")
    with _contents() as contents:
        files = kinds.payload(kinds.KINDS[GOAL_BOARD], contents)
        lines = (flash.measuring(files, further=MODULES) or "").splitlines()
    sizes = [line.split()[1:] for line in lines if line.startswith("module ")]
    rows: list[Row] = [{"module": name, "heap_bytes": int(size)} for name, size in sizes]
    return sorted(rows, key=lambda row: -row["heap_bytes"])[:LARGEST]


def _boards(progress: Progress) -> list[Row]:
    rows = []
    with _contents() as usual:
        for kind in kinds.KINDS.values():
            if kind.like or kind.name in ("unix", "microbit"):  # kind.like: same files as another kind
                continue
            for form in (MPY, PLAIN, PY, FROZEN):
                if form == PLAIN and kind.heap < kinds.ROOMY:  # it gets no machine code of the policies anyway
                    continue
                progress(f"{kind.name}, {form}")
                config = usual.config.model_copy(update={"machine_code": form != PLAIN})
                contents = replace(usual, config=config, mpy=form != PY, frozen=form == FROZEN)
                files = kinds.payload(kind, contents)
                heap = flash.needed(kind, contents)
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
                        "bundle_bytes": usual.model.stat().st_size,
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
    return [*tables, *(_sentence(goal) for goal in goals(measured))]


def goals(measured: dict[str, list[Row]]) -> list[Row]:
    """Return {form, heap_bytes, limit, met} for each goal that was measured."""
    rows = [row for row in measured["boards"] if row["board"] == GOAL_BOARD and row["form"] in GOALS and row["rest_bytes"]]
    return [
        {"form": row["form"], "heap_bytes": row["rest_bytes"], "limit": limit, "met": row["rest_bytes"] <= limit}
        for row in rows
        for limit in [GOALS[row["form"]]]
    ]


def _sentence(goal: Row) -> str:
    verdict = "met" if goal["met"] else "missed"
    return (
        f"goal for a {GOAL_BOARD}'s node at rest, {goal['form']}: at most {goal['limit']:,} bytes of heap: {verdict} "
        f"({goal['heap_bytes']:,})"
    )


def broken(measured: dict[str, list[Row]]) -> list[str]:
    """Return a sentence for each goal that was missed."""
    return [_sentence(goal) for goal in goals(measured) if not goal["met"]]
