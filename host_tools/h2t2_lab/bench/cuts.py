"""`h2t2-lab bench cuts`: cuts the power at every flash operation of the runtime and of `h2t2 flash`, and checks the files.

It does so in memory, with MicroPython's file systems on a block device, and on an emulated Pico, which boots afterwards.
"""

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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2t2.link import frames
from h2t2_tools.boards import flash as flashing
from h2t2_tools.boards.emulators import flash_image
from h2t2_tools.boards.emulators.catalogue import PICO, UNIX
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS, STARTERS, Contents
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.boards.targets import Repl, wait_hello
from h2t2_tools.common import pairs, places
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.fleet.update import keys, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions
from h2t2_tools.model.bundle import from_tflite

from .. import material
from . import Progress, Row, cell, table

TITLE = "Power cuts"
SYSTEMS = {"littlefs": "VfsLfs2", "FAT": "VfsFat"}
PAIR = "breast_cancer"
COUNTS = ("operations", "cuts", "older", "newer", "lost", "ran")
MEMORY = "128m"  # heap of the unix port, for all operations of a round
READY_S = 300  # longest start of an emulated node on a busy machine


def measure(progress: Progress, rounds: Count = 30, cuts: Count = 4, full: bool = False) -> list[Row]:
    """Cut the power during writes, and check what is left. A snapshot, the log, `h2t2 flash` or the page that asks for a
    network writes, in memory, and the first or third on an emulated Pico. It skips what this machine cannot emulate.

    Args:
        rounds: writes of each kind in memory, all operations of each cut; a tenth of them on FAT, which needs more operations
        cuts: cuts of each kind on the Pico, at even distances
        full: on the Pico, too, cut before and in the middle of every operation, which takes half an hour

    Returns:
        Rows {"on", "system", "what", "operations", "cuts", "older", "newer", "lost", "why"}, which count the states after the
        cuts; on the Pico also "ran": how often its node started.
    """
    rows = []
    if UNIX.missing() is None:
        for system, name in SYSTEMS.items():
            progress(f"{system}, in memory")
            count = rounds if system == "littlefs" else max(1, rounds // 10)
            rows += [{"on": "block device in memory", "system": system, **row} for row in _in_memory(name, count)]
    if PICO.missing() is None:
        rows += _on_pico(progress, 0 if full else cuts)
    return rows


def _in_memory(system: str, rounds: int) -> list[Row]:
    finish, selector = ((places.boards() / name).read_text() for name in STARTERS)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "cut.py"
        head = "import sys\nimport vfs\nsys.modules['network'] = vfs  # provision.py imports it, and stores without\n"
        head += f"SYSTEM = vfs.{system}\nROUNDS = {rounds}\nFINISH = {finish!r}\nSELECTOR = {selector!r}\n"
        head += _packages(Path(folder), rounds)
        script.write_text(head + (material.ON_DEVICE / "cut_disk.py").read_text())
        command = UNIX.command(script, [])
        command[-1:] = ["-X", f"heapsize={MEMORY}", str(script)]
        environment = UNIX.environment(places.RUNTIME.parent)
        result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if result.returncode:
            raise Failure(f"{system}: {(result.stdout + result.stderr)[-500:]}")
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def _packages(folder: Path, count: int) -> str:
    """Return the head of a script: signed packages, their key, and the model that they replace."""
    pair = pairs.load(PAIR)
    blob = from_tflite(pair.ldl)
    private, public = keys.make(folder / "cuts")
    packages = [
        signed_package.build(pair, blob, private, PackageOptions(counter=n + 1, trial=10, trial_time=0)).content
        for n in range(count)
    ]
    runtimes = [
        signed_package.runtime(
            {"h2t2/counter.py": str(n + 1).encode() * 500, "h2t2/node/run.py": b""}, 0, private,
            PackageOptions(counter=n + 1, trial=10, trial_time=0),
        ).content
        for n in range(count)
    ]  # fmt: skip
    return f"KEY = {keys.modulus(public)!r}\nLDL = {blob!r}\nPACKAGES = {packages!r}\nRUNTIMES = {runtimes!r}\n"


def images(before: bytes, operations: list[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the content of the flash after a cut before and in the middle of each operation, and after the last one."""
    content = bytearray(before)
    for operation in operations:
        offset, data = operation["offset"], base64.b64decode(operation["data"])
        for written in (0, len(data) // 2):
            yield bytes(content[:offset] + data[:written] + content[offset + written :])
        content[offset : offset + len(data)] = data
    yield bytes(content)


def spread(contents: list[bytes], cuts: int) -> list[bytes]:
    """Choose `cuts` contents at even distances, including the first and the last; 0: all."""
    if not cuts or cuts >= len(contents):
        return contents
    return [contents[n * (len(contents) - 1) // (cuts - 1)] for n in range(cuts)]


def _on_pico(progress: Progress, cuts: int) -> list[Row]:
    pair = pairs.load(PAIR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, records, image = folder / "ldl.h2m", folder / "samples.bin", folder / "flash.bin"
        model.write_bytes(from_tflite(pair.ldl))
        config = NodeConfig(device="cut", remote_shape=list(pair.info.remote.shape), model_id=pair.info.model_id, deadline=0.05)
        records.write_bytes(bytes(3 * Contents(model, config).record_size))
        contents = Contents(model, config, records)
        flash_image.runtime_on_a_pico(image)
        progress("the Pico's first node")
        with Pico(image) as pico:
            flashing.flash(KINDS["pico"], pico.port, contents, False, lambda *_: None, start=False)
        return [
            _cut_write(progress, image, contents, cuts, write)
            for write in (_Write("a snapshot", _save, _state), _Write("h2t2 flash", _flash, _files))
        ]


@dataclass(frozen=True)
class _Write:
    """Something that writes flash.

    Attributes:
        what: Its name in the report.
        run: Writes the first or the second version on a Pico with these contents. Returns the mark of the state on the flash.
        judge: Checks a content of the flash. Returns its mark, whether the node starts, and the trouble.
    """

    what: str
    run: Callable[[Pico, Contents, bool], Any]
    judge: Callable[[bytes], tuple[Any, bool, str]]

    def look(self, content: bytes) -> tuple[Any, bool, str]:
        """As judge(), with a failing board as trouble."""
        try:
            return self.judge(content)
        except Failure as error:
            return None, False, str(error)


def _cut_write(progress: Progress, image: Path, contents: Contents, cuts: int, write: _Write) -> Row:
    start = image.with_name("start.bin")
    shutil.copy(image, start)
    with Pico(start) as pico:
        older = write.run(pico, contents, False)
        content = start.read_bytes()
        pico.ask("record", on=True)
        newer = write.run(pico, contents, True)
        operations = pico.ask("record", on=False)["operations"]
    after_cuts = spread(list(images(content, operations)), cuts)
    counts = {"older": 0, "newer": 0, "lost": 0, "ran": 0}
    why = ""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for n, (state, ran, trouble) in enumerate(pool.map(write.look, after_cuts)):
            progress(f"the Pico: {write.what}, cut {n + 1} of {len(after_cuts)}")
            counts["older" if state == older else "newer" if state == newer else "lost"] += 1
            counts["ran"] += ran
            why = why or trouble
    row = {"on": "emulated Pico", "system": "littlefs", "what": write.what, "operations": len(operations)}
    return {**row, "cuts": len(after_cuts), **counts, "why": why}


LEARN = material.text("programs/cuts_learn.py.txt")
STATE = material.text("programs/cuts_state.py.txt")


def _save(pico: Pico, contents: Contents, again: bool) -> str:
    """Save what the policy learned from 40 samples, or from 60. Return the mark of this state."""
    with RawRepl(pico.port, pace=False) as repl:
        repl.run(LEARN % (60 if again else 40), READY_S)
        return repl.run(STATE)


def _state(content: bytes) -> tuple[str, bool, str]:
    """Return the mark of the state on the flash, whether the node starts from it, and no trouble."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "flash.bin"
        image.write_bytes(content)
        with Pico(image) as pico, RawRepl(pico.port, pace=False) as repl:
            mark = repl.run(STATE, READY_S)
            repl.reset()
            return mark, bool(_summary(repl)["restored"]), ""


def _summary(repl: RawRepl) -> dict[str, Any]:
    """Return the summary that a node sends at its end. Raise Failure if it does not end."""
    decoder, end = frames.Decoder(), time.monotonic() + READY_S
    while time.monotonic() < end:
        for kind, payload in decoder.feed(repl.read()):
            if kind == frames.END:
                return dict(json.loads(payload))
    raise Failure(f"no node reached its end in {READY_S} s")


def _flash(pico: Pico, contents: Contents, again: bool) -> dict[str, str]:
    """Flash the node, or if `again` another configuration and other samples. Return the digests of the files on the board."""
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
    """Return the digests of the files after a start, whether the node starts, and no trouble."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "flash.bin"
        image.write_bytes(content)
        pico = Pico(image)
        with closing(RawRepl(pico.port, pace=False)) as repl, pico:  # an open line misses nothing
            wait_hello(repl.read, b"h2t2: ready", READY_S)
            repl.interrupt(READY_S)
            return _digests(repl), True, ""


def report(rows: list[Row]) -> Report:
    """Return a table with a line for each place and write."""
    columns = {"on": cell("on"), "file system": cell("system"), "what is written": cell("what")}
    columns |= {name: cell(name) for name in COUNTS}
    counts = [{name: f"{row[name]:,}" if name in row else "" for name in COUNTS} for row in rows]
    title = "State after a power cut before and in the middle of each flash operation"
    return [table(title, [{**row, **numbers} for row, numbers in zip(rows, counts)], columns, words=3)]


def broken(rows: list[Row]) -> list[str]:
    """Report littlefs data that a cut lost, and boards whose node did not start after a cut."""
    trouble = []
    for row in rows:
        ran = row.get("ran", row["cuts"])
        if row["system"] == "littlefs" and (row["lost"] or ran < row["cuts"]):
            trouble.append(f"{row['what']}, {row['on']}: {row['lost']} of {row['cuts']} lost, {ran} started: {row['why']}")
    return trouble
