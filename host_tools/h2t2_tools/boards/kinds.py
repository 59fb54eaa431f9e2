"""The kinds of board that `h2t2 flash` knows: the files that each gets, and the resources that it usually has."""

import ast
import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from h2t2.ldl.bounds import CONVOLUTIONS
from h2t2.ldl.bundle import Int8Model
from h2t2.link import wire

from ..common import head_file, places
from ..common.errors import UserError
from ..common.sendable import sendable
from ..fleet.config import HEAD, NETWORK_ENTRIES, PI, NodeConfig
from . import native
from .cross import compiled_file
from .microbit import microbit_program as microbit_program

VIPER = "_viper.py"  # ends the name of a module with machine code
OLDEST = (1, 25)  # oldest MicroPython that boards support, because the tests run it

STARTERS = "finish.py", "selector.py"  # of every board, beside its main.py, which runs them where they are needed
BAUD = 115200  # of serial lines, unless an option says otherwise


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of board.

    Attributes:
        name: Its name in `--board`.
        platform: Its sys.platform.
        heap: Bytes of heap that are usually free.
        oldest: Oldest MicroPython that it supports, major and minor.
        links: How it reaches the remote model, some of LINKS.
        app: It has room for a user's program.
        arch: Its processor as mpy-cross names it; None: bytecode only.
        paced: The line of its REPL has no flow control.
        like: Kind whose folder in firmware/boards it shares; "": it has its own.
        build: BOARD, and BOARD_VARIANT where it has one, in MicroPython's Makefiles; (): nobody freezes a runtime for it.
    """

    name: str
    platform: str
    heap: int
    oldest: tuple[int, int] = OLDEST
    links: tuple[str, ...] = ("mqtt",)
    app: bool = True
    arch: str | None = None
    paced: bool = False
    like: str = ""
    build: tuple[str, ...] = ()

    @property
    def with_article(self) -> str:
        """Its name in a sentence: "an esp32", "a pico"."""
        return f"{'an' if self.name[0] in 'aeio' else 'a'} {self.name}"

    @property
    def folder(self) -> Path:
        """Folder of its main.py."""
        return places.boards() / (self.like or self.name)


WIFI = ("mqtt", "wifi")
# Nobody here has measured `heap` on a real board. RP2350: RP2040's plus 256 KB. ESP32: gc.mem_free() in public reports of
# MicroPython 1.22 to 1.27 (micropython's issues 14293 and 18859, lvgl_micropython's 244), plus what MicroPython may still
# add to its heap, minus 40 KB that Wi-Fi takes of the same memory.
ESP32: dict[str, Any] = {"platform": "esp32", "links": WIFI, "arch": "xtensawin", "paced": True}
PICO: dict[str, Any] = {"platform": "rp2", "arch": "armv6m"}
PICO2: dict[str, Any] = {"platform": "rp2", "arch": "armv7emsp"}
KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="unix", platform="linux", heap=4 << 20, arch="x64"),
        Kind(name="esp32", build=("ESP32_GENERIC",), heap=110 << 10, **ESP32),
        Kind(name="esp32_s3", build=("ESP32_GENERIC_S3",), heap=145 << 10, like="esp32", **ESP32),
        Kind(name="esp32_s3_psram", build=("ESP32_GENERIC_S3", "SPIRAM_OCT"), heap=2 << 20, like="esp32", **ESP32),
        Kind(name="esp32_c3", build=("ESP32_GENERIC_C3",), heap=145 << 10, like="esp32", **{**ESP32, "arch": "rv32imc"}),
        Kind(name="esp32_c6", build=("ESP32_GENERIC_C6",), heap=145 << 10, like="esp32", **{**ESP32, "arch": "rv32imc"}),
        Kind(name="pico", build=("RPI_PICO",), heap=220 << 10, links=("serial",), **PICO),
        Kind(name="pico_w", build=("RPI_PICO_W",), heap=180 << 10, links=WIFI, **PICO),
        Kind(name="pico2", build=("RPI_PICO2",), heap=470 << 10, links=("serial",), like="pico", **PICO2),
        Kind(name="pico2_w", build=("RPI_PICO2_W",), heap=430 << 10, links=WIFI, like="pico_w", **PICO2),
        Kind(name="microbit", platform="microbit", heap=9000, oldest=(1, 9), links=(), app=False, paced=True),
    )
}


SECTIONS = (*KINDS, PI)  # names of the sections of an h2t2.toml

LINKS = ("mqtt", "serial", "wifi")
ROM = "/rom/"  # boards mount a read-only file system here; its files stay in flash
OWN_MODULES = "lstm", "log_softmax", "trees"  # operators whose kernels only boards have whose model needs them
POLICIES = "h2t2/core/"  # folder of the policies on a board
ROOMY = 140 << 10  # bytes of heap from which on a board gets the machine code of the policies, unless machine_code is false
# entries of a configuration that need further modules; `names`: a broker that is not an IP address; `own_program`: no entry;
# `own_link`: an app with a link of its own; `roomy`: a large heap; `asyncio`: an app with async functions
PARTS = (
    "budget", "class_costs", "miss_rate", "confidence", "ordered", "app", "window", "picture", "sleep", "stream",
    "snapshot_ldl", "update_key", "names", "features", "heads", "head", "provision", "own_program", "own_link", "roomy",
    "asyncio", *OWN_MODULES,
)  # fmt: skip


def modules(kind: Kind, parts: Sequence[str] = PARTS) -> list[str]:
    """Return the runtime's files for a board, as modules.txt lists them: h2t2/core/policy.py and so on.

    Args:
        kind: Kind of the board.
        parts: Wanted features, some of PARTS.
    """
    has = {*parts, *kind.links, *(["serial"] if "own_link" in parts else [])}
    lines = [line.split() for line in (places.boards() / "modules.txt").read_text().splitlines() if line[:1] not in ("", "#")]
    return [line[0] for line in lines if has.issuperset(line[1:])]


@dataclass(frozen=True)
class Contents:
    """What a user puts onto a board.

    Attributes:
        model: The bundle of the local model.
        config: The node's configuration.
        records: File of recorded samples, or None.
        own: Further files of the app, name to content.
        mpy: Compile the runtime first. A board that compiles it itself needs half as much memory again.
        frozen: The board's firmware holds the runtime, so that only the rest is copied.
        samples: After so many samples the program ends; 0: when its sensor does.
        own_link: Use the link of an app that has one; an emulated board lacks its radio.
        past_left_out: The policy does not read its past because the board has no room for that.
        native: Copy the native module of the policy, if it is built.
    """

    model: Path
    config: NodeConfig
    records: Path | None = None
    own: dict[str, bytes] = field(default_factory=dict)
    mpy: bool = True
    frozen: bool = False
    samples: int = 0
    _: KW_ONLY
    own_link: bool = True
    past_left_out: bool = False
    native: bool = True

    @cached_property
    def ldl(self) -> Int8Model:
        """The local model. Raises UserError, which names the file, if it is not a bundle."""
        try:
            return Int8Model(self.model.read_bytes(), self.config.event)
        except ValueError as error:
            raise UserError(f"{self.model}: {error}") from None

    @property
    def record_size(self) -> int:
        """Bytes of a recorded sample: the LDL's input and the remote tensor."""
        each = wire.ITEM[wire.DTYPES.index(self.config.remote_dtype)]
        return int(self.ldl.input_size + prod(self.config.remote_shape) * each)


def payload(kind: Kind, contents: Contents) -> dict[str, bytes]:
    """Return the files of a board: path to content, with main.py last. A frozen runtime and its programs are not among them.

    Raises:
        UserError: The model or the configuration does not fit the board.
        Failure: mpy-cross is missing or refuses a module.
    """
    config, records = contents.config, contents.records
    bundle = contents.ldl
    files: dict[str, bytes] = {}
    if records:
        data = sendable(records)
        record = contents.record_size
        if not data or len(data) % record:
            raise UserError(f"{records}: {len(data)} bytes are not whole records of {record} (LDL input, remote tensor)")
        files["samples" if kind.name == "microbit" else config.records] = data
    if kind.name == "microbit":
        if config.app or contents.own:
            raise UserError("the micro:bit has no room for an app; it runs the programs in firmware/boards/microbit")
        files.update(microbit_program.files(config, bundle))
        size = sum(map(len, files.values()))
        if size > microbit_program.MAX_BYTES:
            raise UserError(
                f"{size:,} bytes of program, model and records: the micro:bit takes {microbit_program.MAX_BYTES:,}, because "
                "a fuller file system loses files; take fewer records"
            )
        return files
    parts = [name for name in PARTS if getattr(config, name, None) not in (None, "", 0, "none")]
    parts += ["features"] if config.context else []
    parts += ["roomy"] if kind.heap >= ROOMY and config.machine_code else []
    steps = {step.__name__ for step, _, _ in bundle.steps}
    parts += steps.intersection(OWN_MODULES)
    entries = content(kind, config, contents.own_link)
    parts += ["ordered"] if "ordered" in entries["arguments"] else []
    parts += ["heads"] if {"ordered", "features"} & set(parts) else []
    parts += ["asyncio"] if "awaitable" in entries else []
    parts += ["own_link"] if entries.get("link") == "app" else []
    measured = entries.get("measured", {})  # of an app: how it turns measurements into samples
    parts += [name for name in ("window", "picture") if measured.get(name)]
    hosts = [config.broker, config.ntp if "wifi" in kind.links else ""]
    by_name = any(host > ":" for host in hosts)  # an IP address begins with a digit, as start.py assumes
    parts += ["names"] if by_name or config.provision else []
    if not contents.frozen:
        files.update(runtime_files(kind, parts, contents.mpy, _step(kind, contents, parts)))
    module = native.content(kind.arch) if contents.mpy and not contents.frozen else None  # a firmware has its own
    if module and steps.intersection(CONVOLUTIONS):
        files[native.MODULE] = module
    if not config.ldl.startswith(ROM):  # `mpremote romfs deploy` copies a model in ROMFS
        files[config.ldl] = bytes(bundle.blob)
    if config.head:
        files[HEAD] = _head(config, bundle)
    if config.app:
        files.update({"app.py": config.program(), **contents.own})
    files.update(config.certificates())
    entries |= {"samples": contents.samples} if contents.samples else {}
    files["config.json"] = json.dumps(entries, indent=1).encode()
    if not contents.frozen:
        files.update({name: (places.boards() / name).read_bytes() for name in STARTERS})
        files["main.py"] = (kind.folder / "main.py").read_bytes()
    return files


def _head(config: NodeConfig, bundle: Int8Model) -> bytes:
    """Return the file that a head begins with. UserError where it is of another local model."""
    content = config.head_content(config.arguments())
    if head_file.model_of(content) != bundle.checksum & head_file.MODEL_BITS:
        raise UserError(f"{config.folder / config.head}: it is of another local model than the board's; remove `head`")
    return content


def _step(kind: Kind, contents: Contents, parts: Sequence[str]) -> bytes | None:
    """Return the native module of a board's policy; None: it gets none."""
    others = {"class_costs", "miss_rate", "features", "head"}  # of policies without one
    if not (contents.native and contents.mpy and "roomy" in parts) or others.intersection(parts):
        return None
    return native.content(kind.arch, "ordered" if "ordered" in parts else contents.config.policy)


def runtime_files(kind: Kind, parts: Sequence[str] = PARTS, mpy: bool = True, step: bytes | None = None) -> dict[str, bytes]:
    """Return the runtime's files with these parts, as .mpy or as sources. step: native module of the policy, if it is built."""
    files = {native.POLICY: step} if step else {}
    for path in modules(kind, parts):
        source = (places.RUNTIME.parent / path).read_bytes()
        if not mpy:
            files[path] = source
        elif not ast.parse(source).body:  # a package needs no file without code
            continue
        elif kind.arch or not path.endswith(VIPER):  # without a known processor the board runs bytecode only
            # on Linux a program may run on another processor, and these modules have no plain code beside the machine code
            has_machine_code = kind.platform != "linux" and ("roomy" in parts and not step or not path.startswith(POLICIES))
            files.update([compiled_file(path, source, kind.arch if has_machine_code or path.endswith(VIPER) else None)])
    return files


def content(kind: Kind, config: NodeConfig, own_link: bool = True) -> dict[str, Any]:
    """Return config.json of a board. Raise UserError for an entry that the board cannot use. own_link: as of Contents."""
    entries = config.content()
    if entries.pop("link", "") and own_link:
        entries["link"] = "app"
        return {name: value for name, value in entries.items() if name not in NETWORK_ENTRIES}
    if kind.links == ("serial",):
        network = sorted(config.model_fields_set & {*NETWORK_ENTRIES})
        if network:
            raise UserError(
                f"{network[0]}: {kind.with_article} has no network; its gateway knows the broker: remove this entry"
            )
        entries = {"link": "serial", **{name: value for name, value in entries.items() if name not in NETWORK_ENTRIES}}
    return entries
