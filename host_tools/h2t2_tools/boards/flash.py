"""`h2t2 flash`: puts a node onto a board.

It checks the board, copies the changed files, reads them back, puts them in place, restarts the board and waits for its hello.
"""

import hashlib
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from serial.tools import list_ports

from h2t2.cpython.whole_frames import encode
from h2t2.link import frames
from h2t2.node.ports import PORTS
from h2t2.node.run import PATIENT_MS
from h2t2.node.start import size_of

from ..common import places
from ..common.errors import Failure, UserError
from . import frozen, in_place, mpy_file, rehearsal
from .emulators import session
from .emulators.catalogue import ARM32, UNIX, Emulator
from .emulators.lwip import Port
from .kinds import ROM, Contents, Kind, modules, payload
from .microbit.program import PROGRAM
from .repl import RawRepl
from .targets import BoardInfo, Folder, Repl, Target, wait_hello

MPY_FORMAT = (6, 3)  # of mpy-cross 1.23 and newer
PLACEHOLDER = "network"  # the network's name in a new section of an h2t2.toml
LITTLEFS = "format it as littlefs, MicroPython's default (its folder in firmware/boards says how)"
Progress = Callable[[str, int, int], None]
BOOT_S = 60  # longest time from reset to node: a slow chip compiles the runtime and checks the model and the snapshot
LOOK_UP_S = 15  # how much a look-up at two silent name servers can prolong the wait for a connection
SMALLER = (
    "leave the weights in flash (stream = true), do without a head (features = 0) or the policy's machine code "
    "(machine_code = false), use a smaller model, or another board"
)


def ports() -> list[dict[str, Any]]:
    """Return the serial ports that may be boards: {"port", "about", "usb"}; usb is "" for a Pico that `h2t2 emulate` runs."""
    rows = [
        {"port": port.device, "about": port.description, "usb": f"{port.vid:04x}:{port.pid:04x}"}
        for port in sorted(list_ports.comports(), key=lambda port: port.device)
        if port.vid is not None
    ]
    return rows + [{"port": port, "about": "emulated Raspberry Pi Pico", "usb": ""} for port in session.ports()]


def find(kind: Kind, port: str) -> str:
    """Return the port of a board.

    Args:
        kind: Kind of the board.
        port: A port; auto: the only one that is plugged in.

    Raises:
        UserError: None or several boards are plugged in.
    """
    if port != "auto":
        return port
    if kind.name == "unix":
        raise UserError("--port: name the folder in which the unix port runs")
    plugged = [row["port"] for row in ports()]
    if len(plugged) != 1:
        raise UserError(
            f"--port auto: {len(plugged)} boards are plugged in ({', '.join(plugged) or 'none'}); name one: h2t2 boards"
        )
    return str(plugged[0])


def plan(files: dict[str, bytes], digests: dict[str, str]) -> list[dict[str, Any]]:
    """Return {"path", "bytes", "changed"} for every file, in the order in which flash() puts them in place."""
    return [
        {"path": path, "bytes": len(data), "changed": digests.get(path) != hashlib.sha256(data).hexdigest()}
        for path, data in files.items()
    ]


def resting(files: dict[str, bytes], modules: str = in_place.FILES) -> tuple[dict[str, int], int, list[str]] | None:
    """Measure the heap of a node at rest on emulated 32-bit ARM.

    Of an app it measures the compiled program, not what the program allocates later.

    Args:
        files: As of measuring().
        modules: As of measuring().

    Returns:
        Bytes for each of PARTS, without machine code; bytes of the pools of names that they added; and the modules of the
        runtime that are still loaded, h2t2.core.numbers and so on. None if the emulation cannot run here.
    """
    output = measuring(files, modules)
    if output is None:
        return None
    before, after = (int(total) - int(texts) for texts, total in NAMES.findall(output))
    loaded = next(line.split()[1:] for line in output.splitlines() if line.startswith("loaded"))
    return dict(zip(PARTS, map(int, output.split()[-len(PARTS) :]))), after - before, loaded


def measuring(files: dict[str, bytes], modules: str = in_place.FILES, further: str = "") -> str | None:
    """Run MEASURE on emulated 32-bit ARM.

    Args:
        files: Files of payload(), with machine code that 32-bit ARM runs.
        modules: Lines that let it import the runtime.
        further: Lines that run after it, while the node is there.

    Returns:
        Its output; None if the emulation cannot run here.
    """
    if ARM32.missing():
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(Path(name))
        for path, data in files.items():
            folder.write(path, data)
        script = Path(name) / "measure.py"
        script.write_text(MEASURE.format(folder=name, modules=modules) + further)
        try:
            return ARM32.run(script, [], Path(name))
        except Failure:
            return None


def needed(kind: Kind, contents: Contents, progress: Progress = lambda name, n, of: None) -> dict[str, int] | None:
    """Return the heap of a node on a board: bytes for each of PARTS, and `work`, the further ones at its peak in a rehearsal.

    A model in ROMFS takes no heap, because it stays in flash. A frozen runtime takes what the modules take when they run in
    place, without their constants and the pools of their names.
    """
    copied = contents.config.model_copy(update={"ldl": "ldl.h2m"})
    files = payload(replace(kind, arch="armv6m"), replace(contents, config=copied, records=None, frozen=False))
    image = in_place.packed(files) if contents.frozen else files
    measured = resting(image, in_place.MOUNT if contents.frozen else in_place.FILES)
    if measured is None:
        return None
    heap, names, loaded = measured
    aside = 0
    if contents.frozen:
        in_firmware = in_place.constants(files, loaded) + names
        heap["runtime"] -= in_firmware
        aside = in_firmware + len(image[in_place.IMAGE])
    at_rest = sum(heap.values())
    peak = rehearsal.peak(files, contents.record_size, at_rest, lambda n, of: progress("heap", n, of), aside)
    heap["work"] = peak - at_rest
    if not contents.frozen:
        for part, folder in (("runtime", "core"), ("model", "ldl")):
            heap[part] += machine_code(files, [name for name in loaded if name.startswith(f"h2t2.{folder}.")])
    if contents.config.ldl.startswith(ROM) and not contents.config.stream:
        heap["model"] -= contents.model.stat().st_size
    return heap


def machine_code(files: dict[str, bytes], loaded: list[str]) -> int:
    """Return the bytes of the machine code of loaded modules. The emulation keeps it outside its heap, a Pico inside.

    Sources have none here, as the emulation compiles it for another processor.
    """
    return sum(map(mpy_file.machine_code, mpy_file.of_modules(files, loaded)))


MEASURE = places.text("boards/programs/measure.py.txt")
NAMES = re.compile(r"n_str_data_bytes=(\d+), n_total_bytes=(\d+)")  # texts of all names; these and the pools, which hold names
PARTS = ("runtime", "model", "app")


def check(
    kind: Kind, info: BoardInfo, port: str, rows: list[dict[str, Any]], heap: dict[str, int] | None, contents: Contents
) -> None:
    """Check that a board can run the node, before anything on it changes.

    Raises:
        UserError: It is another board, its MicroPython is too old, its firmware holds another runtime than `--frozen` needs, or
            it has too little flash or heap.
    """
    if info.platform != kind.platform:
        raise UserError(f"{port}: this board reports {info.platform!r}, but {kind.name} needs {kind.platform!r}")
    if info.version[:2] < kind.oldest:
        version = ".".join(map(str, info.version))
        raise UserError(f"{port}: MicroPython {version}; {kind.name} needs {'.'.join(map(str, kind.oldest))} or newer")
    if contents.frozen and info.frozen != frozen.runtime(kind):
        theirs = f"the runtime {info.frozen}" if info.frozen else "no runtime"
        raise UserError(
            f"{port}: its firmware holds {theirs}, but --frozen needs {frozen.runtime(kind)}: write the firmware of "
            f"`h2t2 firmware {kind.name}` onto the board, or leave --frozen out"
        )
    if _compiled(kind, contents) and info.mpy_format != MPY_FORMAT:
        theirs, ours = (".".join(map(str, version)) for version in (info.mpy_format, MPY_FORMAT))
        raise UserError(f"{port}: its firmware loads .mpy format {theirs}, these files have {ours}: give --source")
    need = sum(row["bytes"] for row in rows if row["changed"])
    if 0 <= info.flash < need:
        raise UserError(f"{port}: {need:,} bytes to copy, but its file system has {info.flash:,} free")
    if heap is not None and info.heap < sum(heap.values()):
        raise UserError(f"{port}: the node takes {in_parts(heap)} of heap, but {info.heap:,} are free: {SMALLER}")


def _compiled(kind: Kind, contents: Contents) -> bool:
    """Return whether .mpy files are copied. A micro:bit's program is one source file."""
    return contents.mpy and not contents.frozen and kind.name != "microbit"


def in_parts(heap: dict[str, int]) -> str:
    """Return the result of needed() as text."""
    return f"{sum(heap.values()):,} bytes ({', '.join(f'{name} {n:,}' for name, n in heap.items() if n)})"


def refuse(kind: Kind, contents: Contents) -> None:
    """Refuse a configuration that would start but be useless.

    Raises:
        UserError: The node has no samples to decide about, no network, a watchdog that its chip does not support, or an app for
            another model.
    """
    config = contents.config
    if contents.frozen and not kind.build:
        raise UserError(f"--frozen: nobody freezes a runtime for {kind.with_article}, only for {', '.join(frozen.freezable())}")
    if contents.frozen and not contents.mpy:
        raise UserError("--frozen and --source exclude each other: a frozen runtime is compiled")
    if not config.app and contents.records is None:
        raise UserError('the node has no samples: set app = "app.py" in h2t2.toml, or put recorded samples beside that file')
    port = PORTS.get(kind.chip)
    if port and config.watchdog_ms > port.watchdog_ms:
        raise UserError(
            f'watchdog = "{config.watchdog_ms}ms": the watchdog of {kind.with_article} takes at most {port.watchdog_ms} ms; '
            "the board would not start"
        )
    if config.sleep == "deep" and not config.app:
        raise UserError('sleep = "deep": each waking starts the recorded samples anew: set `app`')
    if "wifi" in kind.links and config.wifi_name in ("", PLACEHOLDER):
        raise UserError(f"wifi_name = {config.wifi_name!r} in the configuration: replace it with your network's name")
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
    """Return the longest time until a board's hello, in seconds. It says hello once it is connected or has given up waiting."""
    return BOOT_S + (PATIENT_MS / 1000 + LOOK_UP_S if "mqtt" in kind.links else 0)


def flash(
    kind: Kind, port: str, contents: Contents, dry: bool, progress: Progress, *,
    start: bool = True, replace_app: bool = False, interpreter: Emulator | Port = UNIX,
) -> dict[str, Any]:  # fmt: skip
    """Put a node onto a board.

    Args:
        kind: Kind of the board.
        port: Its serial port, or the folder in which the unix port runs; auto: the only board that is plugged in.
        contents: The model, the configuration and the user's files.
        dry: Only check and report.
        progress: Called with the name of the step or file, the finished steps and all steps.
        start: Restart the board and wait for its hello; otherwise it stays at its prompt, for a gateway that restarts it.
        replace_app: Overwrite another app and its files on the board.
        interpreter: Build of the unix port that runs in the folder.

    Returns:
        The report: board, port, files, copied, bytes, heap and others. It contains no secrets.

    Raises:
        UserError: The board or the configuration does not fit.
        Failure: The line failed, or the board did not say hello.
    """
    refuse(kind, contents)
    files = payload(kind, contents)
    own = set() if replace_app else {"app.py", *contents.own}  # the user's files, which flash() does not overwrite
    heap = None if kind.name in ("microbit", "unix") else needed(kind, contents, progress)
    if dry and port == "auto":
        if heap is not None and sum(heap.values()) > kind.heap:
            raise UserError(
                f"the node takes {in_parts(heap)} of heap; {kind.with_article} usually has {kind.heap:,} free: {SMALLER}"
            )
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
            mark = encode(frames.HELLO, contents.config.device.encode()) if kind.name == "microbit" else b"h2t2: ready"
            wait_hello(repl.read, mark, longest_start(kind))
            report["hello"] = contents.config.device
    return report


def _onto(
    kind: Kind, port: str, target: Target, contents: Contents, *, files: dict[str, bytes], own: set[str],
    heap: dict[str, int] | None, dry: bool, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    info = target.info()
    mpy = _compiled(kind, contents)
    if mpy and info.mpy and info.arch != kind.arch:  # some kinds come with several processors; the board reports its own
        files = payload(replace(kind, arch=info.arch), contents)
    digests = target.digests(list(files))
    rows = plan(files, digests)
    check(kind, info, port, rows, heap, contents)
    changed = [row["path"] for row in rows if row["changed"]]
    replaced = sorted(own & {*changed} & {*digests})
    if replaced:
        raise UserError(f"{port}: the board holds another {' and '.join(replaced)}; save it, or give --replace-app")
    if not dry:
        if target.loses_files():
            raise UserError(f"{port}: its file system is FAT, which a power cut can damage; {LITTLEFS}")
        direct = kind.name == "microbit"  # it cannot rename files; main.py, written last, switches to the new program
        try:
            missing = changed if direct else _unlike(target, changed, files)  # an interrupted run has copied the others
            for n, path in enumerate(missing):
                progress(path, n, len(missing))
                target.write(path if direct else path + ".new", files[path])
            wrong = [] if direct else _unlike(target, changed, files)
            if wrong:
                raise Failure(f"{port}: {', '.join(wrong)} read back differently")
            if contents.frozen:
                target.uncover()
            if changed and not direct:
                target.replace(changed)
            _clear(kind, target, files, mpy)
        except Failure as error:
            raise Failure(
                f"{error}; the board still has its previous program. Plug it in again and repeat the same command: it "
                "continues where it stopped"
            ) from None
    return _report(kind, port, rows, heap, info, dry)


def _unlike(target: Target, paths: list[str], files: dict[str, bytes]) -> list[str]:
    digests = target.digests([path + ".new" for path in paths])
    return [path for path in paths if digests.get(path + ".new") != hashlib.sha256(files[path]).hexdigest()]


def _clear(kind: Kind, target: Target, files: dict[str, bytes], mpy: bool) -> None:
    """Remove files that would shadow the new ones, machine code that is no longer wanted, or a micro:bit's older programs."""
    if kind.name == "microbit":
        assert isinstance(target, Repl)
        target.remove([name for name in target.repl.files() if PROGRAM.fullmatch(name) and name not in files])
        return
    opposite = {True: (".mpy", ".py"), False: (".py", ".mpy")}[mpy]
    old = [path.removesuffix(opposite[0]) + opposite[1] for path in files if path.startswith("h2t2/")]
    machine_code = [path.removesuffix(".py") for path in modules(kind) if path.endswith("_viper.py")]
    old += [path + form for path in machine_code for form in opposite if path + form not in {*files, *old}]
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
