"""`h2t2 bench cuts`: the power cut at every flash operation of what the runtime and `h2t2 flash` write, and what is found then:
on MicroPython's file systems over a block device in memory, and on an emulated Pico's own flash, which boots after each cut."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2t2.link import frames

from ...boards import flash as flashing
from ...boards.emulators import drive
from ...boards.emulators.built import PICO
from ...boards.emulators.catalogue import UNIX
from ...boards.emulators.pico import Pico
from ...boards.kinds import KINDS, Contents
from ...boards.repl import RawRepl
from ...boards.targets import Repl, wait_hello
from ...common import pairs, places
from ...common.errors import Failure
from ...common.report import Report, Table
from ...fleet.config import NodeConfig
from ...fleet.update import keys, package
from ...model.bundle import from_tflite

TITLE = "Power cuts"
SYSTEMS = {"littlefs": "VfsLfs2", "FAT": "VfsFat"}
PAIR = "breast_cancer"
COUNTS = ("operations", "cuts", "older", "newer", "lost", "ran")
MEMORY = "128m"  # of the unix port's heap: every operation of a round is kept
READY_S = 300  # for an emulated board to start its node on a busy machine


def measure(progress: Callable[[str], None], rounds: int = 30, cuts: int = 4, full: bool = False) -> list[dict[str, Any]]:
    """Rows {"on", "system", "what", "operations", "cuts", "older", "newer", "lost", "why"}; on the Pico "ran" too: how often
    its node started after the cut.

    rounds: of each write in memory, a tenth of them on FAT, whose writes are many. cuts: of each write on the Pico, spread
    evenly; full: all of them. What cannot run here is left out.
    """
    rows = []
    if UNIX.missing() is None:
        for system, name in SYSTEMS.items():
            progress(f"{system}, in memory")
            many = rounds if system == "littlefs" else max(1, rounds // 10)
            rows += [{"on": "block device in memory", "system": system, **row} for row in _in_memory(name, many)]
    if PICO.missing() is None:
        rows += _on_pico(progress, 0 if full else cuts)
    return rows


def _in_memory(system: str, rounds: int) -> list[dict[str, Any]]:
    finish = (places.boards() / "finish.py").read_text()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "cut.py"
        head = f"import vfs\nSYSTEM = vfs.{system}\nROUNDS = {rounds}\nFINISH = {finish!r}\n" + _packages(Path(folder), rounds)
        script.write_text(head + (places.on_device() / "cut_disk.py").read_text())
        command = UNIX.command(script, [])
        command[-1:] = ["-X", f"heapsize={MEMORY}", str(script)]
        environment = UNIX.environment(places.RUNTIME.parent)
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode:
            raise Failure(f"{system}: {(done.stdout + done.stderr)[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _packages(folder: Path, count: int) -> str:
    """Signed packages, their key, and the model they replace, as a script has them."""
    pair = pairs.load(PAIR)
    blob = from_tflite(pair.ldl)
    private, public = keys.make(folder / "cuts")
    made = [package.build(pair, blob, private, package.Options(n + 1, trial=10, seconds=0)).content for n in range(count)]
    return f"KEY = {keys.modulus(public)!r}\nLDL = {blob!r}\nPACKAGES = {made!r}\n"


def images(before: bytes, operations: list[dict[str, Any]]) -> Iterator[bytes]:
    """The flash's content after a cut before and in the middle of each operation, and after the last."""
    content = bytearray(before)
    for operation in operations:
        offset, data = operation["offset"], base64.b64decode(operation["data"])
        for part in (0, len(data) // 2):
            yield bytes(content[:offset] + data[:part] + content[offset + part :])
        content[offset : offset + len(data)] = data
    yield bytes(content)


def chosen(found: list[bytes], cuts: int) -> list[bytes]:
    """So many of them, spread evenly, the first and the last among them; 0: all."""
    if not cuts or cuts >= len(found):
        return found
    return [found[n * (len(found) - 1) // (cuts - 1)] for n in range(cuts)]


def _on_pico(progress: Callable[[str], None], cuts: int) -> list[dict[str, Any]]:
    pair = pairs.load(PAIR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ldl.h2m").write_bytes(from_tflite(pair.ldl))
        config = NodeConfig(
            device="cut", remote_shape=list(pair.info.remote.shape), model_id=pair.info.model_id, deadline_ms=50
        )
        zeros = bytes(3 * Contents(folder / "ldl.h2m", config).record_size)
        (folder / "samples.bin").write_bytes(zeros)
        contents = Contents(folder / "ldl.h2m", config, folder / "samples.bin")
        image = folder / "flash.bin"
        drive.runtime_on_a_pico(image)
        progress("the Pico's first node")
        with Pico(image) as pico:
            flashing.flash(KINDS["pico"], pico.port, contents, False, lambda *_: None, start=False)
        rows = []
        for what, write, judge in (("a snapshot", _saved, _state), ("h2t2 flash", _flashed, _files)):
            start = folder / "start.bin"
            shutil.copy(image, start)
            with Pico(start) as pico:
                older = write(pico, contents, False)
                before = start.read_bytes()
                pico.ask("record", on=True)
                newer = write(pico, contents, True)
                operations = pico.ask("record", on=False)["operations"]
            found = chosen(list(images(before, operations)), cuts)
            counts = {"older": 0, "newer": 0, "lost": 0, "ran": 0}
            why = ""

            def look(content: bytes, judge: Any = judge) -> tuple[Any, bool, str]:
                try:
                    return judge(content)
                except Failure as error:
                    return None, False, str(error)

            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                for n, (state, ran, trouble) in enumerate(pool.map(look, found)):
                    progress(f"the Pico: {what}, cut {n + 1} of {len(found)}")
                    counts["older" if state == older else "newer" if state == newer else "lost"] += 1
                    counts["ran"] += ran
                    why = why or trouble
            row = {"on": "emulated Pico", "system": "littlefs", "what": what, "operations": len(operations)}
            rows.append({**row, "cuts": len(found), **counts, "why": why})
    return rows


LEARN = """from h2t2.core.adaptive import Adaptive
from h2t2.node.snapshot import costs_of, encode
from h2t2.node.store import file_store
policy = Adaptive(window=256)
for n in range(%d):
    if policy.decide(n * 7 & 15) < 0:
        policy.learn(policy.ticket, n & 1)
file_store("h2t2.state").write(*encode(policy, costs_of(policy)))
"""
STATE = """from h2t2.node.store import file_store
from binascii import crc32
blob = file_store("h2t2.state").load()
print(blob and crc32(blob))
"""


def _saved(pico: Pico, contents: Contents, again: bool) -> str:
    """Save what was learned of 40 samples, or of 60; what marks it."""
    with RawRepl(pico.port, pace=False) as repl:
        repl.run(LEARN % (60 if again else 40), READY_S)
        return repl.run(STATE)


def _state(content: bytes) -> tuple[str, bool, str]:
    """What marks the state that is found, whether the node then starts from it, what it said otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "flash.bin"
        image.write_bytes(content)
        with Pico(image) as pico, RawRepl(pico.port, pace=False) as repl:
            found = repl.run(STATE, READY_S)
            repl.reset()
            return found, bool(_summary(repl)["restored"]), ""


def _summary(repl: RawRepl) -> dict[str, Any]:
    """What a node says at its end. Failure where it comes to none."""
    decoder, end = frames.Decoder(), time.monotonic() + READY_S
    while time.monotonic() < end:
        for kind, payload in decoder.feed(repl.read()):
            if kind == frames.END:
                return dict(json.loads(payload))
    raise Failure(f"no node came to its end in {READY_S} s")


def _flashed(pico: Pico, contents: Contents, again: bool) -> dict[str, str]:
    """Put another configuration and other samples onto it, or look at what is there; the digests of its files."""
    if again:
        records = contents.model.with_name("other.bin")
        records.write_bytes(bytes([1]) * (3 * contents.record_size))
        config = contents.config.model_copy(update={"beta": 0.25, "bits": 5})
        changed = replace(contents, config=config, records=records)
        flashing.flash(KINDS["pico"], pico.port, changed, False, lambda *_: None, start=False)
    with RawRepl(pico.port, pace=False) as repl:
        return _digests(repl)


def _digests(repl: RawRepl) -> dict[str, str]:
    names = [name for name in repl.files() if name.endswith((".py", ".h2m", ".json", ".bin", ".todo"))]
    return Repl(repl, True).digests(names)


def _files(content: bytes) -> tuple[dict[str, str], bool, str]:
    """The digests of the files that a start leaves, whether its node starts, what it said otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "flash.bin"
        image.write_bytes(content)
        with Pico(image) as pico, closing(RawRepl(pico.port, pace=False)) as repl:
            wait_hello(repl.read, b"h2t2: ready", READY_S)
            repl.interrupt(READY_S)
            return _digests(repl), True, ""


def report(rows: list[dict[str, Any]]) -> Report:
    """A row a place and a write."""
    columns = {"on": "left", "file system": "left", "what is written": "left", **dict.fromkeys(COUNTS, "right")}
    cells = []
    for row in rows:
        numbers = [f"{row[name]:,}" if name in row else "" for name in COUNTS]
        cells.append([row["on"], row["system"], row["what"], *numbers])
    return [Table("The power cut before and in the middle of flash operations: what is found afterwards", columns, cells)]


def broken(rows: list[dict[str, Any]]) -> list[str]:
    """On littlefs nothing is ever lost, and a board's node runs after every cut."""
    trouble = []
    for row in rows:
        ran = row.get("ran", row["cuts"])
        if row["system"] == "littlefs" and (row["lost"] or ran < row["cuts"]):
            trouble.append(f"{row['what']}, {row['on']}: {row['lost']} of {row['cuts']} lost, {ran} started: {row['why']}")
    return trouble
