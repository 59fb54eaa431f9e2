"""`h2t2 bench memory`: what runtime and a small LDL take on each kind of board, and each policy alone; heap measured on
emulated 32-bit ARM."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...boards import flash, kinds
from ...boards.emulators.catalogue import ARM32
from ...common import pairs, places
from ...common.report import Report, Table
from ...fleet.config import NodeConfig
from ...fleet.update import keys, package
from ...model import bundle

TITLE = "Memory on a board"
PAIR = "breast_cancer"
UPDATED = "digits"
UPDATE = "code, compiled from .py", "state of a node that takes updates", "more while a package comes"
MOMENT = "free in one piece while it is verified and put in place"
STEP = 512


COSTS = "costs = [[0 if i == j else 22938 for j in range({n})] for i in range({n})]"
# what makes a policy, all at b = 4, and counts what it took
POLICIES = {
    "H2T2": "from h2t2.core.h2t2 import H2T2; policy = H2T2()",
    "adaptive": "from h2t2.core.adaptive import Adaptive; policy = Adaptive()",
    "adaptive, with a limit for misses": "from h2t2.core.miss_rate import MissLimited; policy = MissLimited(miss_rate=655)",
    **{
        f"{name}, {n} classes": f"from h2t2.core.{module} import {kind}; {COSTS.format(n=n)}; policy = {kind}(costs)"
        for name, module, kind in (
            ("pairwise H2T2", "pairwise", "Pairwise"),
            ("adaptive", "adaptive_classes", "AdaptiveClasses"),
        )
        for n in (3, 10)
    },
}
COUNTED = """import gc
gc.collect()
before = gc.mem_alloc()
{making}
gc.collect()
print(gc.mem_alloc() - before)
"""


def measure(progress: Callable[[str], None]) -> dict[str, list[dict[str, Any]]]:
    """{"boards": rows {board, mpy, flash_bytes, rest_bytes and heap_bytes, the peak (None where emulated ARM cannot run),
    bundle_bytes}, "policies": rows {policy, heap_bytes}, "update": rows {what, heap_bytes}, none where it cannot}."""
    there = ARM32.missing() is None
    made = {"boards": _boards(progress), "policies": _policies(progress) if there else []}
    return {**made, "update": _update(progress) if there else []}


def _update(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """What a node that takes updates needs beside what it needs anyway."""
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

        found = dict(zip(UPDATE, map(int, run(0).split())))
        leave = STEP
        while "whole" not in run(leave):
            leave += STEP
        found[MOMENT] = leave
    return [{"what": what, "heap_bytes": n} for what, n in found.items()]


def _policies(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Each by itself, code and state."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "counted.py"
        for policy, making in POLICIES.items():
            progress(policy)
            script.write_text(COUNTED.format(making=making))
            rows.append({"policy": policy, "heap_bytes": int(ARM32.run(script, [], places.RUNTIME.parent))})
    return rows


def _boards(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    pair = pairs.load(PAIR)
    config = NodeConfig(remote_shape=pair.about.remote.shape, model_id=pair.about.model_id)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "ldl.h2m"
        model.write_bytes(bundle.from_tflite(pair.ldl))
        for kind in kinds.KINDS.values():
            if kind.like or kind.name in ("unix", "microbit"):  # another's files
                continue
            for mpy in (True, False):
                progress(f"{kind.name}, {'.mpy' if mpy else '.py'}")
                contents = kinds.Contents(model, config, mpy=mpy)
                files = kinds.payload(kind, contents)
                heap = flash.needed(kind, contents)
                rows.append(
                    {
                        "board": kind.name,
                        "mpy": mpy,
                        "flash_bytes": sum(map(len, files.values())),
                        "rest_bytes": sum(heap.values()) - heap["work"] if heap else None,
                        "heap_bytes": sum(heap.values()) if heap else None,
                        "bundle_bytes": model.stat().st_size,
                    }
                )
    return rows


def report(measured: dict[str, list[dict[str, Any]]]) -> Report:
    """A row a board and form of the runtime; a row a policy."""
    rows = measured["boards"]
    columns = {
        "board": "left",
        "runtime as": "left",
        "bytes of flash": "right",
        "heap at rest": "right",
        "at its peak": "right",
    }
    cells = [
        [
            row["board"],
            ".mpy" if row["mpy"] else ".py",
            f"{row['flash_bytes']:,}",
            *("-" if row[name] is None else f"{row[name]:,}" for name in ("rest_bytes", "heap_bytes")),
        ]
        for row in rows
    ]
    title = f"runtime, configuration and the {PAIR} LDL ({rows[0]['bundle_bytes']:,} bytes); heap on emulated 32-bit ARM"
    made: Report = [Table(title, columns, cells)]
    if measured["policies"]:
        alone = [[row["policy"], f"{row['heap_bytes']:,}"] for row in measured["policies"]]
        title = "each policy alone, compiled from .py, b = 4, code and state; emulated 32-bit ARM"
        made.append(Table(title, {"policy": "left", "bytes of heap": "right"}, alone))
    if measured["update"]:
        taken = [[row["what"], f"{row['heap_bytes']:,}"] for row in measured["update"]]
        made.append(Table("updates over MQTT; emulated 32-bit ARM", {"what": "left", "bytes of heap": "right"}, taken))
    return made
